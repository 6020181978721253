"""LegacyModel against Estimator and TPUEstimator, from the same checkpoint."""

from __future__ import annotations

import contextlib
import inspect
import logging
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import Estimator, LegacyModel, RunConfig, TPUEstimator
from estimator2strategy.errors import CheckpointError
from estimator2strategy.estimator import tpu
from tests.keras_model import programs
from tests.keras_model.programs import (
    BATCH,
    dataset,
    digits,
    model_fn,
    tpu_model_fn,
)
from tests.strategies import mirrored

tf1 = tf.compat.v1
STEPS = 20
PARAMS = {"learning_rate": 0.01}


class Losses(tf1.train.SessionRunHook):
    """Keeps the loss of each step."""

    def __init__(self):
        self.values = []

    def before_run(self, run_context):
        (loss,) = run_context.session.graph.get_collection(tf1.GraphKeys.LOSSES)[-1:]
        return tf1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.values.append(float(run_values.results))


def losses_of_fit(model: LegacyModel, data: tf.data.Dataset) -> list[float]:
    model.compile()
    return model.fit(data, epochs=STEPS, steps_per_epoch=1, verbose=0).history["loss"]


def legacy_model(strategy=None, fn=model_fn, **kwargs) -> LegacyModel:
    with strategy.scope() if strategy else contextlib.nullcontext():
        params = PARAMS if "params" in inspect.signature(fn).parameters else None
        return LegacyModel(fn, params, **kwargs)


@pytest.fixture(scope="module")
def two_cpus() -> tf.distribute.Strategy:
    return mirrored(2)


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> str:
    """A checkpoint after three steps of an Estimator."""
    folder = str(tmp_path_factory.mktemp("start"))
    return Estimator(model_fn, folder, params=PARAMS).train(dataset, steps=3).latest_checkpoint()


@pytest.fixture(scope="module")
def trained(start, tmp_path_factory) -> tuple[Estimator, list[float]]:
    """An Estimator that went on from there for STEPS steps, and its losses."""
    return go_on(start, tmp_path_factory.mktemp("trained"))


def go_on(start: str, folder: Path, strategy=None) -> tuple[Estimator, list[float]]:
    for path in Path(start).parent.glob(f"{Path(start).name}.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    tf1.train.update_checkpoint_state(str(folder), str(folder / Path(start).name))
    estimator = Estimator(model_fn, str(folder), params=PARAMS, strategy=strategy)
    losses = Losses()
    estimator.train(programs.dataset, steps=STEPS, hooks=[losses])
    return estimator, losses.values


@pytest.fixture(scope="module")
def fitted(start) -> tuple[LegacyModel, list[float]]:
    model = legacy_model()
    model.load_checkpoint(start)
    return model, losses_of_fit(model, dataset())


def test_losses_are_those_of_estimator(fitted, trained):
    np.testing.assert_allclose(fitted[1], trained[1], atol=1e-5, rtol=0)


def test_variables_are_those_of_estimator(fitted, trained):
    estimator = trained[0]
    assert set(fitted[0].legacy_variables) == set(estimator.get_variable_names())
    for name, variable in fitted[0].legacy_variables.items():
        np.testing.assert_allclose(
            variable.numpy(), estimator.get_variable_value(name), atol=1e-5, err_msg=name
        )


def test_steps_per_execution_changes_no_number(start, fitted):
    model = legacy_model()
    model.load_checkpoint(start)
    model.compile(steps_per_execution=5)
    model.fit(dataset(), steps_per_epoch=STEPS, verbose=0)
    for name, variable in fitted[0].legacy_variables.items():
        np.testing.assert_allclose(
            model.legacy_variables[name].numpy(), variable.numpy(), atol=1e-6, err_msg=name
        )


def test_results_of_evaluate_are_those_of_estimator(fitted, trained):
    results = fitted[0].evaluate(dataset(100, repeat=False), return_dict=True, verbose=0)
    expected = trained[0].evaluate(lambda: dataset(100, repeat=False))
    del expected["global_step"]
    assert results == pytest.approx({k: float(v) for k, v in expected.items()}, abs=1e-5)


def test_an_input_of_unknown_length_counts_no_batch_more(fitted):
    known = fitted[0].evaluate(dataset(100, repeat=False), return_dict=True, verbose=0)
    unknown = dataset(100, repeat=False).filter(lambda *batch: True)
    found = fitted[0].evaluate(unknown, return_dict=True, verbose=0)
    assert found == pytest.approx(known, abs=1e-6)


def test_metrics_are_the_keras_metrics_of_model_fn(fitted):
    model = fitted[0]
    model.evaluate(dataset(100, repeat=False), verbose=0)
    assert [metric.name for metric in model.metrics] == ["loss", "accuracy", "f1"]
    assert all(isinstance(metric, keras.metrics.Metric) for metric in model.metrics)


def test_batches_of_another_kind_are_counted_by_themselves(fitted):
    model = fitted[0]
    whole = model.evaluate(dataset(128, repeat=False), return_dict=True, verbose=0)
    fixed = model.evaluate(dataset(128), steps=5, return_dict=True, verbose=0)
    again = model.evaluate(dataset(128, repeat=False), return_dict=True, verbose=0)
    assert fixed == pytest.approx(whole, abs=1e-6)
    assert again == pytest.approx(whole, abs=1e-6)


def test_predictions_are_those_of_estimator(fitted, trained):
    images = digits()[0][:50]
    predictions = fitted[0].predict(images, batch_size=20, verbose=0)
    data = lambda: tf.data.Dataset.from_tensor_slices(images).batch(20)  # noqa: E731
    expected = list(trained[0].predict(data))
    assert predictions["class"].tolist() == [p["class"] for p in expected]
    np.testing.assert_allclose(predictions["p"], [p["p"] for p in expected], atol=1e-5)
    np.testing.assert_allclose(fitted[0](images)["p"], predictions["p"], atol=1e-6)


def test_estimator_goes_on_from_a_checkpoint_of_the_model(fitted, tmp_path):
    path = fitted[0].save_checkpoint(tmp_path)
    assert path.endswith(f"model.ckpt-{STEPS + 3}")
    estimator = Estimator(model_fn, str(tmp_path), params=PARAMS)
    assert estimator.latest_checkpoint() == path
    expected = fitted[0].evaluate(dataset(100, repeat=False), return_dict=True, verbose=0)
    results = estimator.evaluate(lambda: dataset(100, repeat=False))
    assert results["accuracy"] == pytest.approx(expected["accuracy"], abs=1e-6)
    assert estimator.train(dataset, steps=1).get_variable_value("global_step") == STEPS + 4


def test_replicas_train_as_those_of_estimator(start, two_cpus, tmp_path):
    _, expected = go_on_in_halves(start, tmp_path, two_cpus)
    model = legacy_model(two_cpus)
    model.load_checkpoint(start)
    np.testing.assert_allclose(losses_of_fit(model, dataset()), expected, atol=1e-5, rtol=0)


def go_on_in_halves(start, folder, strategy):
    """Each replica of the Estimator takes the next half batch, which is what Keras deals out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "dataset", lambda: dataset(BATCH // 2))
        return go_on(start, folder, strategy)


def test_replicas_count_together(fitted, two_cpus, tmp_path):
    model = legacy_model(two_cpus)
    model.load_checkpoint(fitted[0].save_checkpoint(tmp_path))
    model.compile()
    # The last batch has one example: none for the second replica.
    uneven = dataset(213, repeat=False)
    results = model.evaluate(uneven, return_dict=True, verbose=0)
    expected = fitted[0].evaluate(uneven, return_dict=True, verbose=0)
    del results["loss"], expected["loss"]  # a mean over other parts of the batches
    assert results == pytest.approx(expected, abs=1e-6)


def test_a_replica_with_nothing_to_train_on_is_an_error(two_cpus):
    model = legacy_model(two_cpus)
    model.compile()
    with pytest.raises(tf.errors.InvalidArgumentError, match="drop_remainder=True"):
        model.fit(dataset(213, repeat=False), verbose=0)


@pytest.mark.parametrize("use_tpu", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.evidence("legacy_model", "cpu")
def test_losses_are_those_of_tpu_estimator(use_tpu, two_cpus, emulated_cores, model_dir):
    if use_tpu:
        emulated_cores(2)
    estimator = TPUEstimator(
        tpu_model_fn, model_dir, tpu.RunConfig(), {}, use_tpu, BATCH, eval_batch_size=BATCH
    )
    data = lambda params: dataset(params["batch_size"])  # noqa: E731
    path = estimator.train(data, steps=1).latest_checkpoint()
    losses = Losses()
    estimator.train(data, steps=STEPS, hooks=[losses])
    model = legacy_model(two_cpus if use_tpu else None, tpu_model_fn, use_tpu=use_tpu)
    model.load_checkpoint(path)
    # On cores hooks are given the first core's loss by the graph's collection: compare weights.
    found = losses_of_fit(model, dataset())
    if not use_tpu:
        np.testing.assert_allclose(found, losses.values, atol=1e-5, rtol=0)
    for name, variable in model.legacy_variables.items():
        expected = estimator.get_variable_value(name)
        np.testing.assert_allclose(variable.numpy(), expected, atol=1e-5, err_msg=name)


def test_weights_are_loaded_with_the_state_of_the_optimizer(fitted, tmp_path):
    path = str(tmp_path / "model.weights.h5")
    fitted[0].save_weights(path)
    model = legacy_model()
    model.load_weights(path)  # before there are variables
    model.build(dataset())
    for name, variable in fitted[0].legacy_variables.items():
        np.testing.assert_array_equal(model.legacy_variables[name].numpy(), variable.numpy())


def test_a_keras_file_makes_the_model_again(fitted, tmp_path):
    path = str(tmp_path / "model.keras")
    fitted[0].save(path)
    model = keras.saving.load_model(path)
    images = digits()[0][:20]
    np.testing.assert_allclose(
        model.predict(images, verbose=0)["p"], fitted[0].predict(images, verbose=0)["p"], atol=1e-6
    )


def test_a_keras_file_needs_a_model_fn_with_a_name(tmp_path):
    model = LegacyModel(lambda features, labels, mode, params: None)
    with pytest.raises(ValueError, match="cannot be found by its name"):
        model.save(str(tmp_path / "model.keras"))


def test_a_scope_is_a_layer(fitted):
    shapes = [w.shape for w in fitted[0].get_layer("hidden").get_weights()]
    assert shapes == [(64, 32), (32,)]
    assert [v.name for v in fitted[0].scope("bn").weights] == [
        "gamma",
        "beta",
        "moving_mean",
        "moving_variance",
    ]
    with pytest.raises(ValueError, match="No variables in scope 'other'"):
        fitted[0].scope("other")


def test_callbacks_and_validation(start, tmp_path, capsys):
    model = legacy_model()
    model.load_checkpoint(start)
    model.compile(steps_per_execution=2)
    saved = str(tmp_path / "best.weights.h5")
    best = {"monitor": "val_accuracy", "mode": "max"}
    history = model.fit(
        dataset(),
        epochs=3,
        steps_per_epoch=4,
        validation_data=dataset(100, repeat=False),
        callbacks=[
            keras.callbacks.ModelCheckpoint(
                saved, "val_accuracy", save_weights_only=True, mode="max"
            ),
            keras.callbacks.EarlyStopping(min_delta=1, patience=1, **best),
        ],
        verbose=2,
    ).history
    assert list(history) == ["loss", "val_accuracy", "val_f1", "val_loss"]
    assert len(history["loss"]) == 2  # stopped early
    assert Path(saved).exists()
    assert "val_accuracy" in capsys.readouterr().out


def test_model_fn_is_called_once_for_each_mode():
    modes = []

    def counted(features, labels, mode, params):
        modes.append(mode)
        return model_fn(features, labels, mode, params)

    model = legacy_model(fn=counted)
    model.compile()
    for _ in range(2):
        model.fit(dataset(), steps_per_epoch=2, verbose=0)
        model.evaluate(dataset(), steps=2, verbose=0)
        model.predict(digits()[0][:4], verbose=0)
    assert modes == ["train", "eval", "infer"]


def test_tables_and_init_from_checkpoint(fitted, tmp_path):
    path = fitted[0].save_checkpoint(tmp_path)

    def with_table(features, labels, mode):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), -1.0
        )
        kernel = tf1.get_variable("kernel", [64, 32], initializer=tf1.zeros_initializer())
        tf1.train.init_from_checkpoint(path, {"hidden/kernel": "kernel"})
        return tf1_spec(mode, tf.stack([table.lookup(features), features_sum(kernel, features)]))

    predicted = legacy_model(fn=with_table).predict(
        tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).batch(3), verbose=0
    )
    assert predicted[0].tolist() == [1.0, 2.0, -1.0]
    total = fitted[0].legacy_variables["hidden/kernel"].numpy().sum()
    # Of weights that nobody seeded: a sum near zero has few digits.
    np.testing.assert_allclose(predicted[1], [total] * 3, rtol=1e-5, atol=1e-4)


def features_sum(kernel, features):
    return tf.reduce_sum(kernel) + tf.zeros_like(features, tf.float32)


def tf1_spec(mode, predictions):
    from estimator2strategy import EstimatorSpec

    return EstimatorSpec(mode, predictions=predictions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "adam"}, "optimizer: model_fn has its own"),
        ({"auto_scale_loss": True}, "auto_scale_loss: LegacyModel has none"),
        ({"run_eagerly": True}, "run_eagerly and jit_compile must be False"),
        ({"jit_compile": True}, "run_eagerly and jit_compile must be False"),
    ],
)
def test_compile_refuses_what_has_no_meaning(arguments, message):
    with pytest.raises(ValueError, match=message):
        legacy_model().compile(**arguments)


def test_sample_weights_are_refused():
    model = legacy_model()
    model.compile()
    images, labels = digits()
    with pytest.raises(ValueError, match="no sample_weight"):
        model.fit(images[:64], labels[:64], sample_weight=np.ones(64), verbose=0)


def test_a_checkpoint_that_does_not_fit_lists_what_differs(start):
    def other(features, labels, mode):
        kernel = tf1.get_variable("hidden/kernel", [64, 7])
        return tf1_spec(mode, tf.matmul(features, kernel))

    model = legacy_model(fn=other)
    model.load_checkpoint(start)
    with pytest.raises(CheckpointError, match=r"hidden/kernel is float32 \[64, 32\]"):
        model.predict(digits()[0][:4], verbose=0)


def test_a_missing_checkpoint_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        legacy_model().load_checkpoint(tmp_path)


def test_batches_of_another_size_are_evaluated_too():
    model = legacy_model()
    x, y = (part[:64] for part in digits())
    model.compile(steps_per_execution=2)
    results = [model.evaluate(x, y, batch_size=size, return_dict=True) for size in (32, 16)]
    assert results[0] == pytest.approx(results[1])


def test_what_fit_does_not_run_is_said(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    caplog.set_level(logging.WARNING, "tensorflow")

    def with_hook(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec._replace(training_hooks=[tf1.train.SessionRunHook()])

    legacy_model(fn=with_hook).build(dataset())
    assert "LegacyModel does not run the training_hooks" in caplog.text


def test_the_seed_is_that_of_the_config():
    config = RunConfig(tf_random_seed=7)
    first, second = (LegacyModel(model_fn, PARAMS, config) for _ in range(2))
    for model in (first, second):
        model.build(dataset())
    kernels = [m.legacy_variables["hidden/kernel"].numpy() for m in (first, second)]
    np.testing.assert_array_equal(*kernels)


def test_a_partial_checkpoint_leaves_the_rest(start):
    def with_momentum(features, labels, mode):
        logits = programs.network(features, training=False)
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf1.train.MomentumOptimizer(0.1, 0.9)
        return programs.tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=programs.train_op_of(loss, optimizer)
        )

    model = LegacyModel(with_momentum)
    model.load_checkpoint(start, partial=True)
    model.build(dataset())
    kernel = tf.train.load_variable(start, "hidden/kernel")
    np.testing.assert_array_equal(model.legacy_variables["hidden/kernel"].numpy(), kernel)
    assert not model.legacy_variables["hidden/kernel/Momentum"].numpy().any()


@pytest.mark.parametrize(("execution", "steps"), [(10, 25), (10, 4), (3, 9)])
def test_fit_ends_at_the_steps_of_its_epochs_whatever_an_execution_runs(execution, steps):
    model = legacy_model()
    model.compile(steps_per_execution=execution)
    model.fit(dataset(), epochs=2, steps_per_epoch=steps, verbose=0)
    assert model.global_step == 2 * steps
    model.fit(dataset(), epochs=3, steps_per_epoch=steps, max_steps=steps + 1, verbose=0)
    assert model.global_step == 3 * steps + 1


def test_evaluate_counts_the_steps_it_was_asked_for_whatever_an_execution_runs(fitted):
    model = fitted[0]
    expected = model.evaluate(dataset(), steps=5, return_dict=True, verbose=0)
    model.compile(steps_per_execution=4)
    found = model.evaluate(dataset(), steps=5, return_dict=True, verbose=0)
    with pytest.raises(ValueError, match="predict would run more steps: steps_per_execution is 4"):
        model.predict(digits()[0][:50], batch_size=10, steps=5, verbose=0)
    model.compile()
    assert found == pytest.approx(expected, abs=1e-6)
