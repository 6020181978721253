"""The initial values of a new model that come from another model's checkpoint.

Example:

    Estimator(model_fn, warm_start_from="/models/old")
    Estimator(model_fn, warm_start_from=WarmStartSettings("/models/old", "dense.*"))
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.runtime.checkpoints import is_there
from estimator2strategy.engine.runtime.latest_checkpoint import latest_checkpoint
from estimator2strategy.engine.wrong_argument import ArgumentRule, check, wrong_argument
from estimator2strategy.estimator.contract_rules import is_path

tf1 = tf.compat.v1


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


def _is_pattern(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _is_choice(value: Any) -> bool:
    """True for a pattern, or several patterns and variables, or none."""
    if value is None or isinstance(value, str):
        return value is None or _is_pattern(value)
    several = hasattr(value, "__iter__") and not isinstance(value, (bytes, dict))
    return several and all(_is_pattern(v) for v in value if isinstance(v, str))


def _is_mapping_or_none(value: Any) -> bool:
    return not value or isinstance(value, Mapping)


_RULES = {
    "ckpt_to_initialize_from": ArgumentRule(
        lambda value: bool(value) and is_path(value),
        "must be a path",
        "Pass the path of a checkpoint, or of a folder whose latest one is taken.",
    ),
    "vars_to_warm_start": ArgumentRule(
        _is_choice,
        "must be a regular expression",
        "Pass a regular expression for the names of variables, a list of them, or None.",
        ValueError,
    ),
    "var_name_to_vocab_info": ArgumentRule(
        lambda value: (
            _is_mapping_or_none(value)
            and all(hasattr(info, "new_vocab") for info in (value or {}).values())
        ),
        "must be a dict of VocabInfo",
        "Pass a dict from names of variables to tf.compat.v1.train.VocabInfo(...).",
    ),
    "var_name_to_prev_var_name": ArgumentRule(
        _is_mapping_or_none,
        "must be a dict",
        "Pass a dict from names of variables to their names in the checkpoint.",
    ),
}


def warm_start(settings: WarmStartSettings | None, checkpoint_path: str | None = None) -> None:
    """`tf.compat.v1.train.warm_start` of the default graph, with what is wrong said before.

    Args:
        checkpoint_path: A checkpoint that will be restored: it has all values.

    Raises:
        ValueError: There is no such checkpoint.
    """
    if not settings or checkpoint_path:
        return
    tf1.logging.info("Warm-starting with WarmStartSettings: %s", settings)
    path = os.fsdecode(settings.ckpt_to_initialize_from)
    newest = latest_checkpoint(path) if tf.io.gfile.isdir(path) else path
    if not newest or not is_there(newest):
        raise wrong_argument(
            "warm_start_from, or its ckpt_to_initialize_from, is no checkpoint",
            path,
            _RULES["ckpt_to_initialize_from"].instead,
        )
    pattern = settings.vars_to_warm_start
    trainable = [variable.name for variable in tf1.trainable_variables()]
    if isinstance(pattern, str) and not any(re.match(pattern, name) for name in trainable):
        # The original went on: some programs share one pattern among their models.
        tf1.logging.warn(
            str(
                wrong_argument(
                    f"vars_to_warm_start matches none of the variables {trainable}",
                    pattern,
                    "Pass a regular expression that matches the start of a name.",
                )
            )
        )
    tf1.train.warm_start(*settings._replace(ckpt_to_initialize_from=newest))


def settings_from(warm_start_from: Any) -> WarmStartSettings | None:
    """The settings that an Estimator's argument `warm_start_from` stands for.

    Args:
        warm_start_from: Path of a checkpoint, of a folder of checkpoints or of a SavedModel;
            settings; or None, which stays None.

    Raises:
        ValueError: It is none of these.

    Source: `_get_default_warm_start_settings`, tensorflow_estimator 2.15 estimator.py.
    """
    if warm_start_from is None:
        return None
    if isinstance(warm_start_from, WarmStartSettings):
        check(_RULES, warm_start_from._asdict())
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
