"""Lets TensorFlow and Keras 2 answer by the code that asks: TF 1.15's finds what it expects.

Each function may be called again; what it switches on stays so. `engine/_tf_switches.py` has the
switches, `engine/legacy_code.py` knows who asks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType

from estimator2strategy.engine import _tf_switches, legacy_code

# What a program has switched on of TF 2's graphs: "resource variables", "control flow v2".
SWITCHED_ON: set[str] = set()


def tell_tensors_apart() -> None:
    """From now on legacy code gets TF 1.15's shapes and its equality of tensors."""
    _tf_switches.tensor_shapes_by_caller(legacy_code.is_legacy_frame)
    _tf_switches.tensor_equality_by_caller(legacy_code.is_legacy_frame)


def build_tf115_graphs() -> None:
    """From now on TF 1.15's code gets its reference variables and control flow, in v1 graphs."""

    def has_not_switched(switch: str) -> Callable[[FrameType], bool]:
        return lambda frame: switch not in SWITCHED_ON and legacy_code.works_for_tf115(frame)

    _tf_switches.graphs_by_caller(
        has_not_switched("resource variables"), has_not_switched("control flow v2")
    )


@functools.cache
def keras_is_there() -> None:
    """Switches on the behaviour that holds once the facade has handed out Keras 2."""
    _tf_switches.keras_moments_may_lack_a_mask()
    if not legacy_code.scope().tf2:
        _tf_switches.keras_dtypes_by_caller(legacy_code.is_legacy_frame)
        _tf_switches.keras_initializers_by_graph()
        _tf_switches.keras_metric_names_by_caller(legacy_code.is_legacy_frame)
        _tf_switches.keras_layer_names_by_caller(legacy_code.is_legacy_frame)
