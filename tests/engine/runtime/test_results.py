"""Results of evaluate and predict, returned and written, in corner cases."""

from __future__ import annotations

import gc
import glob
import os
import weakref

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


def with_metrics(make):
    """`falling` with the eval_metric_ops that `make(features)` returns."""

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        if mode != estimator.ModeKeys.EVAL:
            return spec
        return spec._replace(eval_metric_ops=make(features))

    return model_fn


def predicting(make):
    def model_fn(features, mode):
        return estimator.EstimatorSpec(mode, predictions=make(features))

    return model_fn


def written(folder):
    """(step, tag) -> value, of the summaries in a folder."""
    tf1.summary.FileWriterCache.clear()
    return {
        (event.step, value.tag): value
        for path in sorted(glob.glob(os.path.join(folder, "events*")))
        for event in tf1.train.summary_iterator(path)
        for value in event.summary.value
    }


class TestResults:
    def test_the_log_has_them_as_their_types_print_them(self, model_dir, log):
        """0.3, and not 0.30000001192092896, which float32 becomes as a number of Python."""

        def make(x):
            return {"rate": tf1.metrics.mean(0.3 * tf.ones_like(x))}

        model = host_estimator(model_dir, with_metrics(make))
        model.train(numbers(3), steps=2)
        model.evaluate(numbers(1))
        assert "Saving dict for global step 2: global_step = 2, loss = 1.0, rate = 0.3" in log()

    def test_values_are_numpy_scalars_and_arrays_by_name(self, model_dir):
        def make(x):
            return {
                "mean": tf1.metrics.mean(x),
                "thresholds": tf1.metrics.precision_at_thresholds(x > 1.5, x / 3, [0.0, 0.5]),
                "pair": ((tf1.metrics.mean(x)[0], tf.constant(3)), tf.no_op()),
            }

        model = host_estimator(model_dir, with_metrics(make))
        model.train(numbers(3), steps=2)
        results = model.evaluate(numbers(3))
        assert isinstance(results, dict)
        assert type(results["mean"]) is np.float32
        assert type(results["loss"]) is np.float32
        assert type(results["global_step"]) is np.int64
        assert results["thresholds"].dtype == np.float32
        assert results["thresholds"].shape == (2,)
        assert isinstance(results["pair"], tuple)
        assert results["pair"][1] == 3

    def test_a_metric_may_keep_its_own_local_variable(self, model_dir):
        def make(x):
            count = tf1.get_variable(
                "count",
                [],
                initializer=tf1.zeros_initializer(),
                collections=[tf1.GraphKeys.LOCAL_VARIABLES],
                trainable=False,
            )
            return {"count": (count, tf1.assign_add(count, 1.0))}

        model = host_estimator(model_dir, with_metrics(make))
        model.train(numbers(3), steps=2)
        assert model.evaluate(numbers(5))["count"] == 5.0
        assert model.evaluate(numbers(2))["count"] == 2.0

    def test_a_metric_that_needs_no_tensor_of_the_batch_counts_batches(self, model_dir):
        def make(x):
            ones = tf1.get_variable(
                "ones",
                [],
                initializer=tf1.zeros_initializer(),
                collections=[tf1.GraphKeys.LOCAL_VARIABLES],
                trainable=False,
            )
            return {"count": (tf.identity(ones), tf1.assign_add(ones, 1.0))}

        model = host_estimator(model_dir, with_metrics(make))
        model.train(numbers(3), steps=2)
        assert [model.evaluate(numbers(5))["count"] for _ in range(5)] == [5.0] * 5


class TestFiles:
    def test_each_kind_of_value_is_written_as_tensorboard_reads_it(self, model_dir):
        def make(x):
            image = tf1.summary.image("picture", tf.ones([2, 3, 3, 1]), collections=[])
            return {
                "mean": tf1.metrics.mean(x),
                "vector": (tf.constant([1.0, 2.0]), tf.no_op()),
                "image": (image, tf.no_op()),
            }

        model = host_estimator(model_dir, with_metrics(make))
        model.train(numbers(3), steps=2)
        model.evaluate(numbers(3), name="named")
        folder = os.path.join(model_dir, "eval_named")
        assert model.eval_dir("named") == folder
        found = written(folder)
        assert set(found) == {
            (2, tag) for tag in ("mean", "loss", "vector", "image/0", "image/1", "checkpoint_path")
        }
        assert found[2, "mean"].simple_value == 2.0
        assert tf.make_ndarray(found[2, "vector"].tensor).tolist() == [1.0, 2.0]
        assert found[2, "image/0"].image.height == 3
        path = tf.make_ndarray(found[2, "checkpoint_path"].tensor).item()
        assert path == tf.train.latest_checkpoint(model_dir).encode()

    def test_without_a_name_the_folder_is_eval(self, model_dir):
        model = host_estimator(model_dir)
        assert model.eval_dir() == os.path.join(model_dir, "eval")
        model.evaluate(numbers(3))
        assert written(model.eval_dir())[0, "loss"].simple_value == 2.0


class TestEndOfInput:
    def stopping(self, count):
        """input_fn whose tensors end by an error, as a reader's did."""
        values = iter(np.arange(1, count + 1, dtype=np.float32))

        def input_fn():
            x = tf1.py_func(lambda: np.array([next(values)], np.float32), [], tf.float32)
            x.set_shape([1])
            return x

        return input_fn

    def test_evaluation_ends_and_all_batches_count(self, model_dir):
        model = host_estimator(model_dir)
        assert model.evaluate(self.stopping(3))["loss"] == 2.0

    def test_prediction_ends(self, model_dir):
        model = host_estimator(model_dir)
        assert [p["sum"] for p in model.predict(self.stopping(3))] == [1.0, 2.0, 3.0]

    def test_more_steps_than_batches_are_no_error(self, model_dir):
        assert host_estimator(model_dir).evaluate(numbers(3), steps=10)["loss"] == 2.0

    def test_an_evaluation_without_a_batch_has_the_metrics_initial_values(self, model_dir):
        assert host_estimator(model_dir).evaluate(numbers(0)) == {"loss": 0.0, "global_step": 0}

    def test_a_single_element_comes_again_and_again(self, model_dir):
        def input_fn():
            return tf.data.experimental.get_single_element(numbers(1)())

        model = host_estimator(model_dir)
        model.train(input_fn, steps=3)
        assert model.get_variable_value("weight") == -3.0

    def test_an_iterator_that_a_hook_initialises_with_its_feeds(self, model_dir):
        class Initialise(tf1.train.SessionRunHook):
            def after_create_session(self, session, coord):
                session.run(self.iterator.initializer, {self.values: [5.0, 6.0]})

        hook = Initialise()

        def input_fn():
            hook.values = tf1.placeholder(tf.float32, [None])
            dataset = tf.data.Dataset.from_tensor_slices(hook.values).batch(1)
            hook.iterator = tf1.data.make_initializable_iterator(dataset)
            return hook.iterator.get_next()

        model = host_estimator(model_dir)
        model.train(input_fn, hooks=[hook], steps=2)
        assert model.get_variable_value("weight") == -11.0


class TestPredictions:
    def values(self, model_dir, make, count=3, **kwargs):
        model = estimator.Estimator(predicting(make), model_dir)
        return list(model.predict(numbers(count, batch_size=2), **kwargs))

    def test_a_lone_tensor_comes_without_a_dict(self, model_dir):
        assert self.values(model_dir, tf.negative) == [-1.0, -2.0, -3.0]

    def test_strings_come_as_bytes(self, model_dir):
        found = self.values(model_dir, lambda x: {"text": tf.strings.as_string(x, precision=0)})
        assert found == [{"text": b"1"}, {"text": b"2"}, {"text": b"3"}]

    def test_classes_and_scores_keep_their_shapes(self, model_dir):
        def make(x):
            return {"scores": tf.stack([x, -x], 1), "class": tf.cast(x, tf.int64)}

        first = self.values(model_dir, make)[0]
        assert first["scores"].tolist() == [1.0, -1.0]
        assert type(first["class"]) is np.int64

    @pytest.mark.parametrize("keys", ["a", ["a"], ("a",), {"a": 1}, ["a", "no_such"]])
    def test_forms_of_predict_keys(self, model_dir, keys):
        found = self.values(model_dir, lambda x: {"a": x, "b": -x}, predict_keys=keys)
        assert found[0] == {"a": 1.0}

    def test_keys_of_a_lone_tensor_are_refused(self, model_dir):
        with pytest.raises(ValueError, match="not valid in case of non-dict predictions"):
            self.values(model_dir, tf.negative, predict_keys=["a"])

    def test_another_checkpoint_on_request(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=1)
        model.train(numbers(4), steps=3)
        path = os.path.join(model_dir, "model.ckpt-2")
        (prediction,) = model.predict(numbers(1), checkpoint_path=path)
        assert prediction["sum"] == 1.0 - 3.0

    def test_a_generator_closed_early_frees_the_session_without_the_hooks_end(self, model_dir):
        seen = []

        class Hook(tf1.train.SessionRunHook):
            def after_create_session(self, session, coord):
                seen.append(weakref.ref(session))

            def end(self, session):
                seen.append("end")

        predictions = host_estimator(model_dir).predict(numbers(9), hooks=[Hook()])
        next(predictions)
        predictions.close()
        gc.collect()
        assert seen[1:] == []
        assert seen[0]() is None
        assert tf.executing_eagerly()
