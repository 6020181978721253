"""One evaluation for many checkpoints: recorded once, run on each of them.

The original recorded an evaluation anew for each checkpoint. input_fn is still called each time, so
that it may find new files, say. If it builds the same input again, the previous recording runs on
the new checkpoint, and the `ReplayCache` has what was traced of it. A program notices only that
model_fn is not called again. So an evaluation with hooks of the program's own is recorded anew:
they may hold tensors of model_fn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.fingerprint import Fingerprint, fingerprint
from estimator2strategy.engine.record.input_fn import DatasetInitializerHook
from estimator2strategy.engine.runtime.evaluation import Evaluation
from estimator2strategy.engine.runtime.hooks import HostCallHook

tf1 = tf.compat.v1

# Hooks of these very types hold nothing of an evaluation that is over.
_STOCK = frozenset(
    {
        DatasetInitializerHook,
        HostCallHook,
        tf1.train.LoggingTensorHook,
        tf1.train.NanTensorHook,
        tf1.train.StepCounterHook,
        tf1.train.SummarySaverHook,
        _tf_private.StopAfterNEvalsHook,
    }
)


class EvaluationCache:
    """The previous evaluation, if there is one, while the body of `with cache.kept()` runs."""

    def __init__(self) -> None:
        self._is_kept = False
        self._evaluation: Evaluation | None = None
        self._input: Fingerprint | None = None

    def find(
        self, graph: tf.Graph, hooks: Sequence[Any], record: Callable[[], Evaluation]
    ) -> Evaluation:
        """Returns the evaluation to run: the previous one, or a new one.

        Args:
            graph: The graph that input_fn has built just now.
            hooks: Of this evaluation, those of model_fn's spec aside.
            record: Adds the model to `graph`.
        """
        if not (self._is_kept and _are_stock(hooks)):
            return record()
        now = fingerprint(graph)
        if self._evaluation and now == self._input:
            tf1.logging.info("Evaluating with the graph of the evaluation before.")
            return self._evaluation
        self._evaluation = None
        evaluation = record()
        if evaluation.can_be_reused and _are_stock(evaluation.own_hooks):
            self._evaluation, self._input = evaluation, now
        return evaluation

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Finds the previous evaluation again, while the body runs; forgets it at the end."""
        self._is_kept, self._evaluation, self._input = True, None, None
        try:
            yield
        finally:
            self._is_kept, self._evaluation, self._input = False, None, None


def _are_stock(hooks: Sequence[Any]) -> bool:
    return all(type(hook) in _STOCK for hook in hooks)
