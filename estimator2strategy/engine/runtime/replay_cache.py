"""Keeps functions that were traced for one call of an Estimator, for a later one.

A program that trains, evaluates and predicts in turns records the same graphs again and again:
input_fn and model_fn are called each time, as they always were, so whatever they depend on is
noticed. Where they have built the same graph, the functions of the call before run on fresh state.

Between calls the graph itself is not kept: its ops in Python take more memory than its nodes.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops, rewrites
from estimator2strategy.engine.plan.fingerprint import Fingerprint, fingerprint, fingerprint_of
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.tpu_variables import is_tpu


class ReplayCache:
    """The last recording of each mode, with what was traced of it, while nobody runs it."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        # Of graphs that no longer grow: their sessions are over.
        self._facts: weakref.WeakKeyDictionary[Runs, _Facts] = weakref.WeakKeyDictionary()

    def take(self, recording: Recording) -> Runs | None:
        """Runs of a recording that is the same as this one; None if there are none.

        Nobody else gets them until they are `put` back. Must be called when all nodes are there.
        """
        mode = recording.spec.mode
        kept = self._kept.pop(mode, None)
        if kept is None or not _may_be_kept(recording):
            return None
        if kept.recording() is recording or self._is_like(kept, recording):
            if not self._facts[kept.runs].calls_python:
                kept.runs.replay.recorded.attach(recording.graph)
            return kept.runs
        kept.runs.close()
        return None

    def _is_like(self, kept: _Kept, recording: Recording) -> bool:
        if kept.terms != _terms(recording):
            return False
        return self._facts[kept.runs].fingerprint == fingerprint(recording.graph)

    def put(self, recording: Recording, runs: Runs) -> None:
        """Keeps retired runs of a recording for the next call."""
        if runs not in self._facts:
            self._facts[runs] = _Facts(runs.replay.recorded)
        facts = self._facts[runs]
        if not _may_be_kept(recording) or facts.goes_on:
            runs.close()
            return
        if not facts.calls_python:
            runs.replay.recorded.let_go()
        kept = _Kept(weakref.ref(recording), _terms(recording), runs)
        self._kept[recording.spec.mode] = kept


class _Facts:
    """The facts about a graph that decide what may be done with functions that were traced of it.

    Attributes:
        goes_on: True if they would draw other random numbers than functions that are traced anew.
        calls_python: True if the graph must be kept, with which its Python functions die.
    """

    def __init__(self, recorded: RecordedGraph):
        self.goes_on = _goes_on_by_itself(recorded)
        self.calls_python = recorded.runs_python()
        self._references = recorded.references
        # A fingerprint takes five times as long, and only a second call asks for it.
        self._graph = recorded.graph if self.calls_python else None
        self._text = b"" if self._graph else recorded.graph.as_graph_def().SerializeToString()

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the graph."""
        if self._graph is not None:
            return fingerprint(self._graph)
        text, self._text = self._text, b""
        of_nodes = fingerprint_of(tf.compat.v1.GraphDef.FromString(text))
        return of_nodes._replace(references=self._references)


@dataclasses.dataclass(frozen=True)
class _Kept:
    recording: weakref.ref[Recording]  # so that its graph can be freed while it is young
    terms: tuple[Any, ...]
    runs: Runs


def _may_be_kept(recording: Recording) -> bool:
    """False on a TPU, whose programs hold its variables for good, and on several processes."""
    return not is_tpu(recording.strategy) and recording.worker is None


def _terms(recording: Recording) -> tuple[Any, ...]:
    """The facts, beside its graph, that decide what is traced of a recording."""
    splices = tuple(map(_of_splice, recording.splices))
    metrics = tuple(
        (name, value.name, update.name)
        for name, (value, update) in (recording.metrics or {}).items()
    )
    return recording.strategy, recording.replicated, recording.iterations, splices, metrics


def _of_splice(splice: Splice) -> tuple[Any, ...]:
    model = splice.model
    of_model = model and (model.feeds, model.outputs, model.ops, model.partitions)
    return splice.op, splice.inputs, splice.outputs, splice.inner, splice.ops, of_model


def _goes_on_by_itself(recorded: RecordedGraph) -> bool:
    """True if a traced function would draw other random numbers than one that is traced anew.

    The kernels of such ops keep their place in the stream as long as the function lives. Functions
    of datasets are made anew with their iterators.
    """
    recorded.refresh()
    outside = [node for node in recorded.nodes if "Dataset" not in node.op]
    called = recorded.functions_behind([node.name for node in outside])
    inner = rewrites.inner_nodes(recorded.library, called)
    alone = [node for node in outside if not random_ops.is_seeded(node)]
    return any(map(_has_seed, (*alone, *inner)))


def _has_seed(node: NodeDef) -> bool:
    return any(key in node.attr and node.attr[key].i for key in ("seed", "seed2"))
