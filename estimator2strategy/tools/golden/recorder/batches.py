"""Calls input_fn as an Estimator does, and keeps the batches that it gives."""

import contextlib
import importlib

import tensorflow as tf

from estimator2strategy.tools.golden.recorder.folder import NoBatchError
from estimator2strategy.tools.golden.recorder.structures import flattened, static

tf1 = tf.compat.v1

_FUSION = "shuffle_and_repeat_fusion"


def is_dataset(value):
    kinds = {tf1.data.Dataset, tf.data.Dataset}
    if hasattr(tf.compat, "v2"):
        kinds.add(tf.compat.v2.data.Dataset)
    return isinstance(value, tuple(kinds))


class _IteratorHook(tf1.train.SessionRunHook):
    def __init__(self, iterator):
        self._initializer = iterator.initializer

    def after_create_session(self, session, coord):
        session.run(self._initializer)


def taken_batches(estimator, input_fn, mode, most):
    """Calls input_fn as the Estimator does, and takes up to `most` batches.

    Returns:
        ({"count", "structure", "leaves"}, list of batches): a batch is a list of arrays.
    """
    with graph_of(estimator):
        tf1.train.get_or_create_global_step()
        value = estimator._call_input_fn(input_fn, mode)
        hooks = []
        if is_dataset(value):
            value, fused = in_order_of_tf2(value)
            iterator = tf1.data.make_initializable_iterator(value)
            hooks, value = [_IteratorHook(iterator)], iterator.get_next()
        else:
            fused = tf.__version__.startswith("1.") and shuffles_and_repeats()
        leaves = []
        tree = flattened(value, leaves)
        batches = []
        creator = tf1.train.ChiefSessionCreator()
        with tf1.train.MonitoredSession(creator, hooks=hooks) as session:
            while len(batches) < most and not session.should_stop():
                batches.append(session.run(leaves))
        # (The end of the input ends the `with`, without an error.)
        about = [{"dtype": leaf.dtype.name, "shape": static(leaf.get_shape())} for leaf in leaves]
    if not batches:
        raise NoBatchError(f"input_fn gave no batch for mode {mode!r}.")
    summary = {"count": len(batches), "structure": tree, "leaves": about}
    summary["shuffle_and_repeat_fusion"] = fused
    return summary, batches


def in_order_of_tf2(dataset):
    """Makes TensorFlow 1.15 shuffle a dataset in the order of TensorFlow 2.

    It made one op of `shuffle` and `repeat`, which has another order after a seed, also in the
    first epoch. A program that says itself if it wants that is left alone.

    Returns:
        (the dataset, True if the two ops may be one)
    """
    options = tf.data.Options()
    if not hasattr(getattr(options, "experimental_optimization", None), _FUSION):
        return dataset, False  # TensorFlow 1.13 did not do it by itself
    said = getattr(dataset.options().experimental_optimization, _FUSION)
    if said is not None:
        return dataset, said
    setattr(options.experimental_optimization, _FUSION, False)
    return dataset.with_options(options), False


def shuffles_and_repeats():
    """True if datasets of the default graph, whose iterators input_fn made, do both."""
    graph_def = tf1.get_default_graph().as_graph_def()
    functions = [function.node_def for function in graph_def.library.function]
    ops = {node.op for nodes in [graph_def.node, *functions] for node in nodes}
    return any(op.startswith("ShuffleDataset") for op in ops) and "RepeatDataset" in ops


@contextlib.contextmanager
def graph_of(estimator):
    """A fresh graph to call the functions of a program in."""
    if hasattr(estimator, "_placement"):  # estimator2strategy's: with the shapes of TF 1.x
        ours = importlib.import_module("estimator2strategy.estimator.estimator_recording")
        with ours.recording_graph(estimator):
            yield
    else:
        with tf.Graph().as_default():
            tf1.set_random_seed(estimator.config.tf_random_seed)
            yield
