"""Wrong usages of `TPUEstimator` and of `emulate_tpu`."""

from __future__ import annotations

import argparse

import tensorflow as tf

from estimator2strategy import emulate_tpu, estimator
from tests.hostile.usages.programs import (
    ROWS,
    dataset,
    input_fn,
    tpu_input_fn,
    tpu_model,
    tpu_model_fn,
)
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1
TPUEstimator, TPURunConfig = estimator.tpu.TPUEstimator, estimator.tpu.RunConfig
TPUEstimatorSpec = estimator.tpu.TPUEstimatorSpec


def without_params(features, labels, mode):
    return tpu_model_fn(features, labels, mode, None)


CONSTRUCTOR = (
    Usage("model_fn is None", "model_fn", lambda d: tpu_model(d, model_fn=None)),
    Usage("model_fn is a string", "model_fn", lambda d: tpu_model(d, model_fn="model_fn")),
    Usage(
        "model_fn without params",
        "params",
        lambda d: tpu_model(d, model_fn=without_params).train(tpu_input_fn, steps=1),
    ),
    Usage(
        "config is left out",
        "config",
        lambda d: TPUEstimator(tpu_model_fn, d, train_batch_size=8),
    ),
    Usage(
        "config is an Estimator's", "config", lambda d: tpu_model(d, config=estimator.RunConfig())
    ),
    Usage(
        "config is a TPUConfig", "config", lambda d: tpu_model(d, config=estimator.tpu.TPUConfig())
    ),
    Usage("params has batch_size", "batch_size", lambda d: tpu_model(d, params={"batch_size": 8})),
    Usage("params has context", "context", lambda d: tpu_model(d, params={"context": 8})),
    Usage("params is a list", "params", lambda d: tpu_model(d, params=[1])),
    Usage("params is a string", "params", lambda d: tpu_model(d, params="lr=0.1")),
    Usage("params is a number", "params", lambda d: tpu_model(d, params=0.1)),
    Usage(
        "params is a namespace", "params", lambda d: tpu_model(d, params=argparse.Namespace(a=1))
    ),
    Usage("use_tpu is 'False'", "use_tpu", lambda d: tpu_model(d, use_tpu="False")),
    Usage("use_tpu is '0'", "use_tpu", lambda d: tpu_model(d, use_tpu="0")),
    Usage(
        "use_tpu is a name",
        "use_tpu",
        lambda d: tpu_model(d, use_tpu="my-tpu"),
        "the flag that names the TPU: it is true in the original.",
    ),
    Usage("use_tpu is a list", "use_tpu", lambda d: tpu_model(d, use_tpu=[True])),
    Usage(
        "use_tpu is 'True'",
        "use_tpu",
        lambda d: tpu_model(d, use_tpu="True"),
        taken="a flag that is a string: it reads as it acts",
    ),
    Usage(
        "use_tpu is 1",
        "use_tpu",
        lambda d: tpu_model(d, use_tpu=1),
        taken="1 is true",
    ),
    Usage(
        "train_batch_size is left out",
        "train_batch_size",
        lambda d: tpu_model(d, train_batch_size=None),
    ),
    Usage(
        "train_batch_size is a string",
        "train_batch_size",
        lambda d: tpu_model(d, train_batch_size="8"),
    ),
    Usage("train_batch_size is 0", "train_batch_size", lambda d: tpu_model(d, train_batch_size=0)),
    Usage(
        "train_batch_size is 8.0", "train_batch_size", lambda d: tpu_model(d, train_batch_size=8.0)
    ),
    Usage(
        "train_batch_size is a string, on the host",
        "train_batch_size",
        lambda d: tpu_model(d, use_tpu=False, train_batch_size="8"),
        taken="the original hands it to input_fn as it is",
    ),
    Usage(
        "train_batch_size does not divide",
        "train_batch_size",
        lambda d: tpu_model(d, train_batch_size=7).train(tpu_input_fn, steps=1),
    ),
    Usage(
        "eval_batch_size is a string",
        "eval_batch_size",
        lambda d: tpu_model(d, eval_batch_size="8"),
    ),
    Usage(
        "eval_batch_size is left out",
        "eval_batch_size",
        lambda d: tpu_model(d, eval_batch_size=None).evaluate(tpu_input_fn, steps=1),
    ),
    Usage(
        "predict_batch_size is negative",
        "predict_batch_size",
        lambda d: tpu_model(d, predict_batch_size=-8),
    ),
    Usage(
        "predict_batch_size is left out",
        "predict_batch_size",
        lambda d: next(tpu_model(d, predict_batch_size=None).predict(tpu_input_fn)),
    ),
    Usage(
        "batch_axis is a number",
        "batch_axis",
        lambda d: tpu_model(d, batch_axis=0).train(tpu_input_fn, steps=1),
    ),
    Usage(
        "batch_axis has too many",
        "batch_axis",
        lambda d: tpu_model(d, batch_axis=[0, 0, 0]).train(tpu_input_fn, steps=1),
    ),
    Usage(
        "batch_axis has a string",
        "batch_axis",
        lambda d: tpu_model(d, batch_axis=["0", "0"]).train(tpu_input_fn, steps=1),
    ),
    Usage(
        "batch_axis is out of the shape",
        "batch_axis",
        lambda d: tpu_model(d, batch_axis=[5, 5]).train(tpu_input_fn, steps=1),
    ),
    Usage("eval_on_tpu is 'False'", "eval_on_tpu", lambda d: tpu_model(d, eval_on_tpu="False")),
    Usage("export_to_tpu is 'no'", "export_to_tpu", lambda d: tpu_model(d, export_to_tpu="no")),
    Usage(
        "export_to_cpu is 'false'", "export_to_cpu", lambda d: tpu_model(d, export_to_cpu="false")
    ),
    Usage(
        "embedding_config_spec is a dict",
        "embedding_config_spec",
        lambda d: tpu_model(d, embedding_config_spec={"columns": []}),
    ),
    Usage(
        "export_saved_model_api_version is 3",
        "export_saved_model_api_version",
        lambda d: tpu_model(d, export_saved_model_api_version=3),
    ),
    Usage(
        "export_saved_model_api_version is a string",
        "export_saved_model_api_version",
        lambda d: tpu_model(d, export_saved_model_api_version="v2"),
    ),
    Usage("strategy is a name", "strategy", lambda d: tpu_model(d, strategy="tpu")),
    Usage("options is a dict", "options", lambda d: tpu_model(d, options={})),
    Usage("a keyword that is misspelt", "batch_size", lambda d: tpu_model(d, batch_size=8)),
    Usage("model_dir is a number", "model_dir", lambda d: tpu_model(d, model_dir=3)),
)

CALLS = (
    Usage("steps is left out", "steps", lambda d: tpu_model(d).train(tpu_input_fn)),
    Usage("steps is a string", "steps", lambda d: tpu_model(d).train(tpu_input_fn, steps="10")),
    Usage("steps is 2.0", "steps", lambda d: tpu_model(d).train(tpu_input_fn, steps=2.0)),
    Usage(
        "max_steps is a string",
        "max_steps",
        lambda d: tpu_model(d).train(tpu_input_fn, max_steps="1"),
    ),
    Usage("steps is left out of evaluate", "steps", lambda d: tpu_model(d).evaluate(tpu_input_fn)),
    Usage(
        "steps of evaluate is 0", "steps", lambda d: tpu_model(d).evaluate(tpu_input_fn, steps=0)
    ),
    Usage("input_fn is None", "input_fn", lambda d: tpu_model(d).train(None, steps=1)),
    Usage("input_fn was called", "input_fn", lambda d: tpu_model(d).train(dataset(), steps=1)),
    Usage("input_fn takes no params", "params", lambda d: tpu_model(d).train(input_fn, steps=1)),
    Usage(
        "input_fn returns tensors for prediction",
        "input_fn",
        lambda d: next(tpu_model(d).predict(lambda params: ROWS)),
    ),
    Usage(
        "input_fn returns None",
        "input_fn",
        lambda d: tpu_model(d).train(lambda params: None, steps=1),
    ),
    Usage(
        "input_fn returns a number",
        "input_fn",
        lambda d: tpu_model(d).train(lambda params: 3, steps=1),
    ),
    Usage(
        "batches of another size",
        "input_fn",
        lambda d: tpu_model(d).train(lambda params: dataset(3), steps=1),
    ),
    Usage(
        "batches whose size is not known",
        "input_fn",
        lambda d: tpu_model(d).train(
            lambda params: tf.data.Dataset.from_tensor_slices((ROWS, ROWS)).batch(4), steps=1
        ),
    ),
    Usage(
        "hooks is a hook",
        "hooks",
        lambda d: tpu_model(d).train(tpu_input_fn, tf1.train.StopAtStepHook(1), 1),
    ),
    Usage(
        "model_fn returns a loss",
        "model_fn",
        lambda d: tpu_model(d, model_fn=lambda features, labels, mode, params: 1.0).train(
            tpu_input_fn, steps=1
        ),
    ),
)

EMULATION = (
    Usage("num_cores is a word", "num_cores", lambda d: emulate_tpu("two")),
    Usage("num_cores is a string", "num_cores", lambda d: emulate_tpu(num_cores="8")),
    Usage("num_cores is 0", "num_cores", lambda d: emulate_tpu(0)),
    Usage("num_cores is negative", "num_cores", lambda d: emulate_tpu(-8)),
    Usage("num_cores is 2.5", "num_cores", lambda d: emulate_tpu(2.5)),
    Usage("num_cores is None", "num_cores", lambda d: emulate_tpu(None)),
    Usage("num_cores is True", "num_cores", lambda d: emulate_tpu(True)),
    Usage("num_cores is 100,000", "num_cores", lambda d: emulate_tpu(100_000)),
    Usage("num_cores is more than there are", "num_cores", lambda d: emulate_tpu(64)),
    Usage("twice, with other numbers", "num_cores", lambda d: [emulate_tpu(2), emulate_tpu(4)]),
    Usage("num_hosts does not divide", "num_hosts", lambda d: emulate_tpu(8, 3)),
    Usage("num_hosts is 0", "num_hosts", lambda d: emulate_tpu(8, num_hosts=0)),
    Usage("num_hosts is a string", "num_hosts", lambda d: emulate_tpu(8, num_hosts="2")),
    Usage(
        "twice, with the same number",
        "num_cores",
        lambda d: [emulate_tpu(2), emulate_tpu(2)],
        taken="it is what there is already",
    ),
)

TABLES = {
    "`TPUEstimator(...)`": CONSTRUCTOR,
    "calls of `TPUEstimator`": CALLS,
    "`emulate_tpu`": EMULATION,
}
