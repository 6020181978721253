"""Lets TensorFlow and Keras 2 answer by the code that asks: TF 1.15's finds what it expects.

Each function may be called again; what it switches on stays so. `engine/_tf_switches.py` has the
switches, `engine/callers.py` knows who asks.
"""

from __future__ import annotations

import functools

from estimator2strategy.engine import _tf_switches, behavior, callers


def tell_tensors_apart() -> None:
    """From now on TF 1.15's code gets its shapes and its equality of tensors."""
    _tf_switches.tensor_shapes_by(callers.asks_for_dimensions)
    _tf_switches.tensor_equality_by(callers.asks_for_identity)


@functools.cache
def keras_is_there() -> None:
    """Switches on the behaviour that holds once the facade has handed out Keras 2."""
    _tf_switches.keras_moments_may_lack_a_mask()
    _layers_can_be_applied()
    _tf_switches.keras_loops_keep_all_outputs()
    _tf_switches.keras_dtypes_by(callers.asks_for_keras)
    _tf_switches.keras_initializers_by_graph(behavior.is_of_tf2)
    _tf_switches.keras_metric_names_by(callers.asks_for_keras)
    _tf_switches.keras_layer_names_by(callers.asks_for_keras)


def _layers_can_be_applied() -> None:
    """`layer.apply(inputs)` of TF 1.15, which is `layer(inputs)`: Keras 2 dropped it later."""
    import tf_keras

    if not hasattr(tf_keras.layers.Layer, "apply"):
        tf_keras.layers.Layer.apply = lambda layer, inputs, *args, **kwargs: layer(
            inputs, *args, **kwargs
        )
