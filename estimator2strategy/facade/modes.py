"""The switches of TF 1.15 between graph and eager mode, and between v1 and v2 behaviour.

TensorFlow's own switches change the whole process: after `tf.compat.v1.disable_v2_behavior()`
Keras's `fit` and strategies run in graph mode. The ones here change the thread that calls them, and
only between graph and eager mode: shapes depend on who asks (`legacy.py`), variables are always
resource variables, control flow is always functional.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import tensorflow as tf

from estimator2strategy import _tf_private


class _Mode(threading.local):
    """Graph mode of this thread, where it was entered here."""

    graph: contextlib.AbstractContextManager | None = None


_mode = _Mode()


def disable_eager_execution() -> None:
    """Graph mode for this thread, as TF 1.15 started in."""
    if tf.executing_eagerly():
        _mode.graph = _tf_private.graph_mode()
        _mode.graph.__enter__()


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Eager mode for this thread.

    Args:
        config, device_policy, execution_mode: Hints of TF 1.15 that change no result; not used.

    Raises:
        ValueError: Something has been added to the graph already.
    """
    del config, device_policy, execution_mode
    if tf.executing_eagerly():
        return
    graph = tf.compat.v1.get_default_graph()
    if _mode.graph is None or graph.version:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    _mode.graph.__exit__(None, None, None)
    _mode.graph = None


def disable_v2_behavior() -> None:
    """Graph mode for this thread; the rest of v1 behaviour legacy code has anyway."""
    disable_eager_execution()


def enable_v2_behavior() -> None:
    """Eager mode for this thread."""
    enable_eager_execution()


def _has_no_effect() -> None:
    """Accepted, without effect: see the first lines of this module."""


enable_v2_tensorshape = disable_v2_tensorshape = _has_no_effect
enable_resource_variables = disable_resource_variables = _has_no_effect
enable_control_flow_v2 = disable_control_flow_v2 = _has_no_effect
enable_tensor_equality = disable_tensor_equality = _has_no_effect
