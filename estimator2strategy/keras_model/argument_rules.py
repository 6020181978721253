"""The rules for the arguments of `LegacyModel`, `adapt` and `keras_metrics`, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.runtime.training_options import RUNTIME_RULES
from estimator2strategy.engine.wrong_argument import ArgumentRule
from estimator2strategy.estimator import contract_rules

_INPUT_FN = ArgumentRule(
    lambda value: value is None or callable(value),
    "must be callable",
    "Pass a function that returns a Dataset, such as `lambda: dataset_of(files)`. It is called in "
    "the graph of model_fn.",
)


def _is_steps(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number_of_steps(value: Any) -> bool:
    """True for an int, or an integer scalar of NumPy or TensorFlow."""
    if value is None or isinstance(value, (int, np.integer)):
        return True
    return tf.is_tensor(value) or isinstance(value, (np.ndarray, tf.Variable))


RULES: Mapping[str, ArgumentRule] = {
    **contract_rules.RULES,
    **RUNTIME_RULES,
    "model_fn": ArgumentRule(lambda value: True, "", "Pass a function, or an Estimator."),
    "input_fn": _INPUT_FN,
    "eval_input_fn": _INPUT_FN,
    "predict_input_fn": _INPUT_FN,
    "steps_per_execution": ArgumentRule(
        _is_steps,
        "must be an int of at least 1",
        "Pass the number of steps of one call.",
        ValueError,
    ),
    "num_steps": ArgumentRule(
        _is_number_of_steps, "must be an int", "Pass a number of steps, or None."
    ),
    "path": ArgumentRule(
        lambda value: value is None or contract_rules.is_path(value),
        "must be a path",
        "Pass the path of a checkpoint, or of a folder of checkpoints.",
    ),
}

# A LegacyModel has no Estimator inside, and its name is Keras's.
MODEL_RULES: Mapping[str, ArgumentRule] = {
    **RULES,
    "model_fn": ArgumentRule(
        lambda value: callable(value) and not isinstance(value, type),
        "must be a function",
        "Pass a function model_fn(features, labels, mode, params, config) that returns a spec.",
    ),
    "path": RULES["path"]._replace(holds=contract_rules.is_path),
    "name": ArgumentRule(
        lambda value: value is None or (isinstance(value, str) and "/" not in value),
        "must be a string without a slash",
        "Pass a name, or None.",
        ValueError,
    ),
    "batch": ArgumentRule(
        lambda value: not callable(value) and not isinstance(value, (int, float, str, type(None))),
        "must be a Dataset or a batch",
        "Pass a Dataset, its element_spec, or one batch: (features, labels).",
    ),
    "scope": ArgumentRule(lambda value: True, "", "Pass one of them."),
    "run_eagerly": ArgumentRule(lambda value: True, "", "Leave it out."),
    "of_model_fn": ArgumentRule(lambda value: True, "", "Leave it out."),
}

METRIC_RULES: Mapping[str, ArgumentRule] = {
    "metric_fn": ArgumentRule(
        callable, "must be callable", "Pass eval_metrics[0], a function that returns a dict."
    ),
    "tensors": ArgumentRule(
        lambda value: isinstance(value, (list, tuple, dict)),
        "must be a list or a dict",
        "Pass eval_metrics[1], what metric_fn takes: by position a list, by name a dict.",
    ),
}
