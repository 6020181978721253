"""The graph that one call of input_fn and model_fn built, and questions to it."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import SUMMARIES, RecordedGraph
from estimator2strategy.engine.plan.random_ops import is_seeded
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.tools.check.request import Mode


class Executor(enum.Enum):
    """The part of the system that executes an op of a recorded graph."""

    INPUT = "input_fn"  # the host, before the model
    MODEL = "model_fn"  # a core; with use_tpu=False the one device that there is
    HOST = "host"  # the host, after the model: metric_fn, host_call, what Estimator added


@dataclasses.dataclass(eq=False)
class Recorded:
    """The graph that one call of input_fn and model_fn built.

    Attributes:
        mode: The mode that was recorded.
        on_cores: True if model_fn was called as for one core of several.
        graph: The v1 graph of both.
        spec: The result of model_fn; that of one core, with `on_cores`.
        fed: The flat tensors that model_fn was called with (placeholders, with `on_cores`).
        recording: The recording that the package replays; None if it refuses to.
        refused: The error of that refusal; None if there is none.
        estimator: The estimator that recorded it.
        metric_calls: The calls of `tf.metrics` functions, see `metrics.observe`.
        start, end: The number of ops before model_fn was called, and after it returned.
    """

    SUMMARIES = SUMMARIES

    mode: Mode
    on_cores: bool
    graph: tf.Graph
    estimator: Estimator
    spec: Any = None
    features: Any = None
    labels: Any = None
    recording: Recording | None = None
    refused: Exception | None = None
    metric_calls: Any = ()
    start: int = 0
    end: int = 0

    @property
    def fed(self) -> list[tf.Tensor]:
        parts = (self.features,) if self.labels is None else (self.features, self.labels)
        return list(tf.nest.flatten(parts, expand_composites=True))

    @property
    def fed_by_name(self) -> dict[str, tf.Tensor]:
        """`fed`, by where they are: "features/x", "labels"."""
        parts = {"features": self.features, "labels": self.labels}
        given = {name: part for name, part in parts.items() if part is not None}
        return dict(flat_with_names(given))

    @functools.cached_property
    def operations(self) -> list[tf.Operation]:
        """All ops, in creation order."""
        return list(self.graph.get_operations())

    @functools.cached_property
    def nodes(self) -> RecordedGraph:
        return RecordedGraph(self.graph)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {op.name: number for number, op in enumerate(self.operations)}

    def part(self, op: tf.Operation) -> Executor:
        """The part that executes an op. The placeholders for a core's batch count as input."""
        number = self._numbers[op.name]
        if number < self.start:
            return Executor.INPUT
        return Executor.MODEL if number < self.end else Executor.HOST

    @functools.cached_property
    def roots(self) -> list[tf.Tensor | tf.Operation]:
        """The ops of the model that must run in each step: train op, loss, tensors for the host."""
        spec = self.spec
        wanted = {
            Mode.TRAIN: [spec.loss, spec.train_op],
            Mode.EVAL: [spec.loss, _given(getattr(spec, "eval_metrics", None))],
            Mode.PREDICT: [spec.predictions],
        }[self.mode]
        if self.mode == Mode.EVAL:
            wanted.append(getattr(spec, "eval_metric_ops", None))
        wanted.append(_given(getattr(spec, "host_call", None)))
        flat = tf.nest.flatten(wanted, expand_composites=True)
        return [root for root in flat if isinstance(root, (tf.Tensor, tf.Operation))]

    @property
    def train_op(self) -> tf.Operation:
        """The spec's, of a training."""
        return _op(self.spec.train_op)

    @property
    def root_ops(self) -> list[str]:
        """Names of the ops of `roots`."""
        return [_op(root).name for root in self.roots]

    def behind(
        self, names: Iterable[str], stop_at: Collection[str] = (), *, only_data: bool = False
    ) -> set[str]:
        """Names of the ops among and behind `names`; not what is behind ops of types `stop_at`.

        With `only_data` not what they only wait for.
        """
        nodes = self.nodes

        def is_left_out(edge: str) -> bool:
            return nodes[input_node(edge)].op in stop_at or (only_data and edge.startswith("^"))

        return set(nodes.ancestors(names, is_left_out))

    @functools.cached_property
    def step_ops(self) -> frozenset[str]:
        """Names of all ops that a step runs: of the input, the model, and what the host adds."""
        host = [op.name for op in self.operations[self.end :]] if self.mode == Mode.EVAL else []
        return frozenset(self.nodes.ancestors([*self.root_ops, *host]))

    @property
    def random_ops(self) -> list[tf.Operation]:
        """The ops with random numbers and a state of their own; not those inside of functions."""
        return [op for op in self.operations if {"seed", "seed2"} <= set(op.node_def.attr)]

    def has_stream(self, op: tf.Operation) -> bool:
        """True if a random op draws here what it drew in TF 1.15."""
        return is_seeded(op.node_def)

    def in_model(self, op: tf.Operation) -> bool:
        """True if model_fn made an op."""
        return self.part(op) is Executor.MODEL

    def called_by(self, op: tf.Operation) -> list[str]:
        """Types of the ops in functions that an op calls: a cond, a loop, a dataset's map."""
        library = self.nodes.library
        called = self.nodes.functions_behind([op.name])
        return list(dict.fromkeys(node.op for name in called for node in library[name].node_def))

    def writes(self, op: tf.Operation) -> set[str]:
        """Names of the variables that an op writes to; a branch or a loop may only read them."""
        return set(self.nodes.written_by(op.name)) if self.nodes.have_effects([op.name]) else set()

    @functools.cached_property
    def core_ops(self) -> list[tf.Operation]:
        """The ops that a core executes in each step, in creation order; no nodes of functions."""
        behind = map(self.graph.get_operation_by_name, self.nodes.ancestors(self.root_ops))
        return [op for op in behind if self.part(op) is Executor.MODEL]


def _op(root: tf.Tensor | tf.Operation) -> tf.Operation:
    return root if isinstance(root, tf.Operation) else root.op


def _given(host_function: Any) -> Any:
    """The tensors of a pair (function of the host, tensors)."""
    return host_function[1] if host_function else None


def flat_with_names(part: Any, name: str = "") -> Iterator[tuple[str, tf.Tensor]]:
    """The tensors in nested features and labels, each with its path."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from flat_with_names(value, f"{name}/{key}" if name else str(key))
    elif isinstance(part, (list, tuple)):
        for i, value in enumerate(part):
            yield from flat_with_names(value, f"{name}/{i}")
    elif isinstance(part, tf.Tensor):
        yield name, part
    elif part is not None:  # sparse and ragged tensors
        for i, value in enumerate(tf.nest.flatten(part, expand_composites=True)):
            yield f"{name}/{type(part).__name__}/{i}", value
