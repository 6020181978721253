"""Calls input_fn as an Estimator does, and keeps the batches that it gives."""

import contextlib
import importlib

import tensorflow as tf

from estimator2strategy.tools.golden.recorder.folder import NoBatchError
from estimator2strategy.tools.golden.recorder.structures import flattened, static

tf1 = tf.compat.v1


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
            iterator = tf1.data.make_initializable_iterator(value)
            hooks, value = [_IteratorHook(iterator)], iterator.get_next()
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
    return {"count": len(batches), "structure": tree, "leaves": about}, batches


@contextlib.contextmanager
def graph_of(estimator):
    """A fresh graph to call the functions of a program in."""
    if hasattr(estimator, "_placement"):  # estimator2strategy's: with the shapes of TF 1.x
        ours = importlib.import_module("estimator2strategy.estimator.estimator_recording")
        with ours.recording_graph(estimator):
            yield
    else:
        with tf.Graph().as_default():
            yield
