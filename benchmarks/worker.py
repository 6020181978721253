"""One contender on one model, in a process of its own; `benchmarks.run` starts it.

    python -m benchmarks.worker --contender loop --model dense --chunks 5 --evaluations 3

Each line on stdin starts the next piece of work, each line on stdout is its result in JSON:
import, first 50 steps, warm-up, `chunks` chunks, `evaluations` evaluations, as many predictions,
peak memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.contender import STEPS_PER_EXECUTION, Channel, Contender, Gate

CHOICES = ("e2s", "jit", "e2s-jax", "loop", "keras", "orbit", "legacy", "legacy115")


def new_contender(name: str, model_name: str, shorter: int = 1) -> Contender:
    """Imports what the contender needs, and builds it; its chunks are so many times shorter."""
    from benchmarks import models

    model = models.MODELS[model_name]
    executions = max(model.train_chunk // STEPS_PER_EXECUTION // shorter, 1)
    model = dataclasses.replace(model, train_chunk=executions * STEPS_PER_EXECUTION)
    if name == "loop":
        from benchmarks import loop

        return loop.Loop(model)
    if name == "orbit":
        from benchmarks import orbit_loop

        return orbit_loop.Orbit(model)
    if name == "keras":
        from benchmarks import keras_fit

        return keras_fit.KerasFit(model)
    from benchmarks import estimators

    ours = {"e2s": estimators.e2s, "jit": estimators.e2s_jit, "e2s-jax": estimators.e2s_jax}
    return ours.get(name, estimators.legacy)(model)


def import_package(name: str) -> str:
    """Imports TensorFlow and what the contender is made of; returns TensorFlow's version."""
    import tensorflow as tf

    if name == "keras":
        import keras

        assert keras.backend.backend() == "tensorflow"
    if name in ("e2s", "jit", "e2s-jax"):
        from estimator2strategy import estimator

        assert estimator.tpu.TPUEstimator
    if name.startswith("legacy"):
        assert tf.compat.v1.estimator.tpu.TPUEstimator
    return tf.__version__


def timed(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Returns the call's seconds and its result."""
    started = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - started, result


def two_lengths(function: Callable[[int], None], steps: int) -> dict[str, float]:
    """Seconds of a short call, and of one that is `steps` steps longer, once all is compiled."""
    function(STEPS_PER_EXECUTION)
    short, _ = timed(function, STEPS_PER_EXECUTION)
    long, _ = timed(function, STEPS_PER_EXECUTION + steps)
    return {"short_s": short, "long_s": long}


def peak_rss_mb() -> float:
    """This process's largest resident set so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def first_steps(name: str, model: str, shorter: int) -> tuple[Contender, dict[str, float]]:
    """Builds a contender and runs its first 50 steps."""
    contender = new_contender(name, model, shorter)
    return contender, contender.start()


def work(args: argparse.Namespace, channel: Channel) -> None:
    """Does all pieces of work, each in its turn."""
    channel.wait()
    seconds, version = timed(import_package, args.contender)
    channel.tell(seconds=seconds, tensorflow=version)
    channel.wait()
    seconds, (contender, more) = timed(first_steps, args.contender, args.model, args.shorter)
    model = contender.model
    chunks = {"train_chunk": model.train_chunk, "eval_chunk": model.eval_chunk}
    channel.tell(seconds=seconds, **chunks, **more)
    channel.wait()
    gate = Gate(channel, args.chunks)
    contender.train(args.chunks, gate)
    gate.check()
    trained_rss = peak_rss_mb()
    contender.prepare_evaluation()
    for function in (contender.evaluate, contender.predict):
        for _ in range(args.evaluations):
            channel.wait()
            channel.tell(**two_lengths(function, model.eval_chunk))
    channel.wait()
    extras = {
        name: statistics.median(timed(extra)[0] for _ in range(args.evaluations or 1))
        for name, extra in contender.extras().items()
    }
    channel.tell(train_rss_mb=trained_rss, **extras)


def main() -> None:
    """Keeps stdout for the answers: whatever TensorFlow prints goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contender", choices=CHOICES, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--chunks", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--shorter", type=int, default=1)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work(args, Channel(sys.stdin, answers))


if __name__ == "__main__":
    main()
