"""`InMemoryEvaluatorHook`: evaluates the weights as they are in training, without a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime import evaluation, profiling
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.checks import checked_hooks
from estimator2strategy.estimator.contract_rules import HOOK_RULES
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.estimator_recording import record_evaluation, recording_graph

tf1 = tf.compat.v1


class InMemoryEvaluatorHook(tf1.train.SessionRunHook):
    """Evaluates before training, every so many steps, and after it.

    The evaluation is recorded once; the values of all variables that training has too are taken
    from there, the others have their initial values.

    Args:
        estimator: The Estimator that is trained.
        input_fn: As for `Estimator.evaluate`, and so are `steps`, `hooks` and `name`.
        every_n_iter: Steps between evaluations (on cores: calls of the training loop).

    Raises:
        ValueError: `every_n_iter` is not positive, or several processes train; when training
            starts: the model has a Saver or an init_fn of its own, or saves more than variables.

    Source: `tf.estimator.experimental.InMemoryEvaluatorHook`, tensorflow_estimator 2.15.
    """

    @checked(HOOK_RULES)
    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[tf1.train.SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ):
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        config = estimator.config
        if config.num_ps_replicas > 0 or config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator = estimator
        self._input_fn = input_fn
        self._hooks = [*checked_hooks(hooks), *estimator.e2s_parts.eval_stops(steps)]
        self._eval_dir = estimator.eval_dir(name)
        self._replays = ReplayCache()
        self._timer = tf1.train.SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._runs = 0
        with recording_graph(self._estimator) as graph:
            self._graph = graph
            self._evaluation = record_evaluation(self._estimator, graph, self._input_fn)
            scaffold = self._evaluation.scaffold
            if scaffold.saver is not None:
                raise ValueError("InMemoryEvaluator does not support custom saver")
            if scaffold.init_fn is not None:
                raise ValueError("InMemoryEvaluator does not support custom init_fn")

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        del coord
        if tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS):
            raise ValueError(
                "InMemoryEvaluator does not support saveables other than global variables."
            )
        trained = {variable.name: variable for variable in tf1.global_variables()}
        self._trained, self._values, assignments = [], [], []
        with self._graph.as_default():
            for variable in tf1.global_variables():
                if variable.name in trained:
                    value = tf1.placeholder(variable.dtype, variable.shape)
                    assignments.append(variable.assign(value, read_value=False))
                    self._trained.append(trained[variable.name])
                    self._values.append(value)
            self._assign = tf.group(*assignments)
        self._evaluate(session)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        self._runs += 1
        if self._timer.should_trigger_for_step(self._runs):
            self._evaluate(run_context.session)

    def end(self, session: tf1.Session) -> None:
        self._evaluate(session)

    @profiling.evaluating()
    def _evaluate(self, session: tf1.Session) -> None:
        values = dict(zip(self._values, session.run(self._trained), strict=True))
        results = self._evaluation.run(
            None,
            self._hooks,
            init_fn=lambda session: session.run(self._assign, values),
            store=self._replays,
        )
        with self._graph.as_default():
            evaluation.write_results(self._eval_dir, results, None)
        self._timer.update_last_triggered_step(self._runs)
