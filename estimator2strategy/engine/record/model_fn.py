"""Calls model_fn with those of Estimator's arguments that it declares."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import patches
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import is_refusal, wrong_argument
from estimator2strategy.errors import RecordingError

tf1 = tf.compat.v1

# In a message, a shape of which a size is not known: (None, 3), [None], (Dimension(None),).
_SHAPE = re.compile(r"[(\[](?:(?:Dimension\()?(?:None|\?|\d+)\)?,? ?)+[)\]]")
# The complaint has the object, and the lines of code that made it.
_PARTS = ("Object was never used", "report_uninitialized_variables", "sync_replicas_optimizer.py")


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, params: Any, config: Any
) -> Any:
    """Calls the model_fn of an Estimator; returns what it returns.

    Raises:
        ValueError: It takes no labels, and there are some.

    Source: `Estimator._call_model_fn`, tensorflow_estimator 2.15.
    """
    names = argument_names(model_fn)
    if labels is not None and "labels" not in names:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    available = {"labels": labels, "mode": mode, "params": params, "config": config}
    hold_back_unused_report()
    tf1.logging.info("Calling model_fn.")
    with blaming_odd_input(features, labels if "labels" in names else (), mode):
        spec = model_fn(features=features, **{k: v for k, v in available.items() if k in names})
    tf1.logging.info("Done calling model_fn.")
    return spec


@contextlib.contextmanager
def blaming_odd_input(features: Any, labels: Any, mode: str) -> Iterator[None]:
    """Says what model_fn got, if that is no tensors and model_fn fails on it.

    The original hands on whatever input_fn returns, and a model_fn may make sense of it.

    Raises:
        RecordingError: In place of the error of TensorFlow or Python.
    """
    try:
        yield
    except RecordingError:  # said by a model_fn that this one calls
        raise
    except (AttributeError, TypeError, ValueError) as error:
        if mode == ModeKeys.PREDICT and is_refusal(error):
            raise
        parts = {"features": features, "labels": labels}
        no_labels = mode == ModeKeys.PREDICT and labels is None and not _is_odd(features)
        if no_labels and _is_about_none(error):
            raise wrong_argument(
                f"model_fn uses its labels, which are None in predict and export ({error})",
                labels,
                "Return the predictions before labels are used.",
                RecordingError,
            ) from error
        for name, part in parts.items():
            if _is_odd(part) and (part is not None or _is_about_none(error)):
                raise wrong_argument(
                    f"model_fn cannot use the {name} that input_fn returned ({error})",
                    part,
                    "Return from input_fn a Dataset, or (features, labels): tensors, or dicts of "
                    "them.",
                    RecordingError,
                ) from error
        raise


def _is_about_none(error: Exception) -> bool:
    """True if an error speaks of None, which the sizes in a shape may be as well."""
    return "None" in _SHAPE.sub("", str(error))


def _is_odd(part: Any) -> bool:
    """True for what model_fn cannot take for tensors as it is."""
    return not all(map(_is_usual, tf.nest.flatten(part)))


def _is_usual(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        return True
    return tf.is_tensor(leaf) and not isinstance(leaf, tf.data.Dataset)


def not_a_spec(spec: Any, model_fn: Callable[..., Any]) -> ValueError:
    """The error for what a model_fn returned and should not have."""
    return wrong_argument(
        f"model_fn should return an EstimatorSpec, but {location(model_fn)} "
        f"returned {type(spec).__name__}",
        spec,
        "Return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op).",
    )


def _is_of_others(record: logging.LogRecord) -> bool:
    return not all(part in str(record.msg) for part in _PARTS)


@functools.cache
def hold_back_unused_report() -> None:
    """From here on TensorFlow's complaint about an op that it leaves unused itself is not logged.

    `tf.train.SyncReplicasOptimizer.apply_gradients` makes an op that reports variables without
    values. Only its hook uses it, and only in training: otherwise TensorFlow logs eight lines of
    "Object was never used" when Python collects garbage. Other objects are complained of as before.
    """
    patches.noted("unused reports")
    tf.get_logger().addFilter(_is_of_others)
