"""The rules for the arguments of the contract, by their names: an argument means one thing there.

What the original took and made sense of holds: `steps=100.0`, a flag that is 1, a generator of
hooks. Ranges (`steps > 0`) are checked where the original checked them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator2strategy.engine.wrong_argument import ArgumentRule

# A string is true, also that of a flag that names the TPU; these read as if they were false.
_FALSE_STRINGS = frozenset(["false", "f", "no", "n", "off", "0", "none", "null"])


def or_none(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def is_number(value: Any) -> bool:
    """True for whatever can be compared with a number."""
    try:
        return bool(value > 0) or bool(value <= 0)  # neither: NaN
    except (TypeError, ValueError):
        return False


def is_flag(value: Any) -> bool:
    """True for what is true or false, or a string that does not read as false and act as true."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_STRINGS
    return value is None or isinstance(value, (bool, int, float, np.generic))


def is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def is_strategy(value: Any) -> bool:
    """True for a `tf.distribute.Strategy`, of whatever version, and for none."""
    return not value or hasattr(type(value), "num_replicas_in_sync")


def is_several(value: Any) -> bool:
    """True for what the original's `list(value or [])` made a list of."""
    if hasattr(value, "__iter__"):
        return not isinstance(value, (str, bytes, dict)) or not value
    return not value


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def flag_rule(instead: str) -> ArgumentRule:
    return ArgumentRule(
        is_flag, "must be True or False", f"{instead}: a string such as 'False' is true."
    )


_INPUT = (
    "Pass a function that returns a Dataset or (features, labels), and not its result: "
    "lambda: make_dataset()."
)
_INPUT_FN = ArgumentRule(callable, "`input_fn` must be callable", _INPUT)
_STEPS = "Pass a number above 0; None: until the input ends."
_HOOKS = ArgumentRule(
    is_several,
    "must be a list; each must be a SessionRunHook",
    "Pass a list of instances of classes derived from tf.compat.v1.train.SessionRunHook.",
)
_CHECKPOINT = (
    "Pass the path of a checkpoint without the ending of its files: /models/model.ckpt-100."
)
_RECEIVER = (
    "Pass a function that returns a ServingInputReceiver, and not its result: "
    "estimator.export.build_parsing_serving_input_receiver_fn(feature_spec)."
)
_SECONDS = "Pass a number of seconds, 0 or more."
_STRATEGY = "Pass an instance of tf.distribute.Strategy, such as tf.distribute.MirroredStrategy()."
_CONFIG = (
    "Pass an instance of estimator.RunConfig, or of estimator.tpu.RunConfig for a TPUEstimator."
)

# Anything but a number is refused for cores alone: on the host a program may convert a string.
_BATCH_SIZE = ArgumentRule(
    lambda value: True,
    "must be int",
    "Pass the number of examples in a batch of all cores, above 0.",
)

RULES: Mapping[str, ArgumentRule] = {
    # Of constructors.
    "model_fn": ArgumentRule(
        or_none(callable),
        "must be callable",
        "Pass a function model_fn(features, labels, mode, params, config) that returns a spec.",
    ),
    "model_dir": ArgumentRule(
        or_none(is_path), "must be a path", "Pass the folder of checkpoints as a string, or None."
    ),
    "config": ArgumentRule(lambda value: True, "must be a RunConfig", _CONFIG),
    "params": ArgumentRule(
        lambda value: True,
        "must be a dict",
        "Pass a dict of hyperparameters, and let model_fn take params.",
    ),
    "warm_start_from": ArgumentRule(
        lambda value: True,
        "must be a path",
        "Pass the path of a checkpoint or a folder of some, or estimator.WarmStartSettings(path).",
    ),
    "options": ArgumentRule(
        lambda value: True, "", "Pass estimator.TrainingOptions(...), or None."
    ),
    "strategy": ArgumentRule(is_strategy, "must be a tf.distribute.Strategy", _STRATEGY),
    # Of calls.
    "input_fn": _INPUT_FN,
    "steps": ArgumentRule(or_none(is_number), "must be a number", _STEPS),
    "max_steps": ArgumentRule(
        or_none(is_number),
        "must be a number",
        "Pass the global step at which to stop, above 0, or None; and only one of steps and "
        "max_steps.",
    ),
    "hooks": _HOOKS,
    "saving_listeners": ArgumentRule(
        is_several,
        "must be a list of CheckpointSaverListener",
        "Pass a list of instances of classes derived from "
        "tf.compat.v1.train.CheckpointSaverListener.",
    ),
    "checkpoint_path": ArgumentRule(
        lambda value: not value or is_path(value), "must be a path", _CHECKPOINT
    ),
    "name": ArgumentRule(
        lambda value: not value or _is_string(value),
        "`name` must be string",
        "Pass a string, or None.",
    ),
    "predict_keys": ArgumentRule(
        lambda value: not value or hasattr(value, "__contains__") or hasattr(value, "__iter__"),
        "must be a list of strings",
        "Pass the names of some of the predictions of model_fn, in a list.",
    ),
    "yield_single_examples": flag_rule("Pass True for examples, False for batches"),
    # Of exports.
    "export_dir_base": ArgumentRule(
        is_path, "must be a path", "Pass the folder of exports as a string."
    ),
    "serving_input_receiver_fn": ArgumentRule(or_none(callable), "must be callable", _RECEIVER),
    "input_receiver_fn_map": ArgumentRule(
        lambda value: isinstance(value, Mapping),
        "must be a dict",
        "Pass a dict from ModeKeys.TRAIN, EVAL and PREDICT to functions that return receivers.",
    ),
    "experimental_mode": ArgumentRule(
        _is_string, "must be a mode", "Pass ModeKeys.PREDICT, ModeKeys.EVAL or ModeKeys.TRAIN."
    ),
    "assets_extra": ArgumentRule(
        or_none(lambda value: isinstance(value, Mapping)),
        "must be a dict",
        "Pass a dict from the path below assets.extra to the file to copy there.",
    ),
    "as_text": flag_rule("Pass True for saved_model.pbtxt, False for saved_model.pb"),
    "strip_default_attrs": flag_rule("Pass True or False"),
    "for_tensorflow": ArgumentRule(
        lambda value: value is None or value == "1.15",
        "must be a release that exports are rewritten for",
        "Pass '1.15'; or None, for TensorFlow 2.15 and newer.",
        ValueError,
    ),
    # Of TrainSpec, EvalSpec, exporters and hooks.
    "exporters": ArgumentRule(
        lambda value: True, "", "Pass an Exporter, or a list of some that have different names."
    ),
    "start_delay_secs": ArgumentRule(is_number, "must be a number", _SECONDS),
    "throttle_secs": ArgumentRule(is_number, "must be a number", _SECONDS),
    "exports_to_keep": ArgumentRule(
        or_none(is_number),
        "must be a positive number",
        "Pass the number of exports to keep, above 0; None keeps all.",
    ),
    "compare_fn": ArgumentRule(
        or_none(callable),
        "must be callable",
        "Pass a function compare_fn(best_eval_result, current_eval_result) that returns a bool.",
    ),
    "event_file_pattern": ArgumentRule(
        or_none(_is_string), "must be a string", "Pass a pattern such as 'eval/*.tfevents.*'."
    ),
    "estimator": ArgumentRule(lambda value: True, "", "Pass the Estimator itself."),
    "train_spec": ArgumentRule(
        lambda value: True, "", "Pass estimator.TrainSpec(input_fn, max_steps)."
    ),
    "eval_spec": ArgumentRule(lambda value: True, "", "Pass estimator.EvalSpec(input_fn, steps)."),
    # Of TPUEstimator.
    "use_tpu": flag_rule("Pass True or False"),
    "eval_on_tpu": flag_rule("Pass True or False"),
    "export_to_tpu": flag_rule("Pass True or False"),
    "export_to_cpu": flag_rule("Pass True or False"),
    "train_batch_size": _BATCH_SIZE,
    "eval_batch_size": _BATCH_SIZE,
    "predict_batch_size": _BATCH_SIZE,
    "batch_axis": ArgumentRule(
        or_none(
            lambda value: (
                isinstance(value, (list, tuple))
                and all(isinstance(axis, (int, np.integer)) for axis in value)
            )
        ),
        "must be a list of ints",
        "Pass the axis of the batch for each tensor of features and labels, such as [0, 0], or "
        "None.",
    ),
    "embedding_config_spec": ArgumentRule(
        lambda value: True, "", "Pass estimator.tpu.experimental.EmbeddingConfigSpec(...), or None."
    ),
    "export_saved_model_api_version": ArgumentRule(lambda value: True, "", "Pass 1 or 2."),
}


def _has_params(value: Any) -> bool:
    """True for what TPUEstimator can put `batch_size` into: a dict, or HParams."""
    settable = hasattr(value, "__setitem__") and not isinstance(value, list)
    return settable or hasattr(value, "set_hparam")


# A TPUEstimator adds to params, and makes its batches of the sizes.
TPU_RULES: Mapping[str, ArgumentRule] = {
    **RULES,
    "config": ArgumentRule(
        lambda value: True, "", "Pass estimator.tpu.RunConfig(tpu_config=TPUConfig(...), ...)."
    ),
    "params": ArgumentRule(
        or_none(_has_params),
        "must be a dict",
        "Pass a dict of hyperparameters without batch_size and context, which TPUEstimator adds.",
    ),
}

_INTERVAL = "Pass one of run_every_secs and run_every_steps, a number, and None for the other."
_NUMBER = "Pass a number."

# Of hooks that this package has, and of add_metrics.
HOOK_RULES: Mapping[str, ArgumentRule] = {
    **RULES,
    "estimator": ArgumentRule(
        lambda value: hasattr(value, "config") and hasattr(value, "model_dir"),
        "`estimator` must have type `tf.estimator.Estimator`",
        "Pass the Estimator itself, the one that is trained.",
    ),
    "metric_name": ArgumentRule(
        _is_string, "must be a string", "Pass the metric's name, as evaluate returns it."
    ),
    "threshold": ArgumentRule(is_number, "must be a number", _NUMBER),
    "max_steps_without_increase": ArgumentRule(is_number, "must be a number", _NUMBER),
    "max_steps_without_decrease": ArgumentRule(is_number, "must be a number", _NUMBER),
    "min_steps": ArgumentRule(is_number, "must be a number", _NUMBER),
    "eval_dir": ArgumentRule(
        or_none(is_path), "must be a path", "Pass the folder of events, or None: eval_dir()."
    ),
    "should_stop_fn": ArgumentRule(
        callable, "must be callable", "Pass a function without arguments."
    ),
    "run_every_secs": ArgumentRule(or_none(is_number), "must be a number", _INTERVAL),
    "run_every_steps": ArgumentRule(or_none(is_number), "must be a number", _INTERVAL),
    "every_n_iter": ArgumentRule(or_none(is_number), "must be a number", "Pass a number above 0."),
    "last_step": ArgumentRule(is_number, "must be a number", "Pass the global step to stop at."),
    "metric_fn": ArgumentRule(
        callable,
        "must be callable",
        "Pass a function of any of features, labels, predictions and config that returns a dict "
        "of metrics.",
    ),
}

_SHUFFLE = "Pass shuffle=True for training, shuffle=False for evaluation and prediction."


def is_count(value: Any) -> bool:
    return is_number(value) and value >= 1


# Of numpy_input_fn and pandas_input_fn.
INPUT_RULES: Mapping[str, ArgumentRule] = {
    "x": ArgumentRule(
        lambda value: True, "", "Pass an array or a dict of arrays; to pandas_input_fn a DataFrame."
    ),
    "y": ArgumentRule(
        lambda value: True, "", "Pass the labels, as many as there are rows in x, or None."
    ),
    "shuffle": ArgumentRule(lambda value: True, "", _SHUFFLE),
    "batch_size": ArgumentRule(is_count, "must be a number above 0", "Pass the rows of a batch."),
    "num_epochs": ArgumentRule(
        or_none(is_number), "must be a number", "Pass a number of epochs; None: no end."
    ),
    "queue_capacity": ArgumentRule(
        or_none(is_number), "must be a number", "Pass a number of rows."
    ),
    "num_threads": ArgumentRule(
        or_none(is_count), "must be a number above 0", "Leave it out: it multiplies the epochs."
    ),
    "target_column": ArgumentRule(
        lambda value: True, "", "Pass the name that the labels get, a string that x has not."
    ),
}

PANDAS_RULES: Mapping[str, ArgumentRule] = {
    **INPUT_RULES,
    "x": ArgumentRule(
        lambda value: hasattr(value, "columns"), "must be a DataFrame", "Pass a DataFrame."
    ),
}

_FED = "Pass a dict from names to tensors; of what is fed, usually to tf.compat.v1.placeholder's."

# Of receivers and of the functions that build their functions.
RECEIVER_RULES: Mapping[str, ArgumentRule] = {
    "features": ArgumentRule(lambda value: True, "", _FED),
    "labels": ArgumentRule(lambda value: True, "", _FED),
    "receiver_tensors": ArgumentRule(lambda value: True, "", _FED),
    "receiver_tensors_alternatives": ArgumentRule(lambda value: True, "", _FED),
    "feature_spec": ArgumentRule(
        lambda value: isinstance(value, Mapping),
        "must be a dict",
        "Pass a dict from names to tf.io.FixedLenFeature and the like.",
    ),
    "input_fn": _INPUT_FN,
}
RAW_RECEIVER_RULES: Mapping[str, ArgumentRule] = {
    **RECEIVER_RULES,
    "features": ArgumentRule(lambda value: isinstance(value, Mapping), "must be a dict", _FED),
}

_PAIR = (
    "Pass (function, tensors): tensors is a list, which the function takes by position, or a dict, "
    "which it takes by name."
)

# Of EstimatorSpec and TPUEstimatorSpec.
SPEC_RULES: Mapping[str, ArgumentRule] = {
    "mode": ArgumentRule(lambda value: True, "", "Pass the mode that model_fn got."),
    "predictions": ArgumentRule(
        lambda value: True, "", "Pass a tensor of model_fn, or a dict from names to such tensors."
    ),
    "loss": ArgumentRule(lambda value: True, "", "Pass a scalar tensor of this call of model_fn."),
    "train_op": ArgumentRule(
        lambda value: True,
        "",
        "Pass what optimizer.minimize(loss, tf.compat.v1.train.get_global_step()) returns; several "
        "as tf.group(...).",
    ),
    "eval_metric_ops": ArgumentRule(
        lambda value: True,
        "",
        "Pass a dict from names to (value, update_op), as tf.compat.v1.metrics return them.",
    ),
    "export_outputs": ArgumentRule(
        lambda value: True,
        "",
        "Pass a dict from names to estimator.export.PredictOutput(...) and the like.",
    ),
    "training_hooks": _HOOKS,
    "training_chief_hooks": _HOOKS,
    "evaluation_hooks": _HOOKS,
    "prediction_hooks": _HOOKS,
    "scaffold": ArgumentRule(
        lambda value: True, "", "Pass tf.compat.v1.train.Scaffold(...), or None."
    ),
    "scaffold_fn": ArgumentRule(
        lambda value: not value or callable(value),
        "must be callable",
        "Pass a function without arguments that returns a tf.compat.v1.train.Scaffold.",
    ),
    "eval_metrics": ArgumentRule(lambda value: True, "", _PAIR),
    "host_call": ArgumentRule(lambda value: True, "", _PAIR),
}
