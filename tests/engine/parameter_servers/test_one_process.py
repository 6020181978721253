"""`SyncReplicasOptimizer` in one process: the figures are those of TensorFlow 1.15.5."""

from __future__ import annotations

import gc
import logging

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.errors import UnsupportedError
from tests.hooks import LossRecorder

tf1 = tf.compat.v1

# The thread that applies gradients ends when its session is closed on it: it prints so, as it did.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

# Losses of each step in TensorFlow 1.15. No step of these two settings can start before the update
# that it waits for, so no other order of the threads gives other figures.
ALONE = [0.297852, 2.048667, 4.590528, 7.185649, 0.139743, 1.043772, 2.767783, 4.878547, 0.100142]
ALONE += [0.749054]
IN_PAIRS = [0.297852, 2.235352, 5.118122, 10.041275, 0.196344, 1.473753, 3.949571, 7.74875]
IN_PAIRS += [0.160733, 1.20655]


def input_fn():
    x = np.arange(64, dtype=np.float32).reshape(16, 4) / 64
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1))).repeat().batch(4)


def model_fn(features, labels, mode, params):
    weights = tf1.get_variable("w", [4, 1], initializer=tf1.ones_initializer())
    outputs = tf.matmul(features, weights)[:, 0]
    if params.get("sparse"):
        table = tf1.get_variable("t", [8], initializer=tf1.zeros_initializer())
        outputs += tf.nn.embedding_lookup(table, tf.cast(features[:, 0] * 8, tf.int32))
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.reduce_mean((outputs - 2 * labels) ** 2)
    optimizer = tf1.train.SyncReplicasOptimizer(
        tf1.train.AdagradOptimizer(0.1), params["aggregate"], params["total"]
    )
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    hooks = [optimizer.make_session_run_hook(True, params["tokens"])] if "tokens" in params else []
    return estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, **{params.get("where", "training_hooks"): hooks}
    )


def sync(model_dir, aggregate=1, total=1, *, options=None, **params):
    params |= {"aggregate": aggregate, "total": total}
    config = estimator.RunConfig(model_dir, save_checkpoints_steps=5)
    return estimator.Estimator(model_fn, config=config, params=params, options=options)


def losses(model, steps):
    recorder = LossRecorder()
    model.train(input_fn, steps=steps, hooks=[recorder])
    return recorder.losses


@pytest.mark.parametrize("where", ["training_hooks", "training_chief_hooks"])
def test_steps_of_one_worker_are_those_of_the_original(model_dir, where):
    model = sync(model_dir, tokens=0, where=where)
    np.testing.assert_allclose(losses(model, 10), ALONE, rtol=1e-5)


def test_an_update_of_two_gradients_takes_two_steps(model_dir):
    model = sync(model_dir, aggregate=2, total=1, tokens=1)
    np.testing.assert_allclose(losses(model, 5), IN_PAIRS, rtol=1e-5)
    assert model.get_variable_value("global_step") == 5


def test_rows_of_a_table_are_updated_as_in_the_original(model_dir):
    model = sync(model_dir, tokens=0, sparse=True)
    model.train(input_fn, steps=10)
    expected = [0.0922207, 0.1675672, 0.1855087, 0.1915675]
    np.testing.assert_allclose(model.get_variable_value("t")[:4], expected, rtol=1e-5)


def test_tokens_to_start_with_are_those_of_the_optimizer_by_default(model_dir):
    """A step may then start before the update; its gradient comes too late, as in the original."""
    seen = losses(sync(model_dir, aggregate=2, total=2, tokens=-1), 3)
    assert len(seen) >= 6
    np.testing.assert_allclose(seen[0], ALONE[0], rtol=1e-5)


def test_the_checkpoint_evaluates_predicts_and_goes_on(model_dir):
    model = sync(model_dir, tokens=0)
    model.train(input_fn, steps=4)  # once over the input
    assert set(model.get_variable_names()) == {"global_step", "w", "w/Adagrad"}
    np.testing.assert_allclose(losses(model, 6), ALONE[4:], rtol=1e-5)
    results = model.evaluate(input_fn, steps=2)
    assert results["global_step"] == 10
    np.testing.assert_allclose(results["loss"], 0.4110877, rtol=1e-5)
    np.testing.assert_allclose(next(model.predict(input_fn)), 0.13437587, rtol=1e-5)


class TestObjectsThatWereNeverUsed:
    """TensorFlow logs them where a graph is forgotten."""

    def logged_by(self, caplog, run):
        with caplog.at_level(logging.ERROR, "tensorflow"):
            run()
            gc.collect()
        return [text for text in caplog.messages if "Object was never used" in text]

    def test_the_optimizer_itself_leaves_none_behind_an_evaluation(self, model_dir, caplog):
        sync(model_dir, tokens=0).train(input_fn, steps=1)
        model = sync(model_dir)  # without the hook, which would keep the optimizer
        assert self.logged_by(caplog, lambda: model.evaluate(input_fn, steps=1)) == []

    def test_nor_behind_a_refusal(self, model_dir, caplog):
        def refused():
            with pytest.raises(UnsupportedError):
                sync(model_dir, aggregate=2).train(input_fn, steps=1)

        assert self.logged_by(caplog, refused) == []

    def test_one_of_the_program_is_still_told(self, model_dir, caplog):
        def careless(features, labels, mode, params):
            tf1.report_uninitialized_variables(name="mine")
            return model_fn(features, labels, mode, params)

        model = estimator.Estimator(careless, model_dir, params={"aggregate": 1, "total": 1})

        sync(model_dir, tokens=0).train(input_fn, steps=1)
        (told,) = self.logged_by(caplog, lambda: model.evaluate(input_fn, steps=1))
        assert "mine" in told


class TestRefused:
    @pytest.mark.parametrize(
        ("params", "why"),
        [
            ({"tokens": 0, "total": 2}, "has 0 tokens to start with and needs 1"),
            ({}, "has no hook"),
        ],
    )
    def test_what_waited_for_ever_with_its_line(self, model_dir, params, why):
        message = rf"SyncReplicasOptimizer at .*test_one_process\.py:\d+(.|\n)*{why}"
        with pytest.raises(UnsupportedError, match=message):
            sync(model_dir, aggregate=2, **params).train(input_fn, steps=1)

    def test_a_compiled_step(self, model_dir):
        model = sync(model_dir, tokens=0, options=TrainingOptions(jit_compile=True))
        with pytest.raises(UnsupportedError, match=r"jit_compile(.|\n)*optimizer inside of it"):
            model.train(input_fn, steps=1)
