"""The initial values of a new model that come from another model's checkpoint.

Example:

    Estimator(model_fn, warm_start_from="/models/old")
    Estimator(model_fn, warm_start_from=WarmStartSettings("/models/old", "dense.*"))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class WarmStartSettings(NamedTuple):
    """The arguments of `tf.compat.v1.train.warm_start`.

    Attributes:
        ckpt_to_initialize_from: A checkpoint, or a folder whose latest one is taken.
        vars_to_warm_start: Regular expression or list of them, for trainable variables; a list of
            variables or of names, for any; None: only those of `var_name_to_vocab_info`.
        var_name_to_vocab_info: Variable name -> `tf.compat.v1.train.VocabInfo`, where the rows of
            a variable stand for the words of a vocabulary that changed.
        var_name_to_prev_var_name: Variable name -> its name in the checkpoint, where they differ.

    Source: `tf.estimator.WarmStartSettings`, tensorflow_estimator 2.15.
    """

    ckpt_to_initialize_from: str
    vars_to_warm_start: str | Sequence[Any] | None = ".*"
    var_name_to_vocab_info: Mapping[str, Any] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None


def settings_from(warm_start_from: Any) -> WarmStartSettings | None:
    """The settings that an Estimator's argument `warm_start_from` stands for.

    Args:
        warm_start_from: Path of a checkpoint, of a folder of checkpoints or of a SavedModel;
            settings; or None, which stays None.

    Raises:
        ValueError: It is none of these.

    Source: `_get_default_warm_start_settings`, tensorflow_estimator 2.15 estimator.py.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if not isinstance(warm_start_from, (str, bytes, os.PathLike)):
        raise ValueError(
            "warm_start_from must be a string or a WarmStartSettings, instead got "
            f"{type(warm_start_from)}."
        )
    path = os.fsdecode(warm_start_from)
    variables = os.path.join(
        path, tf.saved_model.VARIABLES_DIRECTORY, tf.saved_model.VARIABLES_FILENAME
    )
    if tf.io.gfile.exists(f"{variables}.index"):
        tf.compat.v1.logging.info("Warm-starting from a SavedModel")
        return WarmStartSettings(variables)
    return WarmStartSettings(path)
