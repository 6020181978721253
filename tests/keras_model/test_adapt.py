"""`adapt`: the steps of a legacy program in a loop of one's own, as Estimator runs them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import Estimator, EstimatorSpec, RunConfig, TPUEstimator, adapt
from estimator2strategy.errors import CheckpointError
from estimator2strategy.estimator import tpu
from tests.hooks import LossRecorder
from tests.keras_model.programs import BATCH, dataset, model_fn, tpu_model_fn
from tests.strategies import mirrored

tf1 = tf.compat.v1
STEPS = 20
TOLERANCE = {"rtol": 1e-5, "atol": 0}


def held_out():
    return dataset(100, repeat=False)


def images():
    return held_out().map(lambda image, label: image)


def adapted(fn=model_fn, **arguments: Any):
    arguments = {"params": {}, "eval_input_fn": held_out, "predict_input_fn": images, **arguments}
    return adapt(fn, dataset, **arguments)


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> str:
    """A checkpoint after three steps of an Estimator."""
    folder = str(tmp_path_factory.mktemp("start"))
    return Estimator(model_fn, folder, params={}).train(dataset, steps=3).latest_checkpoint()


def go_on(start: str, folder: str, strategy=None) -> tuple[Estimator, list[float]]:
    """An Estimator that goes on from there for STEPS steps, and its losses."""
    saver_of = adapted(model_dir=folder)
    saver_of.load_checkpoint(start)
    saver_of.save_checkpoint()
    config = RunConfig(eval_distribute=strategy)
    estimator = Estimator(model_fn, folder, config, {}, strategy=strategy)
    losses = LossRecorder()
    estimator.train(dataset, steps=STEPS, hooks=[losses])
    return estimator, losses.losses


@pytest.fixture(scope="module")
def trained(start, tmp_path_factory) -> tuple[Estimator, list[float]]:
    return go_on(start, str(tmp_path_factory.mktemp("trained")))


@pytest.fixture(scope="module")
def looped(start):
    """An adapted model that went on from there, and its losses."""
    model = adapted()
    model.load_checkpoint(start)
    losses = [float(model.train()["loss"]) for _ in range(STEPS)]
    return model, losses


def assert_same_variables(model, estimator):
    assert set(model.legacy_variables) == set(estimator.get_variable_names())
    for name, variable in model.legacy_variables.items():
        expected = estimator.get_variable_value(name)
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=name)


def as_floats(results):
    return {name: float(value) for name, value in results.items()}


def test_losses_and_variables_are_those_of_estimator(looped, trained):
    np.testing.assert_allclose(looped[1], trained[1], **TOLERANCE)
    assert_same_variables(looped[0], trained[0])


def test_results_of_evaluate_are_those_of_estimator_each_time(looped, trained):
    expected = pytest.approx(as_floats(trained[0].evaluate(held_out)), rel=1e-5)
    assert as_floats(looped[0].evaluate()) == expected
    assert as_floats(looped[0].evaluate(tf.constant(-1))) == expected
    few = pytest.approx(as_floats(trained[0].evaluate(held_out, steps=2)), rel=1e-5)
    assert as_floats(looped[0].evaluate(2)) == few


def test_predictions_are_those_of_estimator(looped, trained):
    expected = list(trained[0].predict(images, yield_single_examples=False))
    for found in (list(looped[0].predict()), list(looped[0].predict(3))):
        assert len(found) in (len(expected), 3)
        for mine, its in zip(found, expected, strict=False):
            np.testing.assert_allclose(mine["p"], its["p"], rtol=1e-5, atol=1e-7)


def test_steps_of_one_execution_change_no_number(start, looped):
    model = adapted(steps_per_execution=6)
    model.load_checkpoint(start)
    assert float(model.train()["loss"]) == pytest.approx(looped[1][5], rel=1e-5)
    assert model.global_step == 9
    losses = model.train(tf.constant(STEPS - 6))
    assert float(losses["loss"]) == pytest.approx(looped[1][-1], rel=1e-5)
    assert model.global_step.numpy() == STEPS + 3


def test_variables_are_those_of_the_program(looped):
    model = looped[0]
    assert list(model.legacy_variables)[:2] == ["global_step", "hidden/kernel"]
    assert model.variables == tuple(model.legacy_variables.values())
    assert all(isinstance(variable, tf.Variable) for variable in model.variables)
    names = [variable.name for variable in model.trainable_variables]
    assert names[:2] == ["hidden/kernel:0", "hidden/bias:0"]
    assert "bn/moving_mean:0" not in names


def test_keras_metrics_are_those_of_model_fn(looped):
    metrics = looped[0].keras_metrics
    assert list(metrics) == ["accuracy", "f1"]
    assert all(isinstance(metric, keras.metrics.Metric) for metric in metrics.values())


def test_estimator_goes_on_from_its_checkpoint(looped, tmp_path):
    path = looped[0].save_checkpoint(tmp_path)
    assert path == str(tmp_path / f"model.ckpt-{STEPS + 3}")
    estimator = Estimator(model_fn, str(tmp_path), params={})
    assert estimator.latest_checkpoint() == path
    expected = pytest.approx(as_floats(looped[0].evaluate()), rel=1e-5)
    assert as_floats(estimator.evaluate(held_out)) == expected
    assert estimator.train(dataset, steps=1).get_variable_value("global_step") == STEPS + 4
    assert looped[0].global_step == STEPS + 3


def test_replicas_train_and_evaluate_as_those_of_estimator(start, tmp_path):
    strategy = mirrored(2)
    with strategy.scope():
        model = adapted()
        model.load_checkpoint(start)
        found = [float(model.train()["loss"]) for _ in range(STEPS)]
    estimator, expected = go_on(start, str(tmp_path / "model"), strategy)
    np.testing.assert_allclose(found, expected, **TOLERANCE)
    assert_same_variables(model, estimator)
    # Each replica has moving averages of its own, of which an Estimator saves the first one's.
    assert as_floats(model.evaluate()) == pytest.approx(
        as_floats(estimator.evaluate(held_out)), rel=1e-5
    )
    model.train(2)
    path = model.save_checkpoint(tmp_path / "model")
    assert as_floats(model.evaluate()) == pytest.approx(
        as_floats(estimator.evaluate(held_out, checkpoint_path=path)), rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.evidence("adapt", "cpu")
def test_cores_train_evaluate_and_predict_as_those_of_tpu_estimator(start, tmp_path):
    def of_batches(repeat):
        return lambda params: dataset(params["batch_size"], repeat, take=512)

    config = tpu.RunConfig(save_summary_steps=1, tpu_config=tpu.TPUConfig(iterations_per_loop=1))
    sizes = {"train_batch_size": BATCH, "eval_batch_size": BATCH, "predict_batch_size": BATCH}
    folder, strategy = str(tmp_path), mirrored(8)
    estimator = TPUEstimator(cores_model_fn, folder, config, {}, **sizes, strategy=strategy)
    eight = lambda params: of_batches(True)(params).take(8)  # noqa: E731
    inputs = {"eval_input_fn": eight, "predict_input_fn": of_batches(False)}
    model = adapt(
        cores_model_fn,
        of_batches(True),
        **inputs,
        params={},
        use_tpu=True,
        train_batch_size=BATCH,
        strategy=strategy,
    )
    model.save_checkpoint(folder)
    found = [float(model.train()["loss"]) for _ in range(STEPS)]
    estimator.train(of_batches(True), steps=STEPS)
    np.testing.assert_allclose(found, losses_in(tmp_path), **TOLERANCE)
    assert_same_variables(model, estimator)
    expected = as_floats(estimator.evaluate(eight, steps=8))
    assert as_floats(model.evaluate()) == pytest.approx(expected, rel=1e-5)
    theirs = list(estimator.predict(of_batches(False), yield_single_examples=False))
    mine = list(model.predict())
    assert len(mine) == len(theirs) == 8
    for batch, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(batch["p"], other["p"], rtol=1e-5, atol=1e-7)


def cores_model_fn(features, labels, mode, params):
    if mode != "infer":
        return tpu_model_fn(features, labels, mode, params)
    spec = model_fn(features, labels, mode, params)
    return tpu.TPUEstimatorSpec(mode, predictions=spec.predictions)


def losses_in(folder) -> list[float]:
    """The losses that a training has summarised."""
    (path,) = folder.glob("events*")
    values = [v for e in tf1.train.summary_iterator(str(path)) for v in e.summary.value]
    return [value.simple_value for value in values if value.tag == "loss"]


def test_an_estimator_brings_all_that_it_runs_with(start, trained):
    model = adapt(Estimator(model_fn, params={}), dataset)
    model.load_checkpoint(start)
    assert float(model.train()["loss"]) == pytest.approx(trained[1][0], rel=1e-5)


def test_a_step_runs_beside_keras_in_one_function_of_one_scope(start, trained):
    strategy = mirrored(2)
    with strategy.scope():
        model = adapted(steps_per_execution=2)
        own = keras.Sequential([keras.Input([64]), keras.layers.Dense(10)])
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build(own.trainable_variables)
    crossentropy = keras.losses.sparse_categorical_crossentropy

    @tf.function
    def both(x, y):
        def own_step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(crossentropy(y, own(x), from_logits=True))
            gradients = tape.gradient(loss, own.trainable_variables)
            optimizer.apply_gradients(zip(gradients, own.trainable_variables, strict=True))
            return loss

        legacy = model.train_step()["loss"]
        return legacy, strategy.reduce("MEAN", strategy.run(own_step), axis=None)

    losses = np.array([both(*next(iter(dataset()))) for _ in range(STEPS)])
    assert model.global_step == 2 * STEPS
    assert (losses[-1] < losses[0] / 2).all()
    # What ran in a function of the user's own counts in the next call.
    model.train(3)
    assert model.global_step == 2 * STEPS + 3


def test_an_evaluation_alone_is_of_the_checkpoint(start, trained):
    model = adapt(model_fn, eval_input_fn=held_out, predict_input_fn=images, params={})
    model.load_checkpoint(start)
    expected = as_floats(trained[0].evaluate(held_out, checkpoint_path=start))
    assert as_floats(model.evaluate()) == pytest.approx(expected, rel=1e-5)
    assert len(list(model.predict())) == 7
    with pytest.raises(
        ValueError, match=r"train needs input_fn, given: None(.|\n)*Pass input_fn to adapt"
    ):
        model.train()


def test_the_input_ends_between_executions_and_says_so():
    model = adapt(model_fn, lambda: dataset(64, repeat=False, take=320), params={})
    model.train(3)
    assert np.isfinite(model.train(10)["loss"])  # of the last of two steps
    assert model.global_step == 5
    with pytest.raises(tf.errors.OutOfRangeError, match=r"have ended, at global step 5.*let"):
        model.train()


def test_the_input_ends_within_an_execution():
    model = adapt(
        model_fn, lambda: dataset(64, repeat=False, take=320), params={}, steps_per_execution=3
    )
    model.train()
    assert np.isfinite(model.train()["loss"])
    assert model.global_step == 5


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("execution", "steps"), [(10, 25), (10, 4), (3, 9)])
def test_train_runs_the_steps_that_are_asked_for_whatever_an_execution_runs(
    execution, steps, cores
):
    strategy = mirrored(cores) if cores > 1 else None
    model = adapt(
        scalar_model_fn, numbers, params={}, strategy=strategy, steps_per_execution=execution
    )
    model.train(steps)
    assert model.global_step == steps
    assert model.legacy_variables["done"] == steps
    model.train(1)
    assert model.global_step == steps + 1


def test_checkpoints_of_the_program_lie_where_the_shortened_executions_end(tmp_path):
    hook = tf1.train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    params = {"hook": hook}
    model = adapt(scalar_model_fn, numbers, params=params, steps_per_execution=3)
    for _ in range(2):
        model.train(4)  # executions of 3 steps and of 1
    model.close()
    found = {int(path.stem.rpartition("-")[2]) for path in tmp_path.glob("model.ckpt-*.index")}
    assert found >= {4, 8}
    assert model.global_step == 8


def scalar_model_fn(features, labels, mode, params):
    """Its variable is the number of its steps; the loss of step 4 is NaN if `nan` is given."""
    del labels
    done = tf1.get_variable("done", [], initializer=tf1.zeros_initializer())
    step = tf1.train.get_global_step()
    taken = tf.reduce_sum(0 * tf.cast(features, tf.float32))
    loss = tf.where(
        tf.logical_and(tf.equal(step, 3), params.get("nan", False)), np.nan, done + taken
    )
    average = tf1.train.ExponentialMovingAverage(0.5)
    scaffold = None
    if mode == "train":
        with tf.control_dependencies([done.assign_add(1.0), step.assign_add(1)]):
            train_op = average.apply([done])
        hooks = [params["hook"]] if "hook" in params else []
        return EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)
    if params.get("averages"):
        scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(average.variables_to_restore()))
    return EstimatorSpec(mode, loss=done + taken, scaffold=scaffold)


def numbers():
    return tf.data.Dataset.range(3).repeat().batch(1)


def some_numbers():
    return numbers().take(2)


def test_a_nan_loss_ends_the_execution_with_an_error():
    model = adapt(scalar_model_fn, numbers, params={"nan": True}, steps_per_execution=10)
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        model.train()
    assert model.global_step == 4


class Runs(tf1.train.SessionRunHook):
    """Counts what it is shown, and stops at the third run."""

    def __init__(self):
        self.seen: list[int] = []
        self.ended = False

    def __deepcopy__(self, memo):
        return self

    def after_run(self, run_context, run_values):
        self.seen.append(int(run_context.session.run(tf1.train.get_global_step())))
        if len(self.seen) == 3:
            run_context.request_stop()

    def end(self, session):
        self.ended = True


def test_hooks_of_model_fn_are_called_around_executions():
    hook = Runs()
    model = adapt(scalar_model_fn, numbers, params={"hook": hook}, steps_per_execution=5)
    model.train(12)
    assert hook.seen == [5, 10, 12]
    with pytest.raises(RuntimeError, match="A hook of model_fn asked to stop, at global step 12"):
        model.train()
    model.close()
    assert hook.ended


def test_a_saver_of_the_program_reads_averages_for_weights(tmp_path):
    arguments = {"params": {"averages": True}, "model_dir": str(tmp_path)}
    model = adapt(scalar_model_fn, numbers, eval_input_fn=some_numbers, **arguments)
    estimator = Estimator(scalar_model_fn, **arguments)
    for _ in range(2):
        model.train(2)
        model.save_checkpoint()
        assert as_floats(model.evaluate()) == as_floats(estimator.evaluate(some_numbers))
    assert model.evaluate()["loss"] < model.legacy_variables["done"].numpy() == 4
    assert len(list(tmp_path.glob("*.index"))) == 2


def test_old_checkpoints_are_removed_as_by_estimator(tmp_path):
    config = RunConfig(keep_checkpoint_max=2)
    for _ in range(2):  # the second time as a program that is started again
        model = adapt(scalar_model_fn, numbers, params={}, model_dir=str(tmp_path), config=config)
        model.load_checkpoint()
        for _ in range(3):
            model.train()
            model.save_checkpoint()
    names = sorted(path.stem for path in tmp_path.glob("*.index"))
    assert names == ["model.ckpt-5", "model.ckpt-6"]


def test_a_partial_checkpoint_leaves_the_rest(start, tmp_path):
    model = adapt(scalar_model_fn, numbers, params={})
    with pytest.raises(CheckpointError, match="missing in the checkpoint: done float32"):
        model.load_checkpoint(start)
    model.train()
    model.load_checkpoint(start, partial=True)
    model.train()
    assert model.global_step == 4
    assert model.legacy_variables["done"].numpy() == 2


def test_a_checkpoint_of_objects_has_it_beside_keras(looped, tmp_path):
    head = keras.layers.Dense(3)
    head.build([None, 4])
    path = tf.train.Checkpoint(model=looped[0], head=head).save(tmp_path / "both")
    other = adapted()
    tf.train.Checkpoint(model=other, head=head).restore(path).assert_existing_objects_matched()
    for name, variable in looped[0].legacy_variables.items():
        np.testing.assert_array_equal(other.legacy_variables[name].numpy(), variable.numpy())


class Controller:
    """Calls a trainer, an evaluator and a checkpoint manager as Orbit's Controller does."""

    def __init__(self, model, manager):
        assert isinstance(model.global_step, tf.Variable)
        assert isinstance(manager, tf.train.CheckpointManager)
        self._model, self._manager = model, manager
        self.restored = manager.restore_or_initialize()

    def train(self, steps: int, per_loop: int) -> None:
        now = int(self._model.global_step.numpy())
        while now < steps:
            count = min(steps - now, per_loop)
            output = self._model.train(tf.convert_to_tensor(count, dtype=tf.int32))
            assert set(output) == {"loss"}
            now += count
            assert self._model.global_step.numpy() == now
            self._manager.save(checkpoint_number=now, check_interval=True, options=None)
        self._manager.save(checkpoint_number=now, check_interval=False, options=None)
        self._manager.sync()


def test_a_controller_like_orbits_trains_it(tmp_path):
    folder = str(tmp_path)
    model = adapt(scalar_model_fn, numbers, eval_input_fn=some_numbers, model_dir=folder, params={})
    controller = Controller(model, model.checkpoint_manager(checkpoint_interval=4))
    assert controller.restored is None
    controller.train(10, per_loop=2)
    manager = model.checkpoint_manager()
    assert [path.rpartition("-")[2] for path in manager.checkpoints] == ["2", "6", "10"]
    assert model.evaluate(tf.constant(-1))["loss"] == 10
    again = adapt(scalar_model_fn, numbers, model_dir=folder, params={})
    assert Controller(again, again.checkpoint_manager()).restored == manager.latest_checkpoint
    assert again.global_step == 10
    model.checkpoint_manager().checkpoint.restore(manager.checkpoints[0])
    assert model.global_step == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "given no input_fn(.|\\n)*Pass input_fn to train"),
        ({"input_fn": 3}, TypeError, "input_fn must be callable, given: 3\\n"),
        ({"eval_input_fn": [1]}, TypeError, r"eval_input_fn must be callable, given: \[1\]"),
        (
            {"input_fn": numbers, "model_fn": 1},
            TypeError,
            "model_fn must be a function, or an Estimator, given: 1",
        ),
        (
            {"input_fn": numbers, "steps_per_execution": 0},
            ValueError,
            "steps_per_execution must be an int of at least 1, given: 0",
        ),
        (
            {"input_fn": numbers, "steps_per_execution": 2.5},
            ValueError,
            "steps_per_execution must be an int of at least 1, given: 2.5",
        ),
        (
            {"input_fn": numbers, "train_batch_size": 8},
            ValueError,
            "train_batch_size .*use_tpu is None.* given: 8(.|\\n)*pass use_tpu=True",
        ),
        (
            {"input_fn": numbers, "use_tpu": True},
            ValueError,
            "use_tpu is True, and train_batch_size is None(.|\\n)*Pass the number of examples",
        ),
        (
            {"input_fn": numbers, "strategy": "mirrored"},
            TypeError,
            "strategy must be a tf.distribute.Strategy, given: 'mirrored'",
        ),
        (
            {"input_fn": numbers, "model_fn": Estimator(scalar_model_fn, params={}), "params": {}},
            ValueError,
            "given params and an Estimator, which has its own(.|\\n)*Pass them to the Estimator",
        ),
    ],
)
def test_wrong_arguments_are_named_with_what_to_pass(arguments, error, message):
    arguments = {"model_fn": scalar_model_fn, **arguments}
    with pytest.raises(error, match=message):
        adapt(arguments.pop("model_fn"), arguments.pop("input_fn", None), **arguments)


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict"])
def test_a_number_of_steps_is_positive(looped, verb):
    with pytest.raises(ValueError, match=f"num_steps of {verb} is too few, given: 0"):
        getattr(looped[0], verb)(0)


def test_a_missing_checkpoint_is_an_error_where_one_is_named(tmp_path):
    model = adapt(scalar_model_fn, numbers, params={}, model_dir=str(tmp_path))
    assert model.load_checkpoint() is None
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        model.load_checkpoint(tmp_path)
