"""The world that legacy code expects around it: a v1 graph, `Dimension` shapes, v2 control flow.

Nothing of TensorFlow is patched. The switches are TensorFlow's own, and each is put back as it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from estimator2strategy import _tf_private


@contextlib.contextmanager
def legacy_world() -> Iterator[None]:
    """Switches for the time in which functions and hooks of a legacy program run."""
    with _tf_private.tensor_shapes(v2=False), _tf_private.control_flow_v2():
        yield


@contextlib.contextmanager
def modern_world() -> Iterator[None]:
    """TF2 again, eager execution included, for code of ours and Keras's within a recording."""
    with _tf_private.tensor_shapes(v2=True), _tf_private.eager_mode():
        yield


@contextlib.contextmanager
def recording(seed: int | None) -> Iterator[tf.Graph]:
    """A fresh graph to record legacy functions in, as the default graph.

    Every variable becomes a resource variable, also where the program asked for the ref variables
    of TF1: only those have a handle that a replay can be given.

    Args:
        seed: Graph-level seed, `RunConfig.tf_random_seed`.
    """

    def as_resource(next_creator, **kwargs):
        return next_creator(**{**kwargs, "use_resource": True})

    _tf_private.give_variables_an_initialized_value()
    graph = tf.Graph()
    resources = tf.compat.v1.variable_creator_scope(as_resource)
    with graph.as_default(), resources, _tf_private.fresh_keras_names():
        tf.compat.v1.set_random_seed(seed)
        yield graph


@contextlib.contextmanager
def serving(seed: int | None) -> Iterator[tf.Graph]:
    """A fresh graph to record what is exported, as the default graph.

    A Session will run it and nothing replays it, so that the program's own switches decide about
    reference variables and about control flow.

    Args:
        seed: Graph-level seed, `RunConfig.tf_random_seed`.
    """
    graph = tf.Graph()
    names = _tf_private.fresh_keras_names()
    with _tf_private.tensor_shapes(v2=False), graph.as_default(), names:
        tf.compat.v1.set_random_seed(seed)
        yield graph
