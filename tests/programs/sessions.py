"""What Sessions give of variables that they fetch, feed and assign: a program of TF 1.15.

    python sessions.py            # TensorFlow 1.15
    e2s run sessions.py           # here

Prints JSON: case -> what it gave. tests/goldens/sessions.json is its output on TensorFlow 1.15.5.
What raced there is not asked for: what is computed of a variable (`v + 0`, `tf.gather`) beside its
update.
"""

import json
import tempfile
import threading

import numpy as np
import tensorflow as tf

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def model():
    """A variable of 1 and the op that adds 1 to it at each step."""
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    step = tf.train.get_or_create_global_step()
    return v, tf.train.GradientDescentOptimizer(1.0).minimize(-v, step)


def started():
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session


@case
def beside_the_train_op():
    v, train_op = model()
    table = tf.get_variable("table", [4, 2], initializer=tf.zeros_initializer())
    fetches = {
        "variable": v,
        "by name": "v:0",
        "by variable's name": v.name,
        "read by name": "v/read:0",
        "as graph element": tf.get_default_graph().get_tensor_by_name("v:0"),
        "value()": v.value(),
        "read_value()": v.read_value(),
        "identity": tf.identity(v),
        "identity of identity": tf.identity(tf.identity(v)),
        "step": tf.train.get_global_step(),
        "step by name": "global_step:0",
        "reshaped": tf.reshape(table, [2, 4]),
        "expanded": tf.expand_dims(table, 0),
    }
    train_op = tf.group(train_op, tf.assign_add(table, tf.ones([4, 2])))
    with started() as session:
        return [session.run([fetches, train_op])[0] for _ in range(3)]


@case
def computed_without_the_train_op():
    v, train_op = model()
    table = tf.get_variable("table", [4, 2], initializer=tf.ones_initializer())
    fetches = [v + 0.0, v.initialized_value(), tf.gather(table, [1]), table[2], v.initial_value]
    fetches += [tf.nn.embedding_lookup(table, [0, 3]), tf.cast(v, tf.int32)]
    with started() as session:
        session.run([train_op, tf.assign(table, table * 3)])
        return session.run(fetches)


@case
def computed_after_the_train_op():
    v, train_op = model()
    with tf.control_dependencies([train_op]):
        fetches = [v + 0.0, tf.identity(v), v.read_value(), v * 2]
    with started() as session:
        return [session.run(fetches) for _ in range(2)]


@case
def partitioned():
    divided = tf.fixed_size_partitioner(2)
    v = tf.get_variable("v", [4, 2], initializer=tf.ones_initializer(), partitioner=divided)
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(
        -tf.reduce_sum(tf.convert_to_tensor(v))
    )
    with started() as session:
        results = [session.run([list(v), train_op])[0] for _ in range(2)]
        return [results, session.run([v.as_tensor(), tf.nn.embedding_lookup(v, [0, 1, 3])])]


@case
def results_of_assignments():
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    first, second = tf.assign(v, [5.0, 6.0]), v.assign_add([1.0, 1.0])
    with tf.control_dependencies([first]):
        third = tf.assign_sub(v, [2.0, 2.0])
    scattered = tf.scatter_update(v, [0], [9.0])
    with started() as session:
        alone = [session.run(fetch) for fetch in (first, second, third, scattered)]
        return [*alone, session.run([first, third]), session.run([first, third, v])]


@case
def fed():
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    double, table = v * 2, tf.gather(v, [1])
    loss = tf.reduce_sum(tf.square(v))
    with started() as session:
        results = session.run([double, table, v, loss, tf.gradients(loss, v)], {v: [7.0, 8.0]})
        return [results, session.run(double, {"v:0": [3.0, 4.0]}), session.run([double, v])]


@case
def evaluated():
    v, train_op = model()
    with started() as session:
        before = v.eval(session)
        train_op.run(session=session)
        v.load(10.0, session)
        with session.as_default():
            return [before, v.eval(), tf.train.global_step(session, tf.train.get_global_step())]


@case
def in_parts():
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    first = v * x
    second = first + y
    with started() as session:
        handle = session.partial_run_setup([first, second, v], [x, y])
        one = session.partial_run(handle, first, {x: 2.0})
        return [one, session.partial_run(handle, [second, v], {y: 3.0})]


@case
def made_callable():
    v, train_op = model()
    with started() as session:
        call = session.make_callable([v, train_op])
        return [call()[0] for _ in range(2)]


@case
def saved():
    v, train_op = model()
    saver = tf.train.Saver()
    path = tempfile.mkdtemp() + "/model"
    with started() as session:
        session.run(train_op)
        saver.save(session, path, 7)
        session.run([train_op, v])
        saver.restore(session, path + "-7")
        return [session.run(v), tf.train.list_variables(path + "-7")]


class Seeing(tf.train.SessionRunHook):
    def __init__(self, fetches):
        self._fetches = fetches
        self.seen = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)


@case
def monitored():
    v, train_op = model()
    step = tf.train.get_global_step()
    hook = Seeing({"v": v, "step": step})
    results = []
    folder = tempfile.mkdtemp()
    hooks = [hook, tf.train.StopAtStepHook(3)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
        while not session.should_stop():
            results.append(session.run([train_op, v, step, "global_step:0"])[1:])
    with tf.train.SingularMonitoredSession() as session:
        results.append(session.run([v, train_op])[0])
    return [results, hook.seen]


@case
def supervised():
    v, train_op = model()
    supervisor = tf.train.Supervisor(logdir=tempfile.mkdtemp(), summary_op=None)
    with supervisor.managed_session() as session:
        return [session.run([train_op, v, supervisor.global_step])[1:] for _ in range(2)]


@case
def in_threads():
    v, train_op = model()
    saver = tf.train.Saver()
    path = tempfile.mkdtemp() + "/model"
    results = []
    with started() as session:

        def work():
            results.append(session.run([v, train_op])[0])
            saved_as = saver.save(session, path, tf.train.get_global_step(session.graph))
            results.append([saved_as == path + "-1", tf.executing_eagerly()])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    return results


@case
def conditional():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    wanted = tf.placeholder(tf.bool, [])
    op = tf.cond(wanted, lambda: tf.assign_add(v, 1.0), lambda: tf.identity(v))
    with started() as session:
        return [session.run([op, v], {wanted: x}) for x in (True, False, True)]


@case
def looped():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())

    def body(i):
        with tf.control_dependencies([tf.assign_add(v, 2.0)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 5, body, [0])
    grown = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * (v + 1.0)), [0, 1.0])[1]
    gradient = tf.gradients(grown, v)
    with started() as session:
        first = session.run([loop, v])
        return [first, session.run([grown, gradient])]


@case
def described():
    model()
    by_layer = tf.layers.dense(tf.ones([1, 2]), 1)
    tf.metrics.mean(by_layer)
    made = tf.global_variables() + tf.local_variables()
    as_resource = tf.get_variable("r", [], use_resource=True)
    made.append(as_resource)
    return [[x.name, x.op.name, x.op.type, x.value().op.type] for x in made]


@case
def frozen():
    v, train_op = model()
    tf.add(tf.identity(v), 1.0, name="output")
    graph_util = tf.graph_util
    with started() as session:
        session.run(train_op)
        definition = tf.get_default_graph().as_graph_def()
        constants = graph_util.convert_variables_to_constants(session, definition, ["output"])
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(constants, name="")
        names = sorted(node.name for node in constants.node)
        return [names, session.run(["output:0", "v/read:0"])]


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def run(name):
    with tf.Graph().as_default():
        return plain(CASES[name]())


def main():
    print(json.dumps({name: run(name) for name in CASES}, sort_keys=True))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    main()
