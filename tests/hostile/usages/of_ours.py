"""Wrong usages of what this package adds: `LegacyModel`, `adapt`, `TrainingOptions` and others."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy import LegacyModel, TrainingOptions, adapt, keras_metrics
from estimator2strategy.tf1 import contrib
from tests.hostile.usages.programs import (
    LABELS,
    finite,
    input_fn,
    model,
    model_fn,
    tpu_input_fn,
    tpu_model_fn,
    trained,
)
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1


def metric_fn(labels, predictions):
    return {"m": tf1.metrics.mean_squared_error(labels, predictions)}


def built(**arguments):
    made = LegacyModel(model_fn, **arguments)
    made.build(finite())
    return made


LEGACY_MODEL = (
    Usage("model_fn is a number", "model_fn", lambda d: LegacyModel(3)),
    Usage("model_fn is None", "model_fn", lambda d: LegacyModel(None)),
    Usage("model_fn is an Estimator", "model_fn", lambda d: LegacyModel(model(d))),
    Usage(
        "model_fn without features", "features", lambda d: LegacyModel(lambda labels, mode: None)
    ),
    Usage("config is a path", "config", lambda d: LegacyModel(model_fn, config=d)),
    Usage(
        "config is a ConfigProto",
        "config",
        lambda d: LegacyModel(model_fn, config=tf1.ConfigProto()),
    ),
    Usage("params for a model_fn without", "params", lambda d: LegacyModel(model_fn, {"lr": 1})),
    Usage(
        "params is a list, for a TPU's",
        "params",
        lambda d: LegacyModel(tpu_model_fn, [1], use_tpu=False),
    ),
    Usage("use_tpu is 'False'", "use_tpu", lambda d: LegacyModel(tpu_model_fn, use_tpu="False")),
    Usage("name is a number", "name", lambda d: LegacyModel(model_fn, name=3)),
    Usage(
        "compile with an optimizer",
        "optimizer",
        lambda d: LegacyModel(model_fn).compile(optimizer="adam"),
    ),
    Usage("compile with a loss", "loss", lambda d: LegacyModel(model_fn).compile(loss="mse")),
    Usage(
        "compile for eager steps",
        "run_eagerly",
        lambda d: LegacyModel(model_fn).compile(run_eagerly=True),
    ),
    Usage(
        "steps_per_execution is a string",
        "steps_per_execution",
        lambda d: LegacyModel(model_fn).compile(steps_per_execution="5"),
    ),
    Usage(
        "steps_per_execution is 0",
        "steps_per_execution",
        lambda d: LegacyModel(model_fn).compile(steps_per_execution=0),
    ),
    Usage("build of a number", "batch", lambda d: LegacyModel(model_fn).build(3)),
    Usage("build of an input_fn", "batch", lambda d: LegacyModel(model_fn).build(input_fn)),
    Usage("a checkpoint that is a number", "path", lambda d: built().load_checkpoint(3)),
    Usage("a checkpoint that is nowhere", "path", lambda d: built().load_checkpoint("/no/such")),
    Usage("saving to a number", "path", lambda d: built().save_checkpoint(3)),
    Usage(
        "saving before it is built",
        "save_checkpoint",
        lambda d: LegacyModel(model_fn).save_checkpoint(d),
    ),
    Usage("a scope that there is not", "scope", lambda d: built().scope("bert")),
)

ADAPT = (
    Usage("model_fn is None", "model_fn", lambda d: adapt(None, input_fn)),
    Usage("model_fn is a number", "model_fn", lambda d: adapt(3, input_fn)),
    Usage("no input at all", "input_fn", lambda d: adapt(model_fn)),
    Usage("input_fn was called", "input_fn", lambda d: adapt(model_fn, finite())),
    Usage(
        "eval_input_fn is a number",
        "eval_input_fn",
        lambda d: adapt(model_fn, input_fn, eval_input_fn=3),
    ),
    Usage("config is a dict", "config", lambda d: adapt(model_fn, input_fn, config={"a": 1})),
    Usage(
        "strategy is a name", "strategy", lambda d: adapt(model_fn, input_fn, strategy="mirrored")
    ),
    Usage(
        "steps_per_execution is 0",
        "steps_per_execution",
        lambda d: adapt(model_fn, input_fn, steps_per_execution=0),
    ),
    Usage(
        "steps_per_execution is a string",
        "steps_per_execution",
        lambda d: adapt(model_fn, input_fn, steps_per_execution="5"),
    ),
    Usage(
        "use_tpu is 'False'",
        "use_tpu",
        lambda d: adapt(tpu_model_fn, tpu_input_fn, use_tpu="False", train_batch_size=8),
    ),
    Usage(
        "use_tpu without a batch size",
        "train_batch_size",
        lambda d: adapt(tpu_model_fn, tpu_input_fn, use_tpu=True),
    ),
    Usage(
        "a batch size without use_tpu",
        "train_batch_size",
        lambda d: adapt(model_fn, input_fn, train_batch_size=8),
    ),
    Usage("an Estimator, and params", "params", lambda d: adapt(trained(), input_fn, params={})),
    Usage("model_dir is a number", "model_dir", lambda d: adapt(model_fn, input_fn, model_dir=3)),
    Usage(
        "train: num_steps is a string",
        "num_steps",
        lambda d: adapt(model_fn, input_fn, model_dir=d).train("5"),
    ),
    Usage(
        "train: num_steps is 0",
        "num_steps",
        lambda d: adapt(model_fn, input_fn, model_dir=d).train(0),
    ),
    Usage(
        "evaluate without an input",
        "eval_input_fn",
        lambda d: adapt(model_fn, input_fn, model_dir=d).evaluate(),
    ),
)

KERAS_METRICS = (
    Usage("metric_fn is a dict", "metric_fn", lambda d: keras_metrics({"m": 1}, [LABELS, LABELS])),
    Usage("metric_fn is None", "metric_fn", lambda d: keras_metrics(None, [LABELS, LABELS])),
    Usage("tensors is an array", "tensors", lambda d: keras_metrics(metric_fn, LABELS)),
    Usage("tensors has one too few", "tensors", lambda d: keras_metrics(metric_fn, [LABELS])),
    Usage(
        "tensors has other names",
        "tensors",
        lambda d: keras_metrics(metric_fn, {"a": LABELS, "b": LABELS}),
    ),
    Usage(
        "metric_fn returns a tensor",
        "metric_fn",
        lambda d: keras_metrics(lambda x: tf.reduce_mean(x), [LABELS]),
    ),
    Usage(
        "update_state of one too few",
        "update_state",
        lambda d: keras_metrics(metric_fn, [LABELS, LABELS])["m"].update_state(LABELS),
    ),
    Usage("Estimator.keras_metrics(None)", "input_fn", lambda d: trained().keras_metrics(None)),
    Usage(
        "Estimator.keras_metrics of a Dataset",
        "input_fn",
        lambda d: trained().keras_metrics(finite()),
    ),
)

OPTIONS = (
    Usage("jit_compile is a string", "jit_compile", lambda d: TrainingOptions(jit_compile="False")),
    Usage("jit_compile is None", "jit_compile", lambda d: TrainingOptions(jit_compile=None)),
    Usage("resume_input is 'no'", "resume_input", lambda d: TrainingOptions(resume_input="no")),
    Usage(
        "async_checkpoints is 3",
        "async_checkpoints",
        lambda d: TrainingOptions(async_checkpoints=3),
    ),
    Usage(
        "checkpoint_shards is 0",
        "checkpoint_shards",
        lambda d: TrainingOptions(checkpoint_shards=0),
    ),
    Usage(
        "checkpoint_shards is a string",
        "checkpoint_shards",
        lambda d: TrainingOptions(checkpoint_shards="4"),
    ),
    Usage(
        "checkpoint_shards is True",
        "checkpoint_shards",
        lambda d: TrainingOptions(checkpoint_shards=True),
    ),
    Usage("max_restarts is negative", "max_restarts", lambda d: TrainingOptions(max_restarts=-1)),
    Usage("max_restarts is a string", "max_restarts", lambda d: TrainingOptions(max_restarts="3")),
    Usage("profile_dir is True", "profile_dir", lambda d: TrainingOptions(profile_dir=True)),
    Usage("profile_dir is a number", "profile_dir", lambda d: TrainingOptions(profile_dir=3)),
    Usage("a keyword that is misspelt", "jit", lambda d: TrainingOptions(jit=True)),
    Usage("by position", "TrainingOptions", lambda d: TrainingOptions(True)),
)

CONTRIB = (
    Usage("contrib.layers: a typo", "fully_conected", lambda d: contrib.layers.fully_conected),
    Usage("contrib: a typo", "layerz", lambda d: contrib.layerz),
    Usage("contrib.training: a typo", "HParamz", lambda d: contrib.training.HParamz),
    Usage(
        "contrib.metrics: a typo",
        "streaming_accurracy",
        lambda d: contrib.metrics.streaming_accurracy,
    ),
    Usage("contrib.framework: a typo", "arg_scopes", lambda d: contrib.framework.arg_scopes),
    Usage("contrib.opt: a typo", "LazyAdam", lambda d: contrib.opt.LazyAdam),
    Usage("contrib.tpu: a typo", "TPUEstimater", lambda d: contrib.tpu.TPUEstimater),
)

TABLES = {
    "`LegacyModel`": LEGACY_MODEL,
    "`adapt`": ADAPT,
    "`keras_metrics`": KERAS_METRICS,
    "`TrainingOptions`": OPTIONS,
    "`tf.contrib`": CONTRIB,
}
