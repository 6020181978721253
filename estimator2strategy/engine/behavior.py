"""Gives the ops of a v1 graph their behaviour: TF 1.15's, today's, or that of a recording.

    mark(graph, TF115)                  # its variables are reference variables, its conds v1's
    with entered(TF115): ...            # so is what is built now in a graph without a mark

A graph has the behaviour that its maker gave it, whoever adds ops to it. In graphs without a mark
ops have the behaviour of the function that builds them: the facade's own functions enter theirs for
as long as they run. All else is as the process's own switches say. So nothing depends on how a
program has imported a name, and what one thread does is not seen in another.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from estimator2strategy.engine import _tf_switches
from estimator2strategy.engine.legacy_code import OF_TF115

tf1 = tf.compat.v1
F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Behavior:
    """The kinds of things built in a graph; None: as the process's own switches say.

    Attributes:
        tf115: Names, seeds and first values are TF 1.15's.
        reference_variables: Variables are reference variables, or count as such in a recording.
        control_flow_v2: Conds and loops are functions.
    """

    tf115: bool = False
    reference_variables: bool | None = None
    control_flow_v2: bool | None = None


# Graphs of TF 1.15's programs, which Sessions run.
TF115 = Behavior(tf115=True, reference_variables=True, control_flow_v2=False)

# The parts of TF 2's graphs that programs of TF 1.15 have switched on. A switch is for all of
# them, as it was for all of a process; recordings keep their control flow.
RESOURCE_VARIABLES, CONTROL_FLOW_V2 = "resource variables", "control flow v2"
SWITCHED_ON: set[str] = set()

_MARK, _SEEDED = "_estimator2strategy_behavior", "_estimator2strategy_seeded"
# What was entered, and the graph that was built in then: what code that is called back builds in
# another is its own affair.
_Entered = tuple[Behavior | None, tf.Graph | None]
_entered: contextvars.ContextVar[_Entered] = contextvars.ContextVar(
    "behavior", default=(None, None)
)


def recorded(*, tf115: bool) -> Behavior:
    """Returns the behaviour of a graph that will be replayed: control flow in functions."""
    return Behavior(tf115, reference_variables=True if tf115 else None, control_flow_v2=True)


def mark(graph: tf.Graph, behavior: Behavior) -> None:
    """Gives a graph its behaviour, for good."""
    setattr(graph, _MARK, behavior)


def behavior_of(graph: tf.Graph) -> Behavior | None:
    """The behaviour that a graph has been given; a function's is that of the graph around it."""
    behavior = getattr(graph, _MARK, None)
    while behavior is None and hasattr(graph, "outer_graph"):
        graph = graph.outer_graph
        behavior = getattr(graph, _MARK, None)
    if behavior is None and _threads.runs_tf115() and _tf_switches.is_own_graph(graph):
        return TF115
    return behavior


def now() -> Behavior | None:
    """The behaviour of the op that is being built; None if nobody has said."""
    graph = tf1.get_default_graph()
    marked = behavior_of(graph)
    if marked is None:
        behavior, entered_in = _entered.get()
        if behavior is not None and _around(graph) is entered_in:
            return behavior
    return marked


def _around(graph: tf.Graph) -> tf.Graph:
    """The graph that all functions are in which `graph` is in."""
    while hasattr(graph, "outer_graph"):
        graph = graph.outer_graph
    return graph


@contextlib.contextmanager
def entered(behavior: Behavior | None) -> Iterator[None]:
    """Gives ops that the body builds this behaviour, if the default graph has no mark."""
    token = _entered.set((behavior, _around(tf1.get_default_graph())))
    try:
        yield
    finally:
        leave(token)


def enter_none() -> contextvars.Token[_Entered]:
    """Takes away, until `leave`, what was entered."""
    return _entered.set((None, None))


leave = _entered.reset


def is_entered() -> bool:
    """True while a function of TF 1.15's `tensorflow` runs."""
    behavior, _ = _entered.get()
    return behavior is not None and behavior.tf115


def entering(function: F) -> F:
    """A function of TF 1.15's: `function`, which builds as TF 1.15 did."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = _entered.set((TF115, _around(tf1.get_default_graph())))
        try:
            return function(*args, **kwargs)
        finally:
            _entered.reset(token)

    setattr(call, OF_TF115, True)
    # `inspect.getfullargspec` reads this, and does not look at what is wrapped.
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    # AutoGraph takes it as it takes TensorFlow's own functions: as it is.
    call.autograph_info__ = {}  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def is_of_tf2() -> bool:
    """True if the graph that is being built has been made for a program that is not TF 1.15's."""
    behavior = now()
    return behavior is not None and not behavior.tf115


class _Threads(threading.local):
    """Knows the threads whose first graph is TF 1.15's."""

    entered = False  # this thread
    in_all = False  # set on the class: all threads that are in graph mode

    def runs_tf115(self) -> bool:
        return (self.entered or self.in_all) and not tf.executing_eagerly()


_threads = _Threads()


def enter_thread(is_tf115: bool) -> None:
    """Says whether this thread is a program's of TF 1.15: in graph mode, its own graph is TF115."""
    _threads.entered = is_tf115


def enter_process() -> None:
    """Makes all threads a program's of TF 1.15, as long as they are in graph mode."""
    _Threads.in_all = True


def _has_resource_variables(otherwise: bool) -> bool:
    behavior = now()
    if behavior is None or behavior.reference_variables is None:
        return otherwise
    return not behavior.reference_variables or RESOURCE_VARIABLES in SWITCHED_ON


def _has_control_flow_v2(otherwise: bool) -> bool:
    behavior = now()
    if behavior is None or behavior.control_flow_v2 is None:
        return otherwise
    return behavior.control_flow_v2 or CONTROL_FLOW_V2 in SWITCHED_ON


def _names_by_scope(graph: tf.Graph) -> bool:
    behavior = behavior_of(graph)
    return behavior is not None and behavior.tf115


def mark_seeded(graph: tf.Graph) -> None:
    """Notes that a program of TF 1.15 seeded a graph, which is TF 1.15's if it has no mark."""
    setattr(graph, _SEEDED, True)


def _counts_all_ops(graph: tf.Graph) -> bool:
    behavior = behavior_of(graph)
    return behavior is TF115 or (behavior is None and hasattr(graph, _SEEDED))


def install() -> None:
    """From now on TensorFlow asks here; again after a program has used the process's switches."""
    _tf_switches.graphs_by(_has_resource_variables, _has_control_flow_v2)
    _tf_switches.names_in_branches_by_scope(_names_by_scope)
    _tf_switches.seeds_by_number_of_ops(_counts_all_ops)


install()
