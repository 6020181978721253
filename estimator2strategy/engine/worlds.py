"""The world that legacy code expects around it: a v1 graph, `Dimension` shapes, v2 control flow.

The switches are those of `engine/_tf_switches.py`, nearly all TensorFlow's own; what changes for a
body is put back as it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private, _tf_switches, behavior

tf1 = tf.compat.v1

# The names of the variables that would have been reference variables in the original are in this
# collection. Its key is no string, so that nobody exports it.
REFERENCES: Any = ("estimator2strategy/references",)


@contextlib.contextmanager
def legacy_world() -> Iterator[None]:
    """Switches for the time in which functions and hooks of a legacy program run."""
    with _tf_switches.tensor_shapes(v2=False):
        yield


class _ModernWorld(contextlib.AbstractContextManager[None]):
    """See `modern_world`. A class, because each run of a session enters it."""

    def __enter__(self) -> None:
        self._shapes = _tf_switches.set_tensor_shapes(v2=True)
        self._eager = _tf_switches.eager_mode()
        self._eager.__enter__()
        self._behavior = behavior.enter_none()

    def __exit__(self, *error: object) -> None:
        behavior.leave(self._behavior)
        self._eager.__exit__(None, None, None)
        _tf_switches.put_back_tensor_shapes(self._shapes)


def modern_world() -> contextlib.AbstractContextManager[None]:
    """TF2 again, eager execution included, for code of ours and Keras's within a recording."""
    return _ModernWorld()


@contextlib.contextmanager
def apart_from_graphs() -> Iterator[None]:
    """Lets functions be traced that keep no recorded graph alive; in the `modern_world`.

    A function keeps the graph that was the default one, and the contents of its collections.
    """
    with tf.Graph().as_default(), _tf_switches.eager_mode():
        yield


@contextlib.contextmanager
def recording(seed: int | None, tf115: bool = False) -> Iterator[tf.Graph]:
    """A fresh graph to record legacy functions in, as the default graph.

    Every variable becomes a resource variable, also where the program asked for the ref variables
    of TF1: only those have a handle that a replay can be given. Those are noted in the graph's
    collection `REFERENCES`.

    Args:
        seed: Graph-level seed, `RunConfig.tf_random_seed`.
        tf115: True if the program is one of TF 1.15: variables are ref variables by default, and
            ops in branches and loops are named after the scope around them.
    """
    _tf_switches.give_variables_what_references_have()
    with modern_world():
        # TensorFlow starts its devices here. If a graph were the first to need them, eager code
        # could not name a device that is not there for the rest of the process.
        tf.config.list_logical_devices()
    behavior.install()
    graph = _Recorded()
    behavior.mark(graph, behavior.recorded(tf115=tf115))
    resources = tf1.variable_creator_scope(_as_resource)
    with graph.as_default(), resources, _tf_switches.fresh_keras_names():
        tf1.set_random_seed(seed)
        yield graph


class _Recorded(tf.Graph):
    """A graph with branches in functions, in which ops can wait for an op of a branch.

    In TF 1 a branch was in the graph around it. Programs put what a batch norm in `tf.cond` updates
    into UPDATE_OPS, and let the train op wait for it.
    """

    def control_dependencies(self, control_inputs: Any) -> Any:
        if control_inputs is not None:
            control_inputs = [self._outside_of_branches(awaited) for awaited in control_inputs]
        return super().control_dependencies(control_inputs)

    def _outside_of_branches(self, awaited: Any) -> Any:
        """The conditional of this graph that runs `awaited` in a branch; else `awaited`."""
        op = getattr(awaited, "op", awaited)
        if not self._is_around(getattr(op, "graph", self)):
            return awaited
        while op is not None and op.graph is not self:
            op = _conditional_that_runs(op)
        return awaited if op is None else op

    def _is_around(self, graph: tf.Graph) -> bool:
        while hasattr(graph, "outer_graph"):
            graph = graph.outer_graph
            if graph is self:
                return True
        return False


def _conditional_that_runs(op: Any) -> tf.Operation | None:
    """Lets a conditional run an op of its branch, which is dropped if no result needs it.

    Returns:
        The conditional, an op of the graph around the branch; None if there is none.
    """
    branch = op.graph
    for conditional in branch.outer_graph.get_operations():
        functions = conditional.node_def.attr if conditional.type == "If" else {}
        for name in ("then_branch", "else_branch"):
            if name in functions and functions[name].func.name == branch.name:
                if op not in branch.control_outputs:
                    branch.control_outputs.append(op)
                    branch.name += "_awaited"
                    _tf_private.set_branch(conditional, name, branch)
                return conditional
    return None


def _as_resource(next_creator: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
    wanted = kwargs.get("use_resource")
    if wanted is None:
        wanted = tf1.get_variable_scope().use_resource
    if wanted is None:
        wanted = tf1.resource_variables_enabled()
    if not wanted and kwargs.get("validate_shape") is False:
        # A reference variable then had no static shape: programs let it grow.
        kwargs["shape"] = tf.TensorShape(None)
    variable = next_creator(**{**kwargs, "use_resource": True})
    if not wanted and variable.shape.num_elements() == 0:
        _tf_private.let_grow(variable)
    if isinstance(variable.handle, tf.__internal__.EagerTensor):
        return variable
    if not wanted or _is_slot_of_reference(variable):
        variable.graph.add_to_collection(REFERENCES, variable.handle.op.name)
    return variable


def _is_slot_of_reference(variable: tf.Variable) -> bool:
    """True if a variable is an average or a momentum of a reference variable, and so one itself.

    TensorFlow makes a slot of the kind of its variable, which is a resource variable by now, and
    names it below that.
    """
    name = variable.handle.op.name
    return name.rpartition("/")[0] in variable.graph.get_collection_ref(REFERENCES)


@contextlib.contextmanager
def serving(seed: int | None, tf115: bool = False) -> Iterator[tf.Graph]:
    """A fresh graph to record what is exported, as the default graph.

    A Session will run it and nothing replays it, so that the process's own switches decide about
    reference variables and about control flow. Programs of TF 1.15 get TF 2's of both here, as in
    a recording: `tf.saved_model.load` cannot hand out the reference variables of a SavedModel.

    Args:
        seed: Graph-level seed, `RunConfig.tf_random_seed`.
        tf115: As for `recording`.
    """
    with _for_session(seed, behavior.Behavior(tf115)) as graph:
        yield graph


@contextlib.contextmanager
def for_session(seed: int | None, tf115: bool = False) -> Iterator[tf.Graph]:
    """A fresh graph that a Session will train, as the default graph; nothing replays it.

    Args:
        seed: Graph-level seed, `RunConfig.tf_random_seed`.
        tf115: True if the program is one of TF 1.15: variables are reference variables by default,
            and control flow is that of TF 1.
    """
    with _for_session(seed, behavior.TF115 if tf115 else behavior.Behavior()) as graph:
        yield graph


@contextlib.contextmanager
def _for_session(seed: int | None, of: behavior.Behavior) -> Iterator[tf.Graph]:
    behavior.install()
    graph = tf.Graph()
    behavior.mark(graph, of)
    names = _tf_switches.fresh_keras_names()
    with _tf_switches.tensor_shapes(v2=False), graph.as_default(), names:
        tf1.set_random_seed(seed)
        yield graph
