"""`tf.graph_util.remove_training_nodes`, for graphs whose loops and conds are functions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """Leaves out the nodes of a frozen graph that only training needs, as TF 1.15 did.

    TensorFlow's own function returns the nodes alone. That was the whole graph in TF 1.15, which
    wrote loops and conds as nodes. Today's are functions, so the graph needs its library as well.
    """
    smaller = tf.compat.v1.graph_util.remove_training_nodes(input_graph, protected_nodes)
    smaller.library.CopyFrom(input_graph.library)
    return smaller
