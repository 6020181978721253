"""The switches of TF 1.15 between graph and eager mode, and between v1 and v2 behaviour.

TensorFlow's own switches change the whole process: after `tf.compat.v1.disable_v2_behavior()`
Keras's `fit` and strategies run in graph mode. The ones here change the thread that calls them
between graph and eager mode. Variables and control flow depend on the graph that they are in
(`engine/behavior.py`), shapes on whose code asks (`by_caller.py`). Legacy code can ask for the
variables and control flow of TF 2.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_switches, behavior, callers, patches
from estimator2strategy.engine.behavior import CONTROL_FLOW_V2, RESOURCE_VARIABLES


class _Mode(threading.local):
    """Graph mode of this thread, where it was entered here."""

    graph: contextlib.AbstractContextManager[None] | None = None


_mode = _Mode()


def start_in_graph_mode() -> None:
    """Graph mode for this thread, and for threads that run legacy code from now on."""
    disable_eager_execution()
    _tf_switches.threads_in_graph_mode(callers.runs_in_thread)
    behavior.enter_process()


def disable_eager_execution() -> None:
    """Graph mode for this thread, as TF 1.15 started in."""
    if tf.executing_eagerly():
        # If its devices start in graph mode, TensorFlow places hard what runs outside of Sessions.
        patches.noted("soft placement")
        tf.config.set_soft_device_placement(tf.config.get_soft_device_placement())
        _mode.graph = _tf_switches.graph_mode()
        _mode.graph.__enter__()
        behavior.enter_thread(True)


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
    behavior.enter_thread(False)


def enable_resource_variables() -> None:
    """Legacy code makes resource variables from now on, as it does in eager mode anyway."""
    behavior.SWITCHED_ON.add(RESOURCE_VARIABLES)


def disable_resource_variables() -> None:
    """Legacy code makes reference variables in v1 graphs from now on, as at the beginning."""
    behavior.SWITCHED_ON.discard(RESOURCE_VARIABLES)


def enable_control_flow_v2() -> None:
    """Conds and loops of legacy code are functions from now on."""
    behavior.SWITCHED_ON.add(CONTROL_FLOW_V2)


def disable_control_flow_v2() -> None:
    """Conds and loops of legacy code are v1's in v1 graphs from now on, as at the beginning."""
    behavior.SWITCHED_ON.discard(CONTROL_FLOW_V2)


def resource_variables_enabled() -> bool:
    """True if legacy code makes resource variables in v1 graphs."""
    return RESOURCE_VARIABLES in behavior.SWITCHED_ON


def control_flow_v2_enabled() -> bool:
    """True if conds and loops of legacy code are functions in v1 graphs."""
    return CONTROL_FLOW_V2 in behavior.SWITCHED_ON


def disable_v2_behavior() -> None:
    """Graph mode for this thread, with what is v1's in it; other v1 behaviour is always there."""
    disable_eager_execution()
    disable_resource_variables()
    disable_control_flow_v2()
    behavior.SWITCHED_ON.discard("v2 behavior")


def enable_v2_behavior() -> None:
    """Eager mode for this thread, and v1 graphs with resource variables and functional loops."""
    enable_eager_execution()
    enable_resource_variables()
    enable_control_flow_v2()
    behavior.SWITCHED_ON.add("v2 behavior")


def v2_behavior_enabled() -> bool:
    """True if the program asked for v2 behaviour: `tensorflow.python.tf2.enabled`.

    TF2's own is always true. Libraries choose by it between `tf.layers` and `tf.keras.layers`,
    whose variables have other names.
    """
    return "v2 behavior" in behavior.SWITCHED_ON


def run_v1_only(reason: str, func: Any = None) -> Any:
    """Skips a test, or a class of tests, where the program asked for v2 behaviour.

    Source: `run_v1_only`, TensorFlow 1.15 framework/test_util.py.
    """

    def decorated(test: Any) -> Any:
        if isinstance(test, type):
            test.setUp = decorated(test.setUp)  # type: ignore[attr-defined]
            return test

        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if v2_behavior_enabled():
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return run

    return decorated if func is None else decorated(func)


def _has_no_effect() -> None:
    """Accepted, without effect: see the first lines of this module."""


enable_v2_tensorshape = disable_v2_tensorshape = _has_no_effect
enable_tensor_equality = disable_tensor_equality = _has_no_effect
