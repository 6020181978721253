"""Keras models inside a legacy model_fn, and the state that their steps change beside weights."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_WRITERS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def keras_updates(*models: Any) -> list[tf.Operation]:
    """The updates that calls of Keras models in a model_fn have made: to be run with its train_op.

        logits = model(features, training=mode == tf.estimator.ModeKeys.TRAIN)
        with tf.control_dependencies(keras_updates(model)):
            train_op = optimizer.minimize(loss, tf.train.get_global_step())

    They are the moving averages of batch norm, the places of random streams, and whatever else a
    layer assigns. In TF2 they happen by themselves; in a graph only what is asked for happens.

    Args:
        models: Models or layers of Keras 3 or of tf-keras, made and called in this model_fn.

    Returns:
        Operations in the default graph. Ask before the optimizer adds its own.

    Raises:
        ValueError: Variables of a model were made outside of this model_fn.
    """
    graph = tf.compat.v1.get_default_graph()
    handles = {_variable(v, graph).handle.op for model in models for v in model.variables}
    initializers = {_variable(v, graph).initializer for model in models for v in model.variables}
    return [
        op
        for op in graph.get_operations()
        if op.type in _WRITERS and op.inputs[0].op in handles and op not in initializers
    ]


def _variable(variable: Any, graph: tf.Graph) -> tf.Variable:
    """The variable in the graph behind a variable of Keras 3 or of tf-keras."""
    inner = variable if isinstance(variable, tf.Variable) else variable.value
    if getattr(inner.handle, "graph", None) is not graph:
        raise ValueError(
            f"The variable {variable.name} was not made in this graph: make the Keras model inside "
            "of model_fn, at each call."
        )
    return inner
