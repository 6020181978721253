"""Hooks that stop training by the results of evaluations: `tf.estimator.experimental`.

They read the event files that `evaluate` writes. Something has to evaluate during the training, as
`train_and_evaluate` does.

Source: `early_stopping.py`, tensorflow_estimator 2.15.
"""

from __future__ import annotations

import collections
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.contract_rules import HOOK_RULES
from estimator2strategy.estimator.estimator import Estimator

_v1 = tf.compat.v1

# Takes the metrics of each evaluated step, by step; returns True if training is to stop.
_Verdict = Callable[[Mapping[int, Mapping[str, Any]]], bool]


@checked(HOOK_RULES)
def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """A hook that asks `should_stop_fn` at intervals whether training stops.

    The chief's decision is the variable `signal_early_stopping/STOP`, where the other workers read
    it; so it is part of the checkpoint.

    Args:
        estimator: The Estimator that is trained.
        should_stop_fn: Called without arguments.
        run_every_secs: Seconds from one question to the next, or
        run_every_steps: steps.

    Raises:
        TypeError: `estimator` or `should_stop_fn` is something else.
        ValueError: Both intervals are given, or none.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if run_every_secs is None and run_every_steps is None:
        raise ValueError("Either `run_every_secs` or `run_every_steps` should be provided.")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


@checked(HOOK_RULES)
def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Stops when a metric was above `threshold`, at step `min_steps` or later.

    Args:
        estimator: The Estimator that is trained.
        metric_name: As `evaluate` names it.
        threshold: To be crossed.
        eval_dir: The folder of the events; `estimator.eval_dir()` by default.
        min_steps: Earlier evaluations do not count.
        run_every_secs: See `make_early_stopping_hook`.
        run_every_steps: See there.
    """
    verdict = _crossed(metric_name, threshold, operator.gt, min_steps)
    return _hook(estimator, eval_dir, verdict, run_every_secs, run_every_steps)


@checked(HOOK_RULES)
def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Stops when a metric was below `threshold`; see `stop_if_higher_hook`."""
    verdict = _crossed(metric_name, threshold, operator.lt, min_steps)
    return _hook(estimator, eval_dir, verdict, run_every_secs, run_every_steps)


@checked(HOOK_RULES)
def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Stops when a metric has had no new maximum for so many steps; see `stop_if_higher_hook`."""
    verdict = _stalled(metric_name, max_steps_without_increase, operator.gt, min_steps)
    return _hook(estimator, eval_dir, verdict, run_every_secs, run_every_steps)


@checked(HOOK_RULES)
def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Stops when a metric has had no new minimum for so many steps; see `stop_if_higher_hook`."""
    verdict = _stalled(metric_name, max_steps_without_decrease, operator.lt, min_steps)
    return _hook(estimator, eval_dir, verdict, run_every_secs, run_every_steps)


def read_eval_metrics(eval_dir: str) -> collections.OrderedDict[int, dict[str, float]]:
    """The scalar summaries in the event files of a folder, by step in order, by name."""
    by_step: dict[int, dict[str, float]] = collections.defaultdict(dict)
    for event in _events(eval_dir):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                by_step[event.step][value.tag] = value.simple_value
    return collections.OrderedDict(sorted(by_step.items()))


def _events(folder: str) -> Iterable[Any]:
    for path in tf.io.gfile.glob(os.path.join(folder, "*.tfevents.*")):
        try:
            yield from _v1.train.summary_iterator(path)
        except tf.errors.DataLossError as error:
            _v1.logging.warning("Skipping the rest of %s, which is damaged: %s", path, error)


def _hook(
    estimator: Estimator,
    eval_dir: str | None,
    verdict: _Verdict,
    run_every_secs: float | None,
    run_every_steps: int | None,
) -> Any:
    folder = estimator.eval_dir() if eval_dir is None else eval_dir
    return make_early_stopping_hook(
        estimator, lambda: verdict(read_eval_metrics(folder)), run_every_secs, run_every_steps
    )


def _crossed(metric: str, threshold: float, better: Callable[..., Any], min_steps: int) -> _Verdict:
    def verdict(results: Mapping[int, Mapping[str, Any]]) -> bool:
        for step, metrics in results.items():
            if step >= min_steps and better(metrics[metric], threshold):
                _v1.logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured threshold '
                    "(%s) for early stopping.",
                    step,
                    metric,
                    metrics[metric],
                    "greater than" if better is operator.gt else "less than",
                    threshold,
                )
                return True
        return False

    return verdict


def _stalled(metric: str, max_steps: int, better: Callable[..., Any], min_steps: int) -> _Verdict:
    def verdict(results: Mapping[int, Mapping[str, Any]]) -> bool:
        best = best_step = None
        for step, metrics in results.items():
            if step < min_steps:
                continue
            if best_step is None or better(metrics[metric], best):
                best, best_step = metrics[metric], step
            if step - best_step >= max_steps:
                _v1.logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal to max '
                    "steps (%s) configured for early stopping.",
                    "increase" if better is operator.gt else "decrease",
                    metric,
                    step - best_step,
                    max_steps,
                )
                return True
        return False

    return verdict


def _stop_variable() -> Any:
    with _v1.variable_scope("signal_early_stopping", reuse=_v1.AUTO_REUSE):
        return _v1.get_variable(
            "STOP",
            [],
            tf.bool,
            _v1.constant_initializer(False),
            collections=[_v1.GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopOnPredicateHook(_v1.train.SessionRunHook):
    """The chief's: asks, and stops everybody."""

    def __init__(
        self,
        should_stop_fn: Callable[[], bool],
        run_every_secs: float | None,
        run_every_steps: int | None,
    ):
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._timer = _v1.train.SecondOrStepTimer(run_every_secs, run_every_steps)

    def begin(self) -> None:
        self._global_step = _v1.train.get_global_step()
        self._stop = _v1.assign(_stop_variable(), True)

    def before_run(self, run_context: Any) -> Any:
        return _v1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_values.results
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            _v1.logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop)
            run_context.request_stop()


class _CheckForStoppingHook(_v1.train.SessionRunHook):
    """The other workers': looks whether the chief has stopped."""

    def begin(self) -> None:
        self._stopped = _stop_variable()

    def before_run(self, run_context: Any) -> Any:
        return _v1.train.SessionRunArgs(self._stopped)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            _v1.logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()
