"""What a program of TF 1.15 shows of its variables, control flow, hooks, initial values and names.

`tests/tf1/test_spellings.py` runs it with every way to write the first import, and as it is. On
TensorFlow 1.15 it prints `tests/goldens/spelled.json`.
"""

import json
import tempfile

import tensorflow as tf


def in_a_graph(question):
    with tf.Graph().as_default():
        return question()


def kinds(*names):
    """How many ops of each type are in the graph, of those that tell TF 1 from TF 2."""
    made = [op.type for op in tf.get_default_graph().get_operations()]
    return {name: made.count(name) for name in names}


def variables_made():
    tf.get_variable("got", [])
    tf.Variable(1.0)
    with tf.variable_scope("scope"):
        tf.get_local_variable("local", initializer=1.0)
    tf.layers.dense(tf.ones([1, 2]), 3)
    tf.metrics.mean(1.0)
    tf.train.get_or_create_global_step()
    return kinds("VariableV2", "VarHandleOp", "Assign", "AssignVariableOp")


def control_flow_made():
    limit = tf.placeholder_with_default(3.0, [])
    tf.cond(limit > 1.0, lambda: limit + 1.0, lambda: limit)
    tf.while_loop(lambda i: i < limit, lambda i: i + 1.0, [0.0])
    tf.case([(limit > 1.0, lambda: limit)], default=lambda: limit + 1.0)
    tf.map_fn(lambda x: x + limit, tf.ones([2]))
    tf.scan(lambda x, y: x + y, tf.ones([2]))
    tf.assert_equal(limit, limit)
    return kinds("Merge", "Enter", "If", "StatelessIf", "While", "StatelessWhile", "TensorArrayV3")


def recurrent_ops_made():
    cell = tf.nn.rnn_cell.BasicLSTMCell(2)
    tf.nn.dynamic_rnn(cell, tf.ones([1, 3, 2]), dtype=tf.float32)
    return kinds("VariableV2", "VarHandleOp", "Enter", "While", "TensorArrayV3")


def fetched_beside_an_assign():
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    update = tf.assign_add(v, 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [float(value) for value in session.run([v, update])]


def first_values():
    tf.set_random_seed(7)
    made = [
        tf.get_variable("got", [2]),
        tf.layers.dense(tf.ones([1, 2]), 2),
        tf.Variable(tf.random_normal([2], seed=1)),
        tf.contrib.layers.fully_connected(tf.ones([1, 2]), 2),
        tf.keras.layers.Dense(2)(tf.ones([1, 2])),
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [[round(float(x), 4) for x in value.ravel()] for value in session.run(made)]


class GPT2Layer(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs


def names_given():
    limit = tf.placeholder_with_default(3.0, [], name="limit")
    layer = tf.keras.layers.Dense(2)
    with tf.name_scope("outer"):
        ends = [
            tf.cond(limit > 1.0, lambda: limit + 1.0, lambda: limit),
            tf.while_loop(lambda i: i < limit, lambda i: i + 1.0, [0.0]),
            tf.get_variable("got", []),
            layer(tf.ones([1, 2], tf.float64)),
        ]
        tf.layers.dense(tf.ones([1, 2]), 2)
    made = [end.name for end in ends] + [v.name for v in tf.global_variables()]
    return [*made, layer.name, layer.dtype, GPT2Layer().name]


def dimensions_and_equality():
    a, b = tf.ones([3, 2]), tf.ones([3, 2])
    return [a.shape[0].value, [d.value for d in a.get_shape()], a == b, a in [b, a], len({a, b, a})]


class Noting(tf.train.SessionRunHook):
    def __init__(self):
        self.steps = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("global_step:0")

    def after_run(self, run_context, run_values):
        self.steps.append(int(run_values.results))


scopes = []


def noted(x):
    scopes.append(tf.get_default_graph().get_name_scope())
    return x + 1.0


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(features) * w
    with tf.name_scope("model"):
        tf.cond(loss > 1.0, lambda: noted(loss), lambda: loss)
        tf.while_loop(lambda i: i < 2.0, noted, [0.0])
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def seen_by_a_hook():
    hook = Noting()
    model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    model.train(lambda: tf.data.Dataset.from_tensors(tf.ones([1])).repeat(), hooks=[hook], steps=3)
    return [hook.steps, sorted(set(scopes))]


def seen_of_a_canned_estimator():
    hook = Noting()
    column = tf.feature_column.numeric_column("x")
    model = tf.estimator.LinearRegressor([column], tempfile.mkdtemp())
    model.train(
        lambda: tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[1.0]])).repeat(),
        hooks=[hook],
        steps=3,
    )
    return [hook.steps, isinstance(model, tf.estimator.Estimator)]


QUESTIONS = [
    variables_made,
    control_flow_made,
    recurrent_ops_made,
    fetched_beside_an_assign,
    first_values,
    names_given,
    dimensions_and_equality,
    seen_by_a_hook,
    seen_of_a_canned_estimator,
]


def main():
    found = {}
    for question in QUESTIONS:
        try:
            found[question.__name__] = in_a_graph(question)
        except Exception as error:
            found[question.__name__] = repr(error)
    return found


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
