"""TPUEstimator's contract: batch sizes, contexts, and what it refuses."""

from __future__ import annotations

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1_facade
from estimator2strategy import estimator
from tests.engine.runtime.programs import cores_estimator, falling_on_cores, ones
from tests.strategies import mirrored

tf1 = tf.compat.v1
tpu = estimator.tpu
pipelines = tpu.InputPipelineConfig


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def undivided(params):
    """input_fn that returns tensors, as PER_SHARD_V1 wants them."""
    return tf.ones([params["batch_size"]])


@pytest.mark.parametrize(
    ("pipeline", "of_input_fn", "of_model_fn"),
    [
        (pipelines.PER_SHARD_V1, [2, 2], 2),
        (pipelines.PER_HOST_V1, [4], 2),
        (pipelines.PER_HOST_V2, [2], 2),
        (pipelines.BROADCAST, [4], 4),
    ],
)
@pytest.mark.evidence("inputs", "cpu")
def test_batch_sizes_by_input_pipeline(model_dir, pipeline, of_input_fn, of_model_fn):
    seen = {"input": [], "model": []}

    def input_fn(params):
        seen["input"].append(params["batch_size"])
        return undivided(params) if pipeline is pipelines.PER_SHARD_V1 else ones(params)

    def model_fn(features, labels, mode, params):
        seen["model"].append((params["batch_size"], features.shape[0].value))
        return falling_on_cores(features, labels, mode, params)

    cores_estimator(model_dir, model_fn, pipeline=pipeline).train(input_fn, steps=1)
    assert seen == {"input": of_input_fn, "model": [(of_model_fn, of_model_fn)]}


def test_batch_sizes_on_the_host_are_global(model_dir):
    seen = []

    def model_fn(features, labels, mode, params):
        seen.append((params["batch_size"], "context" in params))
        return falling_on_cores(features, labels, mode, params)

    cores_estimator(model_dir, model_fn, use_tpu=False).train(ones, steps=1)
    assert seen == [(4, False)]


@pytest.mark.parametrize("make_params", [dict, tf1_facade.contrib.training.HParams])
def test_params_may_hold_a_use_tpu_of_their_own_and_may_be_hparams(model_dir, make_params):
    seen = []

    def model_fn(features, labels, mode, params):
        seen.append((params, params.get("use_tpu"), params.get("batch_size"), params.get("units")))
        return falling_on_cores(features, labels, mode, {"use_tpu": True})

    def input_fn(params):
        return ones({"batch_size": params.get("batch_size")})

    params = make_params(use_tpu=False, units=3)
    cores_estimator(model_dir, model_fn, params=params).train(input_fn, steps=1)
    ((given, *values),) = seen
    assert type(given) is make_params
    assert values == [True, 2, 3]
    assert "batch_size" not in params


def test_input_fn_is_told_its_place(model_dir):
    seen = []

    def input_fn(params):
        context = params["context"]
        seen.append((context.current_input_fn_deployment(), context.current_host))
        with pytest.raises(RuntimeError, match="must not be called from input_fn"):
            context.device_assignment  # noqa: B018
        return undivided(params)

    model = cores_estimator(model_dir, pipeline=pipelines.PER_SHARD_V1)
    model.train(input_fn, steps=1)
    device = "/replica:0/task:0/device:CPU:0"
    assert seen == [((device, 0, 2, 1), 0), ((device, 1, 2, 1), 0)]


def test_model_fn_cannot_ask_for_the_place_of_an_input_fn(model_dir):
    def model_fn(features, labels, mode, params):
        params["context"].current_input_fn_deployment()

    with pytest.raises(RuntimeError, match="must not be called from model_fn"):
        cores_estimator(model_dir, model_fn).train(ones, steps=1)


def test_input_without_labels_is_split_over_the_cores(model_dir):
    def features_only(params):
        return {"x": tf.ones([params["batch_size"]])}

    def model_fn(features, mode, params):
        return falling_on_cores(features["x"], None, mode, params)

    model = cores_estimator(model_dir, model_fn)
    model.train(features_only, steps=2)
    assert model.get_variable_value("weight") == -2.0


def test_model_fn_without_params_is_refused_when_it_is_called(model_dir):
    model = cores_estimator(model_dir, lambda features, labels, mode: None)
    with pytest.raises(ValueError, match=r"model_fn .* does not include params argument, required"):
        model.train(ones, steps=1)


def test_on_the_host_a_program_may_convert_the_batch_size_itself(model_dir):
    sizes = []

    def input_fn(params):
        sizes.append(params["batch_size"])
        return tf.data.Dataset.from_tensors(tf.ones([int(params["batch_size"])]))

    config = tpu.RunConfig(model_dir=model_dir)
    given = {"config": config, "train_batch_size": 4.0, "eval_batch_size": "2"}
    model = tpu.TPUEstimator(falling_on_cores, use_tpu=False, **given)
    model.train(input_fn, steps=1)
    model.evaluate(input_fn, steps=1)
    assert sizes == [4.0, "2"]
    with pytest.raises(TypeError, match="train_batch_size must be int"):
        tpu.TPUEstimator(falling_on_cores, use_tpu=True, **given)


@pytest.mark.parametrize("limit", ["steps", "max_steps"])
def test_number_of_training_steps_must_be_whole(model_dir, limit):
    with pytest.raises(TypeError, match="must be int"):
        cores_estimator(model_dir).train(ones, **{limit: 1.0})


@pytest.mark.parametrize(
    ("steps", "error", "words"), [(3.0, TypeError, "must be int"), (-3, ValueError, "be positive")]
)
def test_number_of_evaluation_steps_must_be_whole_and_positive(model_dir, steps, error, words):
    with pytest.raises(error, match=words):
        cores_estimator(model_dir).evaluate(ones, steps=steps)


def test_scaffold_fn_must_not_use_what_the_cores_compute(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)

        def scaffold_fn():
            tf1.summary.scalar("loss_of_a_core", spec.loss)
            return tf1.train.Scaffold()

        return spec._replace(scaffold_fn=scaffold_fn)

    with pytest.raises(ValueError, match="depends on a TPU computation") as raised:
        cores_estimator(model_dir, model_fn).train(ones, steps=1)
    assert 'tf1.summary.scalar("loss_of_a_core", spec.loss)' in str(raised.value)


def test_scaffold_fn_may_use_variables(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)

        def scaffold_fn():
            return tf1.train.Scaffold(saver=tf1.train.Saver(tf1.global_variables()))

        return spec._replace(scaffold_fn=scaffold_fn)

    model = cores_estimator(model_dir, model_fn)
    model.train(ones, steps=1)
    assert model.get_variable_names() == ["global_step", "weight"]


def test_optimizer_that_does_not_sum_over_cores_is_refused(model_dir):
    def model_fn(features, labels, mode, params):
        return falling_on_cores(features, labels, mode, {**params, "use_tpu": False})

    with pytest.raises(ValueError, match="must be used for model training on TPUs"):
        cores_estimator(model_dir, model_fn).train(ones, steps=1)


def test_model_dir_is_that_of_the_config_or_the_argument(model_dir, tmp_path):
    config = tpu.RunConfig(model_dir=model_dir)
    model = tpu.TPUEstimator(falling_on_cores, config=config, use_tpu=False, params={})
    assert model.model_dir == model.config.model_dir == model_dir
    with pytest.raises(ValueError, match="`model_dir` are set both in constructor and `RunConfig`"):
        tpu.TPUEstimator(falling_on_cores, str(tmp_path / "other"), config, use_tpu=False)


def test_config_is_a_tpu_run_config(model_dir):
    with pytest.raises(ValueError, match=r"`config` must be provided with type `tpu_config.RunC"):
        tpu.TPUEstimator(falling_on_cores, config=estimator.RunConfig(model_dir=model_dir))


@pytest.mark.evidence("warm_start", "cpu")
def test_cores_start_from_the_values_of_warm_start_from(tmp_path):
    first = cores_estimator(str(tmp_path / "first"))
    first.train(ones, steps=3)
    second = cores_estimator(str(tmp_path / "second"), warm_start_from=str(tmp_path / "first"))
    second.train(ones, steps=1)
    assert second.get_variable_value("weight") == -4.0
    assert second.get_variable_value("global_step") == 1


def test_strategy_is_what_it_runs_on_in_place_of_a_tpu(model_dir, monkeypatch):
    monkeypatch.setattr("estimator2strategy.engine.runtime.devices._emulated_cores", 0)
    strategy = mirrored(4)
    seen = []

    def model_fn(features, labels, mode, params):
        seen.append((params["batch_size"], params["context"].num_replicas))
        return falling_on_cores(features, labels, mode, params)

    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu.TPUConfig(iterations_per_loop=2))
    model = tpu.TPUEstimator(model_fn, config=config, train_batch_size=4, strategy=strategy)
    model.train(ones, steps=2)
    assert seen == [(1, 4)]
    assert model.get_variable_value("weight") == -2.0


@pytest.mark.parametrize("use_tpu", [True, False])
def test_hooks_of_the_spec_run_in_their_mode(model_dir, use_tpu):
    ran = []

    class Hook(tf1.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def end(self, session):
            ran.append(self.name)

    def model_fn(features, labels, mode, params):
        return falling_on_cores(features, labels, mode, params)._replace(
            training_hooks=(Hook("train"),),
            evaluation_hooks=(Hook("evaluate"),),
            prediction_hooks=(Hook("predict"),),
        )

    model = cores_estimator(model_dir, model_fn, use_tpu=use_tpu)
    model.train(ones, steps=1)
    model.evaluate(ones, steps=1)
    list(model.predict(lambda params: ones(params).take(1)))
    assert ran == ["train", "evaluate", "predict"]


def test_export_outputs_of_the_spec_are_the_signatures(model_dir, tmp_path):
    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)
        outputs = {"scores": estimator.export.PredictOutput({"s": features + 1.0})}
        return spec._replace(export_outputs=outputs) if mode == "infer" else spec

    model = cores_estimator(model_dir, model_fn, export_to_tpu=False)
    model.train(ones, steps=1)

    def receiver_fn():
        x = tf1.placeholder(tf.float32, [None])
        return estimator.export.TensorServingInputReceiver(x, {"x": x})

    folder = model.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    served = tf.saved_model.load(folder.decode()).signatures
    assert set(served) == {"serving_default", "scores"}
    assert list(served["scores"](x=tf.constant([1.0]))["s"]) == [2.0]
