"""Drop-in for `tf.estimator.experimental`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime import evaluation, profiling
from estimator2strategy.engine.runtime.checkpoints import step_in
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.canned.kmeans import KMeansClustering as KMeans
from estimator2strategy.estimator.canned.networks import (
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
)
from estimator2strategy.estimator.canned.recurrent_estimators import (
    RNNClassifierV2 as RNNClassifier,
)
from estimator2strategy.estimator.canned.recurrent_estimators import RNNEstimatorV2 as RNNEstimator
from estimator2strategy.estimator.canned.sdca import LinearSDCA
from estimator2strategy.estimator.checks import checked_hooks
from estimator2strategy.estimator.contract_rules import HOOK_RULES
from estimator2strategy.estimator.early_stopping import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.estimator_recording import record_evaluation, recording_graph
from estimator2strategy.estimator.export import build_raw_supervised_input_receiver_fn

tf1 = tf.compat.v1

__all__ = [
    "InMemoryEvaluatorHook",
    "KMeans",
    "LinearSDCA",
    "RNNClassifier",
    "RNNEstimator",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "dnn_logit_fn_builder",
    "linear_logit_fn_builder",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


def call_logit_fn(
    logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any
) -> tf.Tensor | dict[str, tf.Tensor]:
    """Calls a function that makes logits, as the building block of a model_fn.

    Args:
        logit_fn: Called with `features` and with those of the others that it takes, by name.
        features: Dict of name to tensor.
        mode: A ModeKeys.
        params: Hyperparameters.
        config: A RunConfig.

    Returns:
        What logit_fn returns.

    Raises:
        ValueError: That is no tensor and no dict of string to tensor.

    Source: `tf.estimator.experimental.call_logit_fn`, tensorflow_estimator 2.15.
    """
    names = argument_names(logit_fn)
    given = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(features=features, **{k: v for k, v in given.items() if k in names})
    parts = logits if isinstance(logits, dict) else {"": logits}
    if all(isinstance(k, str) and isinstance(v, tf.Tensor) for k, v in parts.items()):
        return logits
    raise ValueError(
        "logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  "
        f"{location(logit_fn)} returned: {logits}"
    )


@checked(HOOK_RULES)
def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> tf1.train.SessionRunHook:
    """A hook that ends training at `last_step`.

    Args:
        estimator: The Estimator that is trained.
        last_step: Global step.
        wait_after_file_check_secs: A process that is not the chief goes on until a checkpoint of
            that step is there, and waits so long after each look.

    Source: `tf.estimator.experimental.make_stop_at_checkpoint_step_hook`, tensorflow_estimator
    2.15.
    """
    if estimator.config.is_chief:
        return tf1.train.StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


class _StopAtCheckpointStepHook(tf1.train.SessionRunHook):
    """Ends the work of a process when another one has saved a checkpoint of `last_step`."""

    def __init__(self, model_dir: str, last_step: int, wait_after_file_check_secs: float = 30):
        if last_step is None:
            raise ValueError("last_step must be specified.")
        if model_dir is None:
            raise ValueError("model_dir must be specified.")
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait_secs = wait_after_file_check_secs

    def begin(self) -> None:
        self._global_step = tf1.train.get_global_step()
        if self._global_step is None:
            raise RuntimeError("Global step should be created to use StopAtCheckpointStepHook.")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if run_context.session.run(self._global_step) < self._last_step:
            return
        path = tf.train.latest_checkpoint(self._model_dir)
        if path and step_in(path) >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait_secs)


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
