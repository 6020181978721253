"""Holds back one complaint of TensorFlow's about an object that TensorFlow itself leaves unused.

`tf.train.SyncReplicasOptimizer.apply_gradients` makes an op that reports variables without values.
Only its hook uses the op, and only in training: after an evaluation, or where the program has no
hook, TensorFlow logs eight lines of "Object was never used" at a time when Python collects garbage.
The check stays as it is for all other objects.
"""

from __future__ import annotations

import functools
import logging

import tensorflow as tf

from estimator2strategy.engine import patches

# The complaint has the object, and the lines of code that made it.
_PARTS = ("Object was never used", "report_uninitialized_variables", "sync_replicas_optimizer.py")


def _is_of_others(record: logging.LogRecord) -> bool:
    return not all(part in str(record.msg) for part in _PARTS)


@functools.cache
def hold_back_unused_report() -> None:
    """From here on the optimizer's own complaint is not logged in this process."""
    patches.noted("unused reports")
    tf.get_logger().addFilter(_is_of_others)
