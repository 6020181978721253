"""Programs from the front, on a TPU that `tests/rehearsal.py` stands for: as on emulated cores."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import devices
from tests.rehearsal import rehearsal

pytestmark = pytest.mark.oldest

tf1 = tf.compat.v1
tpu = estimator.tpu
Pipeline = tpu.InputPipelineConfig
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
CORES, EXAMPLES, FEATURES, CLASSES = 8, 48, 4, 3

one_and_two_hosts = pytest.mark.parametrize(
    "num_hosts", [pytest.param(1, id="1x8", marks=pytest.mark.slow), pytest.param(2, id="2x4")]
)

_random = np.random.RandomState(0)
IMAGES = _random.rand(EXAMPLES, FEATURES).astype(np.float32)
LABELS = _random.randint(CLASSES, size=EXAMPLES).astype(np.int32)


# A legacy program: a moving average that differs by core, Adam, a host_call, metrics, predictions.


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def tensors(params):
    return tf1.data.make_one_shot_iterator(input_fn(params)).get_next()


def all_once(params):
    return tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(params["batch_size"])


class Program:
    """A model_fn, and what its host_call was given: (step of each core, sum of the losses)."""

    def __init__(self):
        self.reported: list[tuple[list[int], float]] = []

    def model_fn(self, features, labels, mode, params):
        weights = tf1.get_variable("weights", [FEATURES, CLASSES])
        average = tf1.get_variable("average", [FEATURES], trainable=False)
        logits = tf.matmul(features - average, weights)
        if mode == estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(
                mode,
                predictions={"features": features, "logits": logits},
                export_outputs={"serving_default": estimator.export.PredictOutput(logits)},
            )
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == estimator.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
        moved = tf1.assign_sub(average, 0.1 * (average - tf.reduce_mean(features, 0)))
        step = tf1.train.get_global_step()
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.05))
        with tf.control_dependencies([moved]):
            train_op = optimizer.minimize(loss, global_step=step)
        reported = [tf.reshape(step, [1]), tf.reshape(loss, [1])]
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=(self.host_fn, reported)
        )

    def host_fn(self, step, loss):
        def note(step, loss):
            self.reported.append((step.tolist(), float(np.sum(loss))))
            return np.int64(0)

        return tf1.py_func(note, [step, loss], tf.int64)


def metric_fn(labels, logits):
    predicted = tf1.argmax(logits, 1, output_type=tf.int32)
    return {
        "accuracy": tf1.metrics.accuracy(labels, predicted),
        "mean": tf1.metrics.mean(logits),
        "auc": tf1.metrics.auc(tf.equal(labels, 0), tf.nn.softmax(logits)[:, 0]),
    }


class Steps(tf1.train.SessionRunHook):
    """The global step that a hook sees after each block."""

    def __init__(self):
        self.seen: list[int] = []

    def after_run(self, run_context, run_values):
        session = run_context.session
        self.seen.append(int(session.run(tf1.train.get_global_step(session.graph))))


def make(
    model_dir: Path,
    cluster: Any,
    program: Any = None,
    pipeline: Any = Pipeline.PER_HOST_V2,
    host_call_every: int = 1,
    **more,
):
    tpu_config = tpu.TPUConfig(
        iterations_per_loop=5,
        per_host_input_for_training=pipeline,
        experimental_host_call_every_n_steps=host_call_every,
    )
    config = tpu.RunConfig(
        model_dir=str(model_dir),
        cluster=cluster,
        tf_random_seed=1,
        save_checkpoints_steps=10,
        tpu_config=tpu_config,
    )
    sizes = {"train_batch_size": 16, "eval_batch_size": 16, "predict_batch_size": 32}
    model_fn = (program or Program()).model_fn
    return tpu.TPUEstimator(model_fn, config=config, export_to_tpu=False, **sizes, **more)


class Machines:
    """The same program on emulated cores and on the TPU; each has a folder."""

    def __init__(self, tmp_path: Path, num_hosts: int):
        self._tmp_path, self._num_hosts = tmp_path, num_hosts

    @contextlib.contextmanager
    def emulated(self) -> Iterator[tuple[Path, None]]:
        with mock.patch.multiple(devices, _emulated_cores=0, _emulated_hosts=1):
            devices.emulate_tpu(CORES, self._num_hosts)
            yield self._tmp_path / "emulated", None

    @contextlib.contextmanager
    def tpu(self) -> Iterator[tuple[Path, Any]]:
        with rehearsal(self._num_hosts, CORES // self._num_hosts) as runtime:
            yield self._tmp_path / "tpu", runtime.resolver()
            assert runtime.started <= 1

    def both(self, run: Any) -> tuple[Any, Any]:
        """What `run(folder, cluster)` returns on emulated cores, and on the TPU."""
        with self.emulated() as machine:
            emulated = run(*machine)
        with self.tpu() as machine:
            return emulated, run(*machine)


@pytest.fixture
def machines(tmp_path):
    return lambda num_hosts=1: Machines(tmp_path, num_hosts)


def variables(model_dir: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_equal(found: Any, expected: Any) -> None:
    tf.nest.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, **TOLERANCE), found, expected
    )


# Training.


@pytest.mark.evidence("door", "rehearsed")
def test_it_is_a_genuine_strategy_on_devices_of_its_own(machines):
    with machines().tpu() as (_, cluster):
        cores = devices.tpu_cores(cluster, None, tpu.TPUConfig())
        assert isinstance(cores.strategy, tf.distribute.TPUStrategy)
        with cores.strategy.scope():
            variable = tf.Variable(0.0)
        copies = cores.strategy.experimental_local_results(variable)
        assert [copy.device[-5:] for copy in copies] == [f"CPU:{core}" for core in range(CORES)]


@one_and_two_hosts
@pytest.mark.evidence("training", "rehearsed")
@pytest.mark.evidence("hooks", "rehearsed")
@pytest.mark.evidence("hosts", "rehearsed")
def test_training_ends_with_the_same_variables(machines, num_hosts):
    def run(folder, cluster):
        program, hook = Program(), Steps()
        make(folder, cluster, program).train(input_fn, max_steps=17, hooks=[hook])
        return variables(folder), hook.seen, program.reported

    emulated, rehearsed = machines(num_hosts).both(run)
    assert_equal(rehearsed, emulated)
    _, seen, reported = rehearsed
    assert seen == [5, 10, 15, 17]
    assert [steps for steps, _ in reported] == [[step] * CORES for step in range(17)]


@one_and_two_hosts
@pytest.mark.parametrize(
    ("pipeline", "feed"),
    [
        (Pipeline.PER_HOST_V1, input_fn),
        (Pipeline.PER_SHARD_V1, tensors),
        (Pipeline.BROADCAST, input_fn),
        (Pipeline.SLICED, input_fn),
        (Pipeline.PER_HOST_V2, input_fn),
    ],
)
@pytest.mark.evidence("inputs", "rehearsed")
def test_every_input_pipeline_feeds_the_cores(machines, pipeline, feed, num_hosts):
    def run(folder, cluster):
        make(folder, cluster, pipeline=pipeline).train(feed, max_steps=5)
        return variables(folder)

    emulated, rehearsed = machines(num_hosts).both(run)
    assert_equal(rehearsed, emulated)


@one_and_two_hosts
@pytest.mark.evidence("host_call", "rehearsed")
def test_a_host_call_writes_summaries_at_every_step(machines, num_hosts):
    def write(step, loss, folder):
        with tf.summary.create_file_writer(folder).as_default():
            tf.summary.write("loss", tf.reduce_mean(loss), step=step[0])
            return tf1.summary.all_v2_summary_ops()

    def run(folder, cluster):
        class Writing(Program):
            def host_fn(self, step, loss):
                return write(step, loss, str(folder))

        make(folder, cluster, Writing()).train(input_fn, max_steps=6)
        events = [e for f in folder.glob("*.v2") for e in tf1.train.summary_iterator(str(f))]
        values = [(event.step, value) for event in events for value in event.summary.value]
        return {step: tf.make_ndarray(value.tensor) for step, value in values}

    emulated, rehearsed = machines(num_hosts).both(run)
    assert sorted(rehearsed) == [0, 1, 2, 3, 4, 5]
    assert_equal(rehearsed, emulated)


@one_and_two_hosts
@pytest.mark.evidence("hooks", "rehearsed")
def test_all_cores_get_what_a_hook_assigns_in_the_run_of_a_block(machines, num_hosts):
    class Scaled(Program):
        """Its weight rises by the mean of the cores' scales."""

        def model_fn(self, features, labels, mode, params):
            scale = tf1.get_variable("scale", [], initializer=tf1.zeros_initializer())
            weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
            optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
            loss = -weight * tf.stop_gradient(scale) + 0.0 * tf.reduce_mean(features)
            step = tf1.train.get_global_step()
            train_op = optimizer.minimize(loss, global_step=step, var_list=[weight])
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    class Assigning(tf1.train.SessionRunHook):
        def begin(self):
            (scale,) = (v for v in tf1.global_variables() if v.op.name == "scale")
            (self.weight,) = (v for v in tf1.global_variables() if v.op.name == "weight")
            self.op = scale.assign(10.0).op
            self.weights = []

        def before_run(self, run_context):
            return tf1.train.SessionRunArgs(self.op)

        def after_run(self, run_context, run_values):
            self.weights.append(run_context.session.run(self.weight))

    def run(folder, cluster):
        hook = Assigning()
        make(folder, cluster, Scaled()).train(input_fn, max_steps=15, hooks=[hook])
        return hook.weights

    for weights in machines(num_hosts).both(run):
        assert np.diff(weights).tolist() == [50.0, 50.0]


@one_and_two_hosts
@pytest.mark.parametrize(("every", "steps"), [(1, [1, 2, 3, 4, 5, 6]), (3, [1, 4, 6])])
@pytest.mark.evidence("host_call", "rehearsed")
def test_a_host_call_reads_what_the_step_has_written(machines, num_hosts, every, steps):
    def run(folder, cluster):
        class Reading(Program):
            def host_fn(self, step, loss):
                def note(step):
                    self.reported.append(int(step))
                    return np.int64(0)

                # Of none of its arguments, which would have to be there first.
                return tf1.py_func(note, [tf1.train.get_global_step().read_value()], tf.int64)

        program = Reading()
        make(folder, cluster, program, host_call_every=every).train(input_fn, max_steps=6)
        return program.reported

    emulated, rehearsed = machines(num_hosts).both(run)
    assert emulated == rehearsed == steps


def finite(batches):
    """An input of so many global batches; at the steps `nan_at` a core's features are NaN."""

    def of_cores(params, *nan_at):
        batch = 16 // params["context"].num_hosts
        features = np.resize(IMAGES, [batches * batch, FEATURES])
        for step in nan_at:
            features[(step - 1) * batch + 5] = np.nan
        labels = np.resize(LABELS, [batches * batch])
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return of_cores


@one_and_two_hosts
def test_training_ends_where_the_input_does(machines, num_hosts):
    def run(folder, cluster):
        hook = Steps()
        feed = finite(12)
        make(folder, cluster).train(lambda params: feed(params), max_steps=100, hooks=[hook])
        return variables(folder), hook.seen

    emulated, rehearsed = machines(num_hosts).both(run)
    assert_equal(rehearsed, emulated)
    assert rehearsed[0]["global_step"] == 12
    assert rehearsed[1] == [5, 10]


@pytest.mark.parametrize(
    "machine", ["emulated", pytest.param("1x8", marks=pytest.mark.slow), "2x4"]
)
@pytest.mark.evidence("nan", "rehearsed")
def test_nan_ends_training_after_its_block_and_is_told_with_its_step(machines, machine, log):
    """Source: `NanTensorHook` in a TPUEstimator of TF 1.15: it sees a block's last loss."""
    feed, hook = finite(20), Steps()
    here = machines(2 if machine == "2x4" else 1)
    with (
        here.emulated() if machine == "emulated" else here.tpu() as (folder, cluster),
        pytest.raises(tf1.train.NanLossDuringTrainingError),
    ):
        make(folder, cluster).train(lambda params: feed(params, 7), max_steps=20, hooks=[hook])
    assert hook.seen == [5, 10]
    assert "The loss is NaN since step 7." in log(logging.ERROR)


@pytest.mark.parametrize(
    "machine", ["emulated", pytest.param("1x8", marks=pytest.mark.slow), "2x4"]
)
@pytest.mark.evidence("nan", "rehearsed")
def test_nan_that_has_passed_is_not_where_the_last_one_began(machines, machine, log):
    class Forgetting(Program):
        """Its loss is that of the batch alone."""

        def model_fn(self, features, labels, mode, params):
            weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
            loss = tf.reduce_mean(features)
            gradient = tf1.tpu.cross_replica_sum(tf.ones([]))
            optimizer = tf1.train.GradientDescentOptimizer(1.0)
            step = tf1.train.get_global_step()
            train_op = optimizer.apply_gradients([(gradient, weight)], global_step=step)
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    feed = finite(20)
    here = machines(2 if machine == "2x4" else 1)
    with (
        here.emulated() if machine == "emulated" else here.tpu() as (folder, cluster),
        pytest.raises(tf1.train.NanLossDuringTrainingError),
    ):
        make(folder, cluster, Forgetting()).train(
            lambda params: feed(params, 2, 6, 9, 10), max_steps=20
        )
    assert "The loss is NaN since step 9." in log(logging.ERROR)


# Evaluation and prediction.


@one_and_two_hosts
@pytest.mark.evidence("evaluation", "rehearsed")
def test_evaluation_has_the_same_metrics(machines, num_hosts):
    def run(folder, cluster):
        model = make(folder, cluster)
        model.train(input_fn, max_steps=5)
        return model.evaluate(input_fn, steps=3)

    emulated, rehearsed = machines(num_hosts).both(run)
    assert rehearsed["global_step"] == 5
    assert_equal(rehearsed, emulated)


@pytest.mark.parametrize(
    ("pipeline", "num_hosts"), [(Pipeline.PER_HOST_V2, 1), (Pipeline.BROADCAST, 2)]
)
@pytest.mark.evidence("prediction", "rehearsed")
def test_prediction_leaves_out_the_padding(machines, pipeline, num_hosts):
    """Several hosts predict in BROADCAST alone, as TPUEstimator's did."""

    def run(folder, cluster):
        model = make(folder, cluster, pipeline=pipeline)
        model.train(input_fn, max_steps=5)
        return list(model.predict(all_once))

    emulated, rehearsed = machines(num_hosts).both(run)
    assert len(rehearsed) == EXAMPLES  # a batch of 32, and one of 16 that is padded
    assert_equal(rehearsed, emulated)
    np.testing.assert_array_equal([example["features"] for example in rehearsed], IMAGES)


@pytest.mark.evidence("turns", "rehearsed")
def test_training_and_evaluation_in_turns(machines):
    def run(folder, cluster):
        train_spec = estimator.TrainSpec(input_fn, max_steps=20)
        eval_spec = estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=0)
        results, _ = estimator.train_and_evaluate(make(folder, cluster), train_spec, eval_spec)
        return results, variables(folder)

    emulated, rehearsed = machines().both(run)
    assert_equal(rehearsed, emulated)
    assert rehearsed[0]["global_step"] == 20


# Strategies that programs make.


@pytest.mark.parametrize(
    "strategy_class",
    [
        tf.distribute.TPUStrategy,
        tf.distribute.experimental.TPUStrategy,
        tf1.distribute.experimental.TPUStrategy,
    ],
)
@pytest.mark.evidence("strategies", "rehearsed")
def test_an_estimator_trains_and_evaluates_under_train_distribute(machines, strategy_class):
    def model_fn(features, labels, mode):
        logits = tf.matmul(features, tf1.get_variable("weights", [FEATURES, CLASSES]))
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf1.train.get_global_step()
        return estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=tf1.train.AdamOptimizer(0.05).minimize(loss, global_step=step),
            eval_metric_ops=metric_fn(labels, logits),
        )

    def run(folder, cluster):
        strategy = strategy_class(cluster) if cluster else devices.emulated_strategy()
        config = estimator.RunConfig(
            str(folder), tf_random_seed=1, train_distribute=strategy, eval_distribute=strategy
        )
        model = estimator.Estimator(model_fn, config=config)
        model.train(lambda: input_fn({"batch_size": 4}), max_steps=5)
        return model.evaluate(lambda: input_fn({"batch_size": 4}), steps=16), variables(folder)

    emulated, rehearsed = machines().both(run)
    assert_equal(rehearsed, emulated)


@pytest.mark.parametrize("given", ["strategy", "train_distribute"])
@pytest.mark.evidence("strategies", "rehearsed")
def test_a_tpu_estimator_trains_on_the_programs_own_strategy(machines, given):
    def run(folder, cluster):
        strategy = tf.distribute.TPUStrategy(cluster) if cluster else None
        of_config = {"train_distribute": strategy} if given == "train_distribute" else {}
        of_model = {"strategy": strategy} if given == "strategy" else {}
        tpu_config = tpu.TPUConfig(5, per_host_input_for_training=Pipeline.PER_HOST_V2)
        config = tpu.RunConfig(
            model_dir=str(folder), tf_random_seed=1, tpu_config=tpu_config, **of_config
        )
        model = tpu.TPUEstimator(Program().model_fn, config=config, train_batch_size=16, **of_model)
        model.train(input_fn, max_steps=5)
        return variables(folder)

    emulated, rehearsed = machines().both(run)
    assert_equal(rehearsed, emulated)


def test_one_shard_is_one_core(machines):
    def run(folder, cluster):
        config = tpu.RunConfig(
            model_dir=str(folder),
            cluster=cluster,
            tf_random_seed=1,
            tpu_config=tpu.TPUConfig(5, num_shards=1),
        )
        model = tpu.TPUEstimator(Program().model_fn, config=config, train_batch_size=16)
        model.train(input_fn, max_steps=5)
        return variables(folder)

    emulated, rehearsed = machines().both(run)
    assert_equal(rehearsed, emulated)


# Several estimators, and what they hand on.


@one_and_two_hosts
@pytest.mark.evidence("warm_start", "rehearsed")
def test_estimators_of_one_process_warm_start_from_one_another(machines, num_hosts):
    def run(folder, cluster):
        make(folder / "first", cluster).train(input_fn, max_steps=5)
        first = str(folder / "first")
        make(folder / "second", cluster, warm_start_from=first).train(input_fn, max_steps=5)
        make(folder / "third", cluster).train(input_fn, max_steps=5)
        return [variables(folder / name) for name in ("first", "second", "third")]

    emulated, rehearsed = machines(num_hosts).both(run)
    assert_equal(rehearsed, emulated)
    first, second, third = rehearsed
    assert_equal(third, first)
    assert not np.allclose(second["weights"], first["weights"])


@one_and_two_hosts
@pytest.mark.evidence("checkpoints", "rehearsed")
def test_a_cpu_goes_on_with_what_a_tpu_saved_and_back(machines, num_hosts):
    def one_batch(params):
        dataset = tf.data.Dataset.from_tensor_slices((IMAGES[:16], LABELS[:16]))
        return dataset.batch(params["batch_size"], drop_remainder=True).repeat()

    class Steady(Program):
        def model_fn(self, features, labels, mode, params):
            zeros = tf1.zeros_initializer()
            weights = tf1.get_variable("weights", [FEATURES, CLASSES], initializer=zeros)
            loss = tf1.losses.sparse_softmax_cross_entropy(labels, tf.matmul(features, weights))
            optimizer = tf1.train.AdamOptimizer(0.05)
            if params["use_tpu"]:
                optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
            train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def train(folder, cluster, use_tpu, max_steps):
        pipeline = Pipeline.SLICED if use_tpu else Pipeline.PER_HOST_V1
        model = make(folder, cluster, Steady(), pipeline, use_tpu=use_tpu)
        model.train(one_batch, max_steps=max_steps)

    with machines(num_hosts).tpu() as (folder, cluster):
        train(folder / "mixed", cluster, True, 5)
        train(folder / "mixed", None, False, 10)
        train(folder / "mixed", cluster, True, 15)
        train(folder / "host", None, False, 15)
        found, expected = variables(folder / "mixed"), variables(folder / "host")
    assert found["global_step"] == 15
    assert_equal(found, expected)


@one_and_two_hosts
@pytest.mark.evidence("export", "rehearsed")
def test_what_a_tpu_trained_is_exported(machines, num_hosts):
    with machines(num_hosts).tpu() as (folder, cluster):
        model = make(folder, cluster)
        model.train(input_fn, max_steps=5)
        on_cpu = make(folder, None, use_tpu=False)  # two hosts do not predict
        expected = next(on_cpu.predict(all_once))["logits"]

        def receiver():
            placeholder = tf1.placeholder(tf.float32, [None, FEATURES], name="x")
            return estimator.export.TensorServingInputReceiver(placeholder, {"x": placeholder})

        exported = model.export_saved_model(str(folder / "exported"), receiver)
    path = exported.decode() if isinstance(exported, bytes) else exported
    served = tf.saved_model.load(path).signatures["serving_default"]
    (logits,) = served(x=tf.constant(IMAGES[:1])).values()
    np.testing.assert_allclose(logits[0], expected, **TOLERANCE)
