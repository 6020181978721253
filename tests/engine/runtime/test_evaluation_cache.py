"""Evaluations of one `train_and_evaluate`: recorded once, with the results of separate ones."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.plan.fingerprint import fingerprint
from estimator2strategy.engine.replay.session import ReplaySession
from tests.engine.runtime.programs import (
    Steps,
    cores_estimator,
    falling,
    falling_on_cores,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1
VALUES = np.arange(1, 8, dtype=np.float32)


class Counted:
    """A function, and how often it was called for evaluation."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, features, labels, mode, params):
        self.count += mode == estimator.ModeKeys.EVAL
        return self.function(features, labels, mode, params)


def streaming(features, labels, mode, params):
    """Keeps in every way a sum over the batches that the next evaluation must not see."""
    spec = falling(features, labels, mode, params)
    if mode != estimator.ModeKeys.EVAL:
        return spec
    (weight,) = tf1.global_variables("weight")
    mean = tf.reduce_mean(features)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([1, 2, 3], [10.0, 20.0, 30.0]), -1.0
    )
    own = tf1.get_local_variable("own", [], initializer=tf1.constant_initializer(5.0))
    other = tf1.get_local_variable("other", [], initializer=tf1.constant_initializer(3.0))
    metrics = {
        "replayed": (other.read_value() / 2, other.assign_add(mean)),
        "keras": tf1.metrics.mean(mean + weight),
        "auc": tf1.metrics.auc(tf.constant([True, False]), tf.stack([0.4, mean / 8])),
        "recorded": (own.read_value(), own.assign_add(mean)),
        "scaled": (2 * own.read_value() + weight, own.assign_add(0.0)),
        "looked_up": tf1.metrics.mean(table.lookup(tf.cast(mean, tf.int32))),
    }
    return spec._replace(loss=spec.loss + weight, eval_metric_ops=metrics)


def dataset_input():
    return tf.data.Dataset.from_tensor_slices(VALUES).map(lambda x: x + 1).batch(2)


def one_shot_input():
    return tf1.data.make_one_shot_iterator(dataset_input()).get_next()


def initializable_input():
    iterator = tf1.data.make_initializable_iterator(dataset_input())
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


array_input = estimator.inputs.numpy_input_fn(VALUES, batch_size=2, shuffle=False)
INPUTS = [dataset_input, one_shot_input, initializable_input, array_input]


class Results(estimator.Exporter):
    """Keeps the results of all evaluations."""

    name = "results"

    def __init__(self):
        self.all = []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.all.append(eval_result)


def evaluations(model, input_fn, train_input=None, hooks=(), steps=None):
    """Results of the evaluations of steps 2, 4 and 6."""
    results = Results()
    estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(train_input or numbers(9), max_steps=6),
        estimator.EvalSpec(input_fn, steps, hooks=hooks, throttle_secs=0, exporters=results),
    )
    return results.all


def model_of(model_dir, function):
    counted = Counted(function)
    config = {"save_checkpoints_steps": 2, "keep_checkpoint_max": None}
    return host_estimator(model_dir, counted, **config), counted


@pytest.mark.oldest
@pytest.mark.parametrize(
    "input_fn",
    [INPUTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in INPUTS[1:])],
    ids=["dataset", "one_shot", "initializable", "array"],
)
def test_results_are_those_of_evaluations_by_themselves(model_dir, input_fn):
    model, calls = model_of(model_dir, streaming)
    together = evaluations(model, input_fn)
    assert calls.count == 1
    alone = [
        model.evaluate(input_fn, checkpoint_path=f"{model_dir}/model.ckpt-{step}")
        for step in (2, 4, 6)
    ]
    assert together == alone
    assert [result["recorded"] for result in together] == [together[0]["recorded"]] * 3
    assert together[0]["keras"] != together[1]["keras"]


def test_the_emulated_cores_start_anew_too(emulated_cores, model_dir):
    emulated_cores(2)

    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)
        (weight,) = tf1.global_variables("weight")
        if mode != estimator.ModeKeys.EVAL:
            return spec
        metric = (lambda x: {"mean": tf1.metrics.mean(x)}, [features + weight])
        return spec._replace(loss=spec.loss + weight, eval_metrics=metric)

    counted = Counted(model_fn)
    model = cores_estimator(model_dir, counted)
    model._config = model._config.replace(save_checkpoints_steps=2)
    together = evaluations(model, ones, train_input=ones, steps=3)
    assert counted.count == 1
    assert [result["loss"] for result in together] == [-3.0, -5.0]  # steps 4 and 6
    assert [result["mean"] for result in together] == [-3.0, -5.0]


def test_another_input_is_recorded_anew(model_dir):
    files = iter([2, 4, 4])

    def input_fn():
        return numbers(next(files))()

    model, calls = model_of(model_dir, falling)
    assert [result["loss"] for result in evaluations(model, input_fn)] == [1.5, 2.5, 2.5]
    assert calls.count == 2


def test_hooks_of_the_program_see_an_evaluation_of_their_own(model_dir):
    """They may hold tensors that model_fn gave them."""
    held = {}

    def model_fn(features, labels, mode, params):
        held["features"] = features
        return falling(features, labels, mode, params)

    class Holds(tf1.train.SessionRunHook):
        def before_run(self, run_context):
            return tf1.train.SessionRunArgs(held["features"])

    model, calls = model_of(model_dir, model_fn)
    evaluations(model, numbers(2), hooks=[Holds()])
    assert calls.count == 3


def test_so_do_hooks_of_the_model(model_dir):
    hooks = []

    def model_fn(features, labels, mode, params):
        hooks.append(Steps())
        return falling(features, labels, mode, params)._replace(evaluation_hooks=[hooks[-1]])

    model, calls = model_of(model_dir, model_fn)
    evaluations(model, numbers(2))
    assert calls.count == 3
    assert [hook.seen for hook in hooks if hook.seen] == [[2, 2], [4, 4], [6, 6]]


def test_stock_hooks_work_on_each_checkpoint(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        (weight,) = tf1.global_variables("weight")
        saver = tf1.train.SummarySaverHook(
            save_steps=1,
            output_dir=f"{model_dir}/own",
            summary_op=tf1.summary.scalar("own", weight),
        )
        return spec._replace(evaluation_hooks=[saver])

    model, calls = model_of(model_dir, model_fn)
    log = tf1.train.LoggingTensorHook(["weight/Read/ReadVariableOp:0"], every_n_iter=1)
    evaluations(model, numbers(2), hooks=[log])
    assert calls.count == 1
    (path,) = tf.io.gfile.glob(f"{model_dir}/own/*")
    events = [e for e in tf1.train.summary_iterator(path) if e.summary.value]
    values = {event.step: event.summary.value[0].simple_value for event in events}
    assert values == {2: -3.0, 4: -10.0, 6: -21.0}


def test_evaluations_outside_are_recorded_each_time(model_dir):
    model, calls = model_of(model_dir, falling)
    evaluations(model, numbers(2))
    for _ in range(2):
        model.evaluate(numbers(2))
    assert calls.count == 3


class TestFingerprint:
    def of(self, build):
        with tf.Graph().as_default() as graph:
            build()
        return fingerprint(graph)

    @pytest.mark.parametrize("build", INPUTS)
    def test_the_same_input_has_the_same(self, build):
        assert self.of(build) == self.of(build)

    def test_branches_come_in_one_order(self):
        def build():
            one = tf.constant(1)
            tf.cond(one > 0, lambda: one + 1, lambda: one - 1)

        assert len({self.of(build).digest for _ in range(20)}) == 1

    def test_tables_of_the_same_content_have_the_same(self):
        def build():
            keys = tf.lookup.KeyValueTensorInitializer([1], [2])
            tf.lookup.StaticHashTable(keys, 0)

        assert self.of(build) == self.of(build)

    @pytest.mark.parametrize(
        "other",
        [
            lambda: tf.data.Dataset.range(4).map(lambda x: x + 2),
            lambda: tf.data.Dataset.range(4).map(lambda x: 1 + x),
            lambda: tf.data.Dataset.range(4).map(lambda x: x + 1).batch(1),
            lambda: tf.data.Dataset.range(5).map(lambda x: x + 1),
        ],
    )
    def test_another_input_has_another(self, other):
        def build():
            return tf.data.Dataset.range(4).map(lambda x: x + 1)

        assert self.of(lambda: tf1.data.make_one_shot_iterator(build())) == self.of(
            lambda: tf1.data.make_one_shot_iterator(build())
        )
        assert self.of(lambda: tf1.data.make_one_shot_iterator(build())) != self.of(
            lambda: tf1.data.make_one_shot_iterator(other())
        )

    def test_python_functions_count(self):
        one, other = (lambda x: x), (lambda x: x + 1)

        def build(function):
            return lambda: tf.numpy_function(function, [1], tf.int32)

        assert self.of(build(one)) == self.of(build(one))
        assert self.of(build(one)) != self.of(build(other))


def test_a_session_that_is_closed_in_its_graph_empties_its_iterators():
    with tf.Graph().as_default() as graph:
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(9))
        element = iterator.get_next()
        session = ReplaySession(graph)
        session.run(iterator.initializer)
        assert session.run(element) == 0
        handle = session.state.handle(iterator._iterator_resource.op.name)
        session.close()
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.raw_ops.IteratorGetNext(iterator=handle, output_types=[tf.int64], output_shapes=[[]])
