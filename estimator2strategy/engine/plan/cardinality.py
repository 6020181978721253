"""The ends of datasets, as far as the recorded graph shows them."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph

# Datasets that are endless if their first input is.
_AS_ENDLESS = frozenset(
    {
        "BatchDataset",
        "BatchDatasetV2",
        "MapAndBatchDataset",
        "MapDataset",
        "ModelDataset",
        "OptionsDataset",
        "PaddedBatchDataset",
        "PaddedBatchDatasetV2",
        "ParallelBatchDataset",
        "ParallelMapDataset",
        "ParallelMapDatasetV2",
        "PrefetchDataset",
        "ShuffleDataset",
        "ShuffleDatasetV2",
        "ShuffleDatasetV3",
    }
)
_MAY_END = frozenset(
    {
        "FilterDataset",
        "RangeDataset",
        "TakeDataset",
        "TensorDataset",
        "TensorSliceDataset",
        "TFRecordDataset",
    }
)


def is_endless(recorded: RecordedGraph, dataset: str) -> bool | None:
    """True if the dataset that a node makes can have no end; None if the graph does not tell.

    One that repeats what is empty has an end all the same, but no element either. The function of
    a `map` may end it, unless it promises not to: TF1's datasets do not, TF2's do.
    """
    node = recorded[dataset]
    while node.op in _AS_ENDLESS:
        if "preserve_cardinality" in node.attr and not node.attr["preserve_cardinality"].b:
            return False
        node = recorded[input_node(node.input[0])]
    if node.op == "RepeatDataset":
        count = recorded[input_node(node.input[1])]
        if count.op == "Const" and int(tf.make_ndarray(count.attr["value"].tensor)) < 0:
            return True
        return None
    return False if node.op in _MAY_END else None
