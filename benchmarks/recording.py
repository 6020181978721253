"""What recording and replaying costs at start-up: a 12-layer BERT, in a process of its own.

`benchmarks.run --record-bert12` starts it. Each line on stdin asks for one round, answered with

    plain_s:       seconds of model_fn in a plain v1 graph, nothing else.
    e2s_s:         seconds of model_fn in `TPUEstimator.train`, and of building the replayed step.
    first_step_s:  seconds of the whole `train(steps=1)`: with initial values, and one step.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import tensorflow.compat.v1 as tf

from benchmarks import models
from benchmarks.contender import Channel
from benchmarks.models import Model
from estimator2strategy import estimator
from estimator2strategy.replay.session import ReplaySession

LAYERS = 12
BERT12 = dataclasses.replace(
    models.MODELS["bert"],
    batch_size=1,
    logits=functools.partial(models.bert_logits, layers=LAYERS),
)


class Stopwatch:
    """Adds up the seconds spent in the functions it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, timed."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


def record_plainly(model: Model) -> float:
    """Seconds of model_fn in a plain v1 graph."""
    watch = Stopwatch()
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=True):
        tf.train.create_global_step()
        dataset = model.input_fn({"batch_size": model.batch_size})
        features, labels = tf.data.make_one_shot_iterator(dataset).get_next()
        model_fn = watch.timing(models.make_model_fn(model, estimator))
        model_fn(features, labels, estimator.ModeKeys.TRAIN, {})
    return watch.seconds


def record_and_build(model: Model) -> tuple[float, float]:
    """Seconds of recording and building the step, and of the whole first step."""
    watch, whole = Stopwatch(), Stopwatch()
    config = estimator.tpu.RunConfig(
        model_dir=tempfile.mkdtemp(),
        save_summary_steps=0,
        save_checkpoints_secs=None,
    )
    model_fn = models.make_model_fn(model, estimator)

    def timed_model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
        return watch.timing(model_fn)(features, labels, mode, params)

    program = estimator.tpu.TPUEstimator(
        timed_model_fn, config=config, use_tpu=False, train_batch_size=model.batch_size
    )
    with mock.patch.object(ReplaySession, "_looped", watch.timing(ReplaySession._looped)):
        whole.timing(program.train)(model.input_fn, steps=1)
    return watch.seconds, whole.seconds


def main() -> None:
    """Keeps stdout for the answers: whatever TensorFlow prints goes to stderr."""
    channel = Channel(sys.stdin, os.fdopen(os.dup(1), "w"))
    os.dup2(2, 1)
    while True:
        channel.wait()
        plain = record_plainly(BERT12)
        built, first_step = record_and_build(BERT12)
        channel.tell(plain_s=plain, e2s_s=built, first_step_s=first_step)


if __name__ == "__main__":
    main()
