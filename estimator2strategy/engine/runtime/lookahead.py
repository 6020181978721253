"""Decides how many steps run in one call, before hooks are called again.

On the host the real Estimator called every hook at every step. Here a block of steps is one call,
so `Lookahead` runs ahead up to the next step that a stock hook logs, saves, summarises or stops
at. A hook that is not in the table, the user's own for example, is shown every step.

On several cores hooks always saw one call of `iterations_per_loop` steps: `Iterations`.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.cardinality import most_batches
from estimator2strategy.engine.record.input_fn import DatasetInitializerHook
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.runtime.hooks import ExamplesPerSecondHook, HostCallHook
from estimator2strategy.engine.runtime.input_position import InputPosition
from estimator2strategy.engine.runtime.payback import TIMED, VERY_FEW, Prices, pays
from estimator2strategy.engine.runtime.saving import SaverHook

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook

# A block ends at least this often (seconds), so that timers, Ctrl-C and the console stay alive.
_LONGEST_BLOCK = 1.0


def _until(timer: tf1.train.SecondOrStepTimer, now: int) -> float:
    """The number of steps from `now` until a step-based timer triggers."""
    every_steps = getattr(timer, "_every_steps", None)
    if every_steps is None and getattr(timer, "_every_secs", None) is None:
        return math.inf  # a LoggingTensorHook that logs at the end only
    if timer.last_triggered_step() is None:
        return 0
    return timer.last_triggered_step() + every_steps - now if every_steps else math.inf


def _until_evaluated(hook: Any, batches: int) -> float:
    """Batches until the hook logs its progress, or stops."""
    if hook._num_evals is None:
        return math.inf
    every = hook._log_frequency if hook._log_progress else hook._num_evals
    return float(min(every - batches % every, hook._num_evals - batches))


def _until_logged(hook: Any, step: int) -> float:
    """Steps until the hook, which counts runs, has logged."""
    until = _until(hook._timer, hook._iter_count)
    return until + 1 if all(map(_is_light, hook._current_tensors.values())) else until


def _until_summarised(hook: Any, step: int) -> float:
    """Steps until the one begins in which the hook fetches a summary, or a trace."""
    return 0 if hook._next_step is None else _until(hook._timer, hook._next_step)


def _is_light(tensor: Any) -> bool:
    """True if a tensor may be fetched at every step, though it is looked at now and then."""
    return isinstance(tensor, (tf.Tensor, tf.Variable)) and tensor.shape.rank == 0


def sees_runs(hook: Hook) -> bool:
    """True if a hook is called around runs: one that only begins or ends something is not."""
    return any(
        getattr(type(hook), name, None) is not getattr(Hook, name)
        for name in ("before_run", "after_run")
    )


def _never(hook: Any, step: int) -> float:
    return math.inf


def _each_step(hook: Any, step: int) -> float:
    return 1


# Exact type -> steps until the hook must be called, given the global step (in an evaluation: the
# number of batches) before the block. Hooks that fetch much at the step they wait for say how long
# until that step *begins*: it runs on its own. The hooks' own state says when;
# `tests/engine/test_tf_private.py` guards the names.
_PATIENCE: dict[type, Callable[[Hook, int], float]] = {
    tf1.train.CheckpointSaverHook: lambda hook, step: _until(hook._timer, step),
    SaverHook: lambda hook, step: _until(hook._timer, step),
    tf1.train.StepCounterHook: lambda hook, step: _until(hook._timer, step),
    tf1.train.SummarySaverHook: _until_summarised,
    tf1.train.ProfilerHook: _until_summarised,
    tf1.train.LoggingTensorHook: _until_logged,
    tf1.train.StopAtStepHook: lambda hook, step: hook._last_step - step,
    tf1.train.FinalOpsHook: _never,
    DatasetInitializerHook: _never,
    # Reports a rate over the steps since the last time: no step is worth ending a block for.
    ExamplesPerSecondHook: _never,
    InputPosition: _never,
    HostCallHook: _never,  # what it fetches becomes part of every step
    _tf_private.StopAfterNEvalsHook: _until_evaluated,
}


# Further hooks that were made for executions of many steps.
_SEE_EXECUTIONS = {tf1.train.NanTensorHook, tf1.train.GlobalStepWaiterHook, tf1.train.FeedFnHook}

# A block counts its steps in an int32.
_MOST_STEPS = 2**31 - 1

# Exact type -> the step (in an evaluation: the number of batches) at which the hook stops.
_STOPS: dict[type, Callable[[Hook], float]] = {
    tf1.train.StopAtStepHook: lambda hook: hook._last_step,
    _tf_private.StopAfterNEvalsHook: lambda hook: hook._num_evals or math.inf,
}


def _last_step(hooks: Sequence[Hook]) -> float:
    stops = (_STOPS[type(hook)](hook) for hook in hooks if type(hook) in _STOPS)
    return min(stops, default=math.inf)


class Lookahead:
    """Chooses the size of each block so that no hook misses a step it waits for.

    Args:
        hooks: All hooks of the session.
        prices: Those of a loop of such steps.
        watched: Tensors that a block watches by itself at every step (the loss).
    """

    def __init__(self, hooks: Sequence[Hook], prices: Prices, watched: Sequence[tf.Tensor] = ()):
        self._hooks = hooks
        self._prices = prices
        self._most: float | None = None  # batches that the input has at most
        self._tries = False  # the next step runs by itself, so that its cost is known
        self._patience = [(hook, self._patience_of(hook, watched)) for hook in hooks]
        self._shows_each_step = any(patience is _each_step for _, patience in self._patience)
        self._counting = [h for h in hooks if type(h) is tf1.train.LoggingTensorHook]
        self._seconds_per_step = _LONGEST_BLOCK  # the first block is one step: it also compiles
        self._started = 0.0
        self._counted = 0  # steps that hooks were told of before they ran
        self._before: int | None = None  # the global step before the last block
        self._ran = 0  # steps of the last block
        self._increment = 1.0  # what a step adds to the global step: two optimizers may count both

    @staticmethod
    def _patience_of(hook: Hook, watched: Sequence[tf.Tensor]) -> Callable[[Hook, int], float]:
        if type(hook) is tf1.train.NanTensorHook and any(hook._loss_tensor is t for t in watched):
            return _never
        if not sees_runs(hook):
            return _never
        return _PATIENCE.get(type(hook), _each_step)

    def steps(self, step: int) -> int:
        """The most steps that the next block may run, after step number `step`."""
        if self._ran and self._before is not None:
            self._increment = max(1.0, (step - self._before) / self._ran)
        self._before, self._ran = step, 0
        until = 1.0 if self._shows_each_step else self._until_a_hook(step)
        affordable = _LONGEST_BLOCK / self._seconds_per_step
        most = 1 if self._tries else math.inf
        planned = max(1, int(min(until / self._increment, affordable, most)))
        self._count(planned - 1)  # so that a hook finds its run to be the last step's
        self._started = time.perf_counter()
        return planned

    def _until_a_hook(self, step: int) -> float:
        return min((patience(hook, step) for hook, patience in self._patience), default=math.inf)

    def ran(self, steps: int) -> None:
        """Takes note that the last run was `steps` steps."""
        if steps:
            self._seconds_per_step = (time.perf_counter() - self._started) / steps
        self._count(steps - 1)
        self._counted = 0
        self._ran = steps

    def _count(self, steps: int) -> None:
        for hook in self._counting:
            hook._iter_count += steps - self._counted
        self._counted = steps

    def last_step(self) -> float:
        """The step at which a hook will stop the session; infinite if none says so."""
        return _last_step(self._hooks)

    def pays_no_loop(self, step: int, runs: Runs) -> bool:
        """True if a loop of steps would gain nothing, or less than it takes to build.

        A hook sees every step; or few are left, or small ones (see `payback.py`). A later answer
        may be another, since it is known then what steps cost.

        Args:
            step: The number of the last one that ran.
            runs: The runs of which they are.
        """
        if runs.replay.device is not None:  # there a block is no more work to build than a step
            return False
        if self._shows_each_step:
            return True
        if runs.has_loop:
            return False
        if self._most is None:
            self._most = most_batches(runs.replay.recorded)
        left = min(self.last_step() - step, self._most)
        alone = not pays(left, runs.alone, self._prices)
        self._tries = alone and left > VERY_FEW and runs.alone.steps < TIMED
        return alone

    def logged(self) -> list[tf.Tensor]:
        """The tensors that the stock hooks log now and then.

        It is fetched in every block, so that the steps they look at are no program of their own,
        which would have to be compiled.
        """
        tensors = [t for hook in self._counting for t in hook._current_tensors.values()]
        return [tensor for tensor in tensors if _is_light(tensor)]


def warn_of_missed_steps(iterations: IterationsPerLoop, hooks: Sequence[Hook]) -> None:
    """Warns of hooks that may need to see every step, and see executions of many."""
    if iterations == IterationsPerLoop(1, LoopUnit.STEPS):
        return
    seeing = {type(hook) for hook in hooks if sees_runs(hook)}
    names = sorted(cls.__name__ for cls in seeing - {*_PATIENCE, *_SEE_EXECUTIONS})
    if names:
        tf1.logging.warn(
            "Hooks see executions of iterations_per_loop=%s, not steps: %s. If they must see every "
            "step, set TPUConfig(iterations_per_loop=1).",
            iterations.value if iterations.unit is LoopUnit.STEPS else f"{iterations.value}s",
            ", ".join(names),
        )


class LoopUnit(enum.Enum):
    """The unit of `TPUConfig.iterations_per_loop`."""

    STEPS = "steps"
    SECONDS = "seconds"


class IterationsPerLoop(NamedTuple):
    """The length of one execution on the device."""

    value: int
    unit: LoopUnit


class Iterations:
    """Blocks of `iterations_per_loop` steps; the last one ends exactly where training does.

    Args:
        iterations: A count, or seconds that a block should take.
        hooks: All hooks of the session; those that stop it say where it ends.
    """

    def __init__(self, iterations: Any, hooks: Sequence[Hook]):
        self._iterations = iterations
        self._hooks = hooks
        self._seconds_per_step: float | None = None
        self._started = 0.0

    def steps(self, step: int) -> int:
        """The most steps that the next block may run, after step number `step`."""
        self._started = time.perf_counter()
        return max(1, int(min(self.last_step() - step, self._wanted(), _MOST_STEPS)))

    def last_step(self) -> float:
        """The step at which a hook will stop the session; infinite if none says so."""
        return _last_step(self._hooks)

    def pays_no_loop(self, step: int, runs: Runs) -> bool:
        """False: a step of cores counts its place in the block, so it needs a loop."""
        del step, runs
        return False

    def _wanted(self) -> float:
        if self._iterations.unit is LoopUnit.STEPS:
            return float(self._iterations.value)
        # The first block compiles: its time says nothing.
        if self._seconds_per_step is None:
            return 1
        return float(self._iterations.value / self._seconds_per_step)

    def ran(self, steps: int) -> None:
        first = self._seconds_per_step is None
        elapsed = (time.perf_counter() - self._started) / max(steps, 1)
        self._seconds_per_step = 1.0 if first else max(elapsed, 1e-9)

    def logged(self) -> list[tf.Tensor]:
        return []
