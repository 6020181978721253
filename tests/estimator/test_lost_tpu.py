"""A TPU that is lost while a program uses it, as `tests/rehearsal.py` loses one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import tpu_system
from estimator2strategy.errors import DeviceError
from tests.rehearsal import rehearsal

pytestmark = pytest.mark.oldest

tf1 = tf.compat.v1
tpu = estimator.tpu

CORES = 2  # sums of two are the same in any order, to the last bit
EXAMPLES = 1000
_random = np.random.RandomState(0)
FEATURES = _random.rand(EXAMPLES, 3).astype(np.float32)
LABELS = _random.rand(EXAMPLES, 1).astype(np.float32)


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
    dataset = dataset.shuffle(100, seed=1).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def in_order(params):
    """The first 64 examples, once."""
    return tf.data.Dataset.from_tensor_slices(FEATURES[:64]).batch(params["batch_size"])


class Program:
    """A model_fn whose host_call notes the loss of each step, each time that it runs."""

    def __init__(self):
        self.losses: list[tuple[int, float]] = []

    def model_fn(self, features, labels, mode, params):
        predicted = tf.matmul(features, tf1.get_variable("weights", [3, 1]))
        if mode == estimator.ModeKeys.PREDICT:
            predictions = {"features": features, "predicted": predicted}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        loss = tf1.losses.mean_squared_error(labels, predicted)
        if mode == estimator.ModeKeys.EVAL:
            metrics = (lambda labels: {"mean": tf1.metrics.mean(labels)}, [labels])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        step = tf1.train.get_global_step()
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.01))
        train_op = optimizer.minimize(loss, global_step=step)
        reported = [tf.reshape(step, [1]), tf.reshape(loss, [1])]
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=(self.host_fn, reported)
        )

    def host_fn(self, step, loss):
        def note(step, loss):
            self.losses.append((int(step[0]), float(np.sum(loss))))
            return np.int64(0)

        return tf1.py_func(note, [step, loss], tf.int64)


def make(model_dir: Path, program: Program, options: Any = None):
    per_host_v2 = tpu.InputPipelineConfig.PER_HOST_V2
    config = tpu.RunConfig(
        model_dir=str(model_dir),
        tf_random_seed=1,
        save_checkpoints_steps=10,
        tpu_config=tpu.TPUConfig(5, per_host_input_for_training=per_host_v2),
    )
    sizes = {f"{mode}_batch_size": 8 for mode in ("train", "eval", "predict")}
    return tpu.TPUEstimator(program.model_fn, config=config, options=options, **sizes)


def variables(model_dir: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_trains_as_if_nothing_was(tmp_path: Path, steps: int, after: list[int], **options: Any):
    undisturbed, disturbed = Program(), Program()
    with rehearsal(cores_per_host=CORES):
        make(tmp_path / "undisturbed", undisturbed).train(input_fn, max_steps=steps)
    with rehearsal(cores_per_host=CORES) as runtime:
        runtime.lose(after)
        given = estimator.TrainingOptions(**options)
        make(tmp_path / "disturbed", disturbed, given).train(input_fn, max_steps=steps)
        assert runtime.started == 1 + len(after)
    expected = dict(undisturbed.losses)
    assert len(expected) == steps
    assert {step for step, _ in disturbed.losses} == expected.keys()
    differ = [(step, loss) for step, loss in disturbed.losses if loss != expected[step]]
    assert differ == [], [expected[step] for step, _ in differ]
    np.testing.assert_equal(variables(tmp_path / "disturbed"), variables(tmp_path / "undisturbed"))


@pytest.mark.evidence("preemption", "rehearsed")
def test_training_goes_on_from_the_latest_checkpoint(tmp_path, log):
    # In the first block, in the middle of one, and as one begins.
    assert_trains_as_if_nothing_was(tmp_path, 40, after=[3, 18, 25])
    said = [line for line in log(logging.WARNING) if line.startswith("The TPU was lost")]
    folder = tmp_path / "disturbed"
    steps = [int(line.partition(f"{folder}/model.ckpt-")[2].partition(";")[0]) for line in said]
    assert steps == [0, 10, 30]
    assert all("Socket closed" in line for line in said)
    assert "The input starts anew" not in log.text


@pytest.mark.slow
@pytest.mark.evidence("preemption", "rehearsed")
def test_training_survives_fifty_losses_at_random_steps(tmp_path):
    after = np.random.RandomState(2026).randint(0, 25, size=50).tolist()
    assert_trains_as_if_nothing_was(tmp_path, 500, after, max_restarts=20)


@pytest.mark.evidence("preemption", "rehearsed")
def test_it_gives_up_where_no_step_gets_further(tmp_path):
    options = estimator.TrainingOptions(max_restarts=2)
    with rehearsal(cores_per_host=CORES) as runtime:
        runtime.lose(after=[12, 2, 2, 2])
        with pytest.raises(DeviceError, match="lost 3 times in a row") as error:
            make(tmp_path, Program(), options).train(input_fn, max_steps=20)
        assert runtime.started == 1 + 2
    assert "max_restarts" in str(error.value)
    assert isinstance(error.value.__cause__, (tf.errors.UnavailableError, tf.errors.AbortedError))
    assert variables(tmp_path)["global_step"] == 10


@pytest.mark.evidence("preemption", "rehearsed")
def test_a_tpu_that_does_not_come_back_at_once_is_asked_again(tmp_path):
    with rehearsal(cores_per_host=CORES) as runtime:
        model = make(tmp_path, Program())
        runtime.lose(after=[4])
        model.train(input_fn, max_steps=2)
        runtime.refusals = 1
        model.train(input_fn, max_steps=10)
        assert (runtime.started, runtime.refusals) == (2, 0)
    assert variables(tmp_path)["global_step"] == 10


class LosesTheTpu(tf1.train.CheckpointSaverListener):
    """Has the TPU lost, once, just before a checkpoint of step 15 is written."""

    def __init__(self, runtime):
        self.runtime, self.saved = runtime, []

    def before_save(self, session, global_step_value):
        if global_step_value == 15 and self.runtime.started == 1:
            self.runtime.lost = True

    def after_save(self, session, global_step_value):
        self.saved.append(int(global_step_value))


@pytest.mark.evidence("preemption", "rehearsed")
def test_a_tpu_that_is_lost_in_the_last_save_is_started_again(tmp_path):
    with rehearsal(cores_per_host=CORES):
        make(tmp_path / "undisturbed", Program()).train(input_fn, max_steps=15)
    with rehearsal(cores_per_host=CORES) as runtime:
        listener = LosesTheTpu(runtime)
        model = make(tmp_path / "disturbed", Program())
        model.train(input_fn, max_steps=15, saving_listeners=[listener])
        assert runtime.started == 2
    assert listener.saved == [0, 10, 10, 15]  # 10 once more, by the session that goes on from it
    np.testing.assert_equal(variables(tmp_path / "disturbed"), variables(tmp_path / "undisturbed"))


@pytest.mark.evidence("preemption", "rehearsed")
def test_where_no_session_can_be_made_it_says_which_checkpoint_is_complete(tmp_path):
    """At the end of the input MonitoredSession makes no new session."""

    def ends(params):
        return input_fn(params).take(30)  # for two cores

    with rehearsal(cores_per_host=CORES) as runtime:
        model = make(tmp_path, Program())
        with pytest.raises(
            DeviceError, match=r"lost after the last step: .*Socket closed"
        ) as error:
            model.train(ends, max_steps=99, saving_listeners=[LosesTheTpu(runtime)])
        assert (
            f"global step 15. The latest complete checkpoint is {tmp_path}/model.ckpt-10."
            in str(error.value)
        )
        model.train(input_fn, max_steps=12)  # goes on
        assert runtime.started == 2
    assert variables(tmp_path)["global_step"] == 12


@pytest.mark.evidence("preemption", "rehearsed")
def test_an_evaluation_that_loses_the_tpu_at_its_end_says_so(tmp_path):
    class Losing(tf1.train.SessionRunHook):
        def end(self, session):
            runtime.lost = True

    with rehearsal(cores_per_host=CORES) as runtime:
        model = make(tmp_path, Program())
        model.train(input_fn, max_steps=5)
        with pytest.raises(DeviceError, match="results of 2 batches are gone: evaluate again"):
            model.evaluate(input_fn, steps=2, hooks=[Losing()])


@pytest.mark.evidence("preemption", "rehearsed")
def test_an_evaluation_begins_anew(tmp_path):
    with rehearsal(cores_per_host=CORES) as runtime:
        model = make(tmp_path, Program())
        model.train(input_fn, max_steps=5)
        expected = model.evaluate(input_fn, steps=8)
        runtime.lose(after=[3, 6])
        assert model.evaluate(input_fn, steps=8) == expected
        assert runtime.started == 3


@pytest.mark.evidence("strategies", "rehearsed")
def test_a_strategy_of_one_core_trains_and_evaluates_on_that_core(tmp_path):
    """The loss of the TPU shows that it is used."""

    def model_fn(features, labels, mode):
        predicted = tf.matmul(features, tf1.get_variable("weights", [3, 1]))
        loss = tf1.losses.mean_squared_error(labels, predicted)
        step = tf1.train.get_global_step()
        train_op = tf1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def run(folder, strategy=None):
        config = estimator.RunConfig(
            str(folder), tf_random_seed=1, train_distribute=strategy, eval_distribute=strategy
        )
        model = estimator.Estimator(model_fn, config=config)
        model.train(lambda: input_fn({"batch_size": 8}), max_steps=5)
        return model.evaluate(lambda: input_fn({"batch_size": 8}), steps=3)["loss"]

    expected = run(tmp_path / "host")
    with rehearsal(cores_per_host=CORES) as runtime:
        resolver = runtime.resolver()
        topology = tpu_system.start(resolver)
        one = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=1)
        runtime.lose(after=[4, 7])  # in training, and in the evaluation
        strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=one)
        np.testing.assert_allclose(run(tmp_path / "core", strategy), expected, rtol=1e-5)
        assert runtime.started == 3


@pytest.mark.evidence("preemption", "rehearsed")
def test_a_prediction_goes_on_with_the_next_example(tmp_path):
    with rehearsal(cores_per_host=CORES) as runtime:
        model = make(tmp_path, Program())
        model.train(input_fn, max_steps=5)
        runtime.lose(after=[3, 6])
        found = list(model.predict(in_order))
        assert runtime.started == 3
    np.testing.assert_array_equal([example["features"] for example in found], FEATURES[:64])
