"""A TPUEstimator on cores refuses what cores cannot do, and says when."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.devices import emulated_strategy
from estimator2strategy.errors import DeviceError, RecordingError, UnsupportedError
from tests.engine.runtime.programs import cores_estimator, falling_on_cores, ones

tf1 = tf.compat.v1
tpu = estimator.tpu
pipelines = tpu.InputPipelineConfig


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def with_tpu_config(model_dir, model_fn=falling_on_cores, kwargs=None, **tpu_config):
    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu.TPUConfig(**tpu_config))
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    return tpu.TPUEstimator(model_fn, config=config, **{**sizes, **(kwargs or {})})


def never_called(params):
    raise AssertionError("input_fn was called")


def test_training_must_be_told_when_to_stop(model_dir):
    with pytest.raises(ValueError, match=r"one of `steps` or `max_steps` must be set"):
        cores_estimator(model_dir).train(never_called)


def test_evaluation_must_be_told_for_how_many_batches(model_dir):
    with pytest.raises(ValueError, match=r"Evaluate `steps` must be set on TPU"):
        cores_estimator(model_dir).evaluate(never_called)


def test_hook_for_tpu_queues_is_refused_at_once(model_dir):
    with pytest.raises(UnsupportedError, match=r"experimental_feed_hook(.|\n)*hooks=\.\.\."):
        with_tpu_config(model_dir, experimental_feed_hook=object)


def test_wrong_number_of_shards_is_told_the_right_one(model_dir):
    model = with_tpu_config(model_dir, num_shards=3)
    with pytest.raises(
        ValueError, match=r"num_shards is not set correctly.*should be \(2\), got \(3\)"
    ):
        model.train(never_called, steps=1)


class TestModelParallelism:
    def test_is_no_matter_on_the_host(self, model_dir):
        model = with_tpu_config(model_dir, num_cores_per_replica=2, kwargs={"use_tpu": False})
        model.train(ones, steps=1)
        assert model.get_variable_value("global_step") == 1

    def test_of_one_core_is_none(self, model_dir):
        model = with_tpu_config(model_dir, num_cores_per_replica=1)
        model.train(ones, steps=1)
        assert model.get_variable_value("weight") == -1.0

    def test_cannot_have_an_input_per_core(self, model_dir):
        with pytest.raises(ValueError, match=r"Model parallelism only supports per host input"):
            with_tpu_config(
                model_dir,
                num_cores_per_replica=2,
                per_host_input_for_training=pipelines.PER_SHARD_V1,
            )

    def test_is_not_for_a_strategy_that_has_its_replicas(self, model_dir):
        strategy = {"strategy": emulated_strategy(2)}
        model = with_tpu_config(model_dir, num_cores_per_replica=2, kwargs=strategy)
        with pytest.raises(DeviceError, match=r"strategy passed"):
            model.train(never_called, steps=1)


class TestBatchAxis:
    def test_has_one_axis_for_each_tensor(self, model_dir):
        model = cores_estimator(model_dir, batch_axis=[0, 0])
        with pytest.raises(
            ValueError, match=r"shard_dimensions is \[0, 0\], but must be a list of"
        ):
            model.train(ones, steps=1)

    def test_is_what_a_transposed_batch_is_told_to_give(self, model_dir):
        def columns(params):
            return tf.data.Dataset.from_tensors((tf.ones([3, 4]), tf.ones([4]))).repeat()

        model = cores_estimator(model_dir)
        with pytest.raises(
            RecordingError, match=r"(?s)batch of 3 .* axis 1, say so: .*batch_axis="
        ):
            model.train(columns, steps=1)

    def test_is_not_for_prediction(self, model_dir):
        model = cores_estimator(model_dir, batch_axis=[0])
        with pytest.raises(TypeError, match=r"For mode PREDICT, batch_axis is not supported yet"):
            next(model.predict(ones))


@pytest.mark.parametrize("unknown", ["features", "labels"])
@pytest.mark.parametrize("method", ["train", "predict"])
@pytest.mark.evidence("refusals", "cpu")
def test_shapes_that_are_not_known_are_refused(model_dir, unknown, method):
    def input_fn(params):
        def sized(x, part):
            return tf.ones([tf.cast(x, tf.int32) if part == unknown else 1])

        values = tf.data.Dataset.from_tensors(1.0).repeat(8)
        both = values.map(lambda x: (sized(x, "features"), sized(x, "labels")))
        return both.batch(params["batch_size"], drop_remainder=True)

    model = cores_estimator(model_dir)
    with pytest.raises(
        ValueError, match=rf"The {unknown} to the model.*must have static shape"
    ) as raised:
        model.train(input_fn, steps=1) if method == "train" else next(model.predict(input_fn))
    assert str(raised.value).endswith("Where the dataset is batched, pass drop_remainder=True.")


@pytest.mark.parametrize("part", ["features", "labels"])
@pytest.mark.parametrize("method", ["train", "evaluate", "predict"])
@pytest.mark.evidence("refusals", "cpu")
def test_strings_are_refused_as_an_infeed_did(model_dir, part, method):
    def input_fn(params):
        values = {"features": {"x": tf.ones([8])}, "labels": {"y": tf.ones([8])}}
        values[part]["key"] = tf.fill([8], "a")
        dataset = tf.data.Dataset.from_tensor_slices((values["features"], values["labels"]))
        return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

    model = cores_estimator(model_dir)
    run = {
        "train": lambda: model.train(input_fn, steps=1),
        "evaluate": lambda: model.evaluate(input_fn, steps=1),
        "predict": lambda: next(model.predict(input_fn)),
    }[method]
    words = rf"'string'> is not a supported TPU infeed type.*in the {part} from input_fn.*to_hash"
    with pytest.raises(TypeError, match=words):
        run()


@pytest.mark.parametrize("per_host", [pipelines.PER_SHARD_V1, pipelines.PER_HOST_V1])
@pytest.mark.evidence("refusals", "cpu")
def test_queues_are_refused_as_by_an_infeed_loop(model_dir, per_host):
    def input_fn(params):
        queue = tf1.train.input_producer(tf.ones([8]), shuffle=False)  # the queue
        return queue.dequeue_many(params["batch_size"]), tf.ones([params["batch_size"]])

    words = r"# the queue\n(.|\n)*Input pipeline contains one or more QueueRunners(.|\n)*Dataset"
    model = with_tpu_config(model_dir, per_host_input_for_training=per_host)
    with pytest.raises(RuntimeError, match=words) as raised:
        model.train(input_fn, steps=1)
    assert isinstance(raised.value, UnsupportedError)


def test_batches_to_predict_that_are_too_large_are_refused(model_dir):
    def input_fn(params):
        return tf.data.Dataset.from_tensors(tf.ones([]) * 2).repeat(10).batch(5)

    def model_fn(features, labels, mode, params):
        return tpu.TPUEstimatorSpec(mode, predictions={"x": features})

    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"real batch size should not be great"
    ):
        next(cores_estimator(model_dir, model_fn).predict(input_fn))


def summarizing(features, labels, mode, params):
    spec = falling_on_cores(features, labels, mode, params)
    tf1.summary.scalar("of_a_core", spec.loss)
    return spec


class TestSummariesOfACore:
    def test_are_left_out_with_a_warning(self, model_dir, caplog):
        cores_estimator(model_dir, summarizing).train(ones, steps=2)
        (warning,) = [r for r in caplog.messages if "are not written" in r]
        assert "of_a_core" in warning
        assert "host_call" in warning

    def test_cannot_be_merged_by_a_scaffold(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = summarizing(features, labels, mode, params)
            return spec._replace(scaffold_fn=tf1.train.Scaffold)

        with pytest.raises(ValueError, match=r"depends on a TPU computation") as raised:
            cores_estimator(model_dir, model_fn).train(ones, steps=1)
        assert 'tf1.summary.scalar("of_a_core", spec.loss)' in str(raised.value)
