"""Losses of `tf.losses` with weights: their mean is over the weights that are not 0."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError

FUNCTION = '''def weighted_mean(losses, weights):
    """The mean over the losses whose weight is not 0."""
    weights = keras.ops.cast(weights, losses.dtype)
    weights = keras.ops.broadcast_to(weights, keras.ops.shape(losses))
    present = keras.ops.cast(weights != 0, losses.dtype)
    total = keras.ops.sum(losses * weights)
    return keras.ops.divide_no_nan(total, keras.ops.sum(present))
'''
# Functions of tf.losses -> the loss of each element.
_ELEMENTS = {
    "sigmoid_cross_entropy": "keras.ops.binary_crossentropy({}, {}, from_logits=True)",
    "softmax_cross_entropy": "keras.ops.categorical_crossentropy({}, {}, from_logits=True)",
    "sparse_softmax_cross_entropy": (
        "keras.ops.sparse_categorical_crossentropy({}, {}, from_logits=True)"
    ),
    "mean_squared_error": "keras.ops.square({} - {})",
    "absolute_difference": "keras.ops.abs({} - {})",
}


def text(node, kind, labels, predictions, weights):
    """The text of a weighted loss.

    Raises:
        StaysError: There is none for this loss.
    """
    if kind not in _ELEMENTS:
        raise StaysError(node, f"write out what tf.losses.{kind} computes with weights")
    return f"weighted_mean({_ELEMENTS[kind].format(labels, predictions)}, {weights})"


def is_one(node):
    """True for weights that are 1."""
    return isinstance(node, ast.Constant) and node.value == 1
