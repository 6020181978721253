"""`make_stop_at_checkpoint_step_hook`: ends training at a step, in every process of a cluster."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime.checkpoints import step_in
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.contract_rules import HOOK_RULES
from estimator2strategy.estimator.estimator import Estimator

tf1 = tf.compat.v1


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
