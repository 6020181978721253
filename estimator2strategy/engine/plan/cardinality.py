"""The ends of datasets, as far as the recorded graph shows them."""

from __future__ import annotations

import math

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph

# Datasets that are endless if their first input is.
_AS_ENDLESS = frozenset(
    {
        *("BatchDataset", "BatchDatasetV2", "MapAndBatchDataset", "MapDataset", "ModelDataset"),
        *("OptionsDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2", "ParallelBatchDataset"),
        *("ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset", "ShuffleDataset"),
        *("ShuffleDatasetV2", "ShuffleDatasetV3"),
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


# Index of the input that says how many elements make up a batch.
_BATCH_SIZE = {
    "BatchDataset": 1,
    "BatchDatasetV2": 1,
    "PaddedBatchDataset": 1,
    "PaddedBatchDatasetV2": 1,
    "ParallelBatchDataset": 1,
}


def most_batches(recorded: RecordedGraph) -> float:
    """An upper bound of the batches that a graph's one iterator gives; infinite: not known."""
    makers = [node for node in recorded.nodes if node.op == "MakeIterator"]
    iterators = [n for n in recorded.nodes if n.op in ("IteratorV2", "OneShotIterator")]
    if len(makers) != 1 or len(iterators) != 1:
        return math.inf
    return most_elements(recorded, input_node(makers[0].input[0]))


def most_elements(recorded: RecordedGraph, dataset: str) -> float:
    """An upper bound of the elements of the dataset that a node makes; infinite: not known."""
    node = recorded[dataset]

    def number(edge: int) -> int | None:
        source = recorded[input_node(node.input[edge])]
        if source.op != "Const":
            return None
        return int(tf.make_ndarray(source.attr["value"].tensor))

    if node.op == "TensorDataset":
        return 1
    if node.op == "TensorSliceDataset":
        shape = recorded.shape(tensor_name(node.input[0]))
        count = shape.as_list()[0] if shape.rank else None
        return math.inf if count is None else count
    if node.op == "RangeDataset":
        bounds = [n for n in map(number, range(3)) if n is not None]
        return len(range(*bounds)) if len(bounds) == 3 else math.inf
    if node.op not in _AS_ENDLESS and node.op not in ("FilterDataset", "TakeDataset"):
        return math.inf
    most = most_elements(recorded, input_node(node.input[0]))
    if node.op == "TakeDataset":
        taken = number(1)
        return most if taken is None or taken < 0 else min(most, taken)
    size = number(_BATCH_SIZE[node.op]) if node.op in _BATCH_SIZE else None
    return math.ceil(most / size) if size and most < math.inf else most
