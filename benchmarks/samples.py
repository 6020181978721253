"""One measurement in a process of its own, as a line of JSON; `benchmarks.costs` asks for many.

    python -m benchmarks.samples start --contender e2s --model dense
    python -m benchmarks.samples cores --model resnet --number 8

Seconds are of processor time unless a name says clock: it moves less than the clock does where
others use the machine. Those of recording and tracing are of the thread that does it; another one
may write a file meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tensorflow.compat.v1 as tf

from benchmarks import models
from benchmarks.estimators import Estimator, e2s, legacy
from benchmarks.models import Model
from benchmarks.worker import peak_rss_mb

Sample = dict[str, float]
NEVER = 10**9
CHECKPOINT_S = 12


class Stopwatch:
    """Adds up what a clock says of the functions that it wraps."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self.seconds: list[float] = []

    def timing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, timed."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = self._clock()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds.append(self._clock() - started)

        return timed

    @contextlib.contextmanager
    def watching(self, owner: Any, name: str) -> Iterator[Stopwatch]:
        """Times each call of the method `name` of a class while the body runs."""
        with mock.patch.object(owner, name, self.timing(getattr(owner, name))):
            yield self


class FirstStep(tf.train.SessionRunHook):
    """Notes when the first step has run."""

    def __init__(self) -> None:
        self._began = time.process_time(), time.perf_counter()
        self.cpu: float | None = None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Of each step; the first one counts."""
        if self.cpu is None:
            cpu, clock = self._began
            self.cpu, self.clock = time.process_time() - cpu, time.perf_counter() - clock


class StopAfter(tf.train.SessionRunHook):
    """Ends training when so many checkpoints are due."""

    def __init__(self, checkpoints: float) -> None:
        self._until = checkpoints * CHECKPOINT_S

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Training begins."""
        self._until += time.perf_counter()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Of each step."""
        if time.perf_counter() > self._until:
            run_context.request_stop()


def program_of(contender: str, model: Model) -> Estimator:
    """The TPUEstimator of `benchmarks.run`, with its configuration."""
    return (e2s if contender == "e2s" else legacy)(model)


def start(args: argparse.Namespace) -> Sample:
    """From the call of train() until the first step is done, and memory after 20 steps."""
    imported = peak_rss_mb()
    Estimator.model_dir = args.model_dir or Estimator.model_dir
    program = program_of(args.contender, models.MODELS[args.model])
    first = FirstStep()
    program.estimator.train(program.model.input_fn, steps=20, hooks=[first])
    assert first.cpu
    peak = peak_rss_mb()
    return {
        "first_step_s": first.cpu,
        "first_step_clock_s": first.clock,
        "peak_mb": peak,
        "above_import_mb": peak - imported,
    }


def second(args: argparse.Namespace) -> Sample:
    """`start` in a second process, which goes on from the checkpoint of a first one."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--contender", args.contender, "--model", args.model, "--model-dir", folder]
        command = [sys.executable, "-m", "benchmarks.samples", "start", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        Estimator.model_dir = folder
        return start(args)


def record(args: argparse.Namespace) -> Sample:
    """model_fn in a plain v1 graph; model_fn and making the replayed step in train()."""
    from estimator2strategy import estimator
    from estimator2strategy.engine.replay.engines.one_step import OneByOne

    model = models.MODELS[args.model]
    program = program_of("e2s", model).estimator
    plain, recorded, replayed = Stopwatch(), Stopwatch(), Stopwatch()
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=True):
        tf.train.create_global_step()
        batches = tf.data.make_one_shot_iterator(model.input_fn({"batch_size": model.batch_size}))
        plain.timing(program.model_fn)(*batches.get_next(), estimator.ModeKeys.TRAIN, {})
    with (
        recorded.watching(type(program), "_call_model_fn"),
        replayed.watching(OneByOne, "__init__"),
    ):
        program.train(model.input_fn, steps=1)
    return {"plain_s": plain.seconds[0], "e2s_s": recorded.seconds[0] + replayed.seconds[0]}


def chain(layers: int) -> Model:
    """Small dense layers one after the other, with Adam: some 60 ops each."""

    def logits(features: Any, training: bool) -> Any:
        del training
        for i in range(layers):
            features = tf.tanh(models.dense(features, 8, f"layer_{i}"))
        return models.dense(features, models.CLASSES, "logits")

    return Model("chain", 4, 50, 50, models.dense_data, logits, models.adam_train_op)


def ops(args: argparse.Namespace) -> Sample:
    """Recording, tracing and all until the first step is done, of a chain of layers."""
    from estimator2strategy.engine.replay.engines.one_step import OneByOne

    program = program_of("e2s", chain(args.number))
    first, recorded, replayed = FirstStep(), Stopwatch(), Stopwatch()
    sizes = []

    def counted(*of: Any, **named: Any) -> Any:
        spec = call(*of, **named)
        sizes.append(len(tf.get_default_graph().get_operations()))
        return spec

    call = recorded.timing(type(program.estimator)._call_model_fn)
    with (
        mock.patch.object(type(program.estimator), "_call_model_fn", counted),
        replayed.watching(OneByOne, "__init__"),
    ):
        program.estimator.train(program.model.input_fn, steps=1, hooks=[first])
    assert first.cpu
    return {
        "ops": sizes[0],
        "record_s": recorded.seconds[0],
        "trace_s": replayed.seconds[0],
        "first_step_s": first.cpu,
    }


def sharded_train_op(loss: Any) -> Any:
    """Adam on the mean of all cores' gradients."""
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(models.LEARNING_RATE))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def on_cores(model: Model, batch_size: int, cluster: Any = None) -> Any:
    """A TPUEstimator that uses the cores there are, or those of a TPU."""
    from estimator2strategy import estimator

    tpu = estimator.tpu
    config = tpu.RunConfig(
        model_dir=tempfile.mkdtemp(),
        cluster=cluster,
        save_summary_steps=0,
        save_checkpoints_steps=NEVER,
        tpu_config=tpu.TPUConfig(iterations_per_loop=2),
    )
    model = dataclasses.replace(model, train_op=sharded_train_op)
    model_fn = models.make_model_fn(model, estimator)
    return tpu.TPUEstimator(model_fn, config=config, train_batch_size=batch_size)


def cores(args: argparse.Namespace) -> Sample:
    """Tracing the loop of steps for emulated cores, and the loop's first call, of two steps."""
    from estimator2strategy.engine.replay.engines.loop import Loop
    from estimator2strategy.engine.runtime import devices

    devices.emulate_tpu(args.number)
    model = models.MODELS[args.model]
    program = on_cores(model, batch_size=16)
    traced, called = Stopwatch(), Stopwatch(time.process_time)  # threads of TensorFlow's run it
    with traced.watching(Loop, "_traced"), called.watching(Loop, "run"):
        program.train(model.input_fn, steps=2)
    return {"trace_s": traced.seconds[0], "first_call_s": called.seconds[0]}


def hosts(args: argparse.Namespace) -> Sample:
    """Starting a training on the TPU cores of so many hosts, eight each, and tracing its steps.

    All that Python does before the first step is launched. Logical CPUs stand for the cores.
    """
    from estimator2strategy.engine.replay.engines.loop import Loop
    from estimator2strategy.engine.runtime import devices
    from tests.rehearsal import rehearsal
    from tests.tpu_program import started_training

    devices.split_cpu(cores := 8 * args.number, "This measurement")
    tf.config.list_logical_devices()
    model = models.MODELS[args.model]
    started, traced = Stopwatch(), Stopwatch()
    with rehearsal(args.number, runs=False) as tpu:
        program = on_cores(model, batch_size=cores, cluster=tpu.resolver())
        with traced.watching(Loop, "_traced"):
            started.timing(started_training)(program, model.input_fn)
    return {"start_s": started.seconds[0] - traced.seconds[0], "trace_s": traced.seconds[0]}


def large_model_fn(megabytes: int) -> Callable[..., Any]:
    """A model_fn with so many MB of variables, and a step that touches few of them."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        del labels, params
        from estimator2strategy import estimator

        for i in range(megabytes // 16):
            tf.get_variable(f"table_{i}", [4096, 1024], initializer=tf.ones_initializer())
        weight = tf.get_variable("weight", [models.DENSE_FEATURES, 512])
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weight)))
        optimizer = tf.train.GradientDescentOptimizer(1e-3)
        train_op = optimizer.minimize(loss, tf.train.get_global_step(), var_list=[weight])
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def checkpoint(args: argparse.Namespace) -> Sample:
    """Times a checkpoint of 1 GB (clock): the wait of training, and the writing."""
    from estimator2strategy import estimator
    from estimator2strategy.engine.runtime.saving import SaverHook

    config = estimator.RunConfig(
        tempfile.mkdtemp(), save_checkpoints_secs=CHECKPOINT_S, save_summary_steps=NEVER
    )
    options = estimator.TrainingOptions(async_checkpoints=True, checkpoint_shards=args.number)
    program = estimator.Estimator(large_model_fn(1024), config=config, options=options)
    model = models.MODELS["dense"]
    waited, written = Stopwatch(time.perf_counter), Stopwatch(time.perf_counter)
    with waited.watching(SaverHook, "_save"), written.watching(SaverHook, "_write"):
        program.train(lambda: model.input_fn({"batch_size": 32}), hooks=[StopAfter(3.5)])
    # The first is written before training, the last after it: nothing goes on meanwhile.
    waits, writes = waited.seconds[1:-1], written.seconds
    return {"waits_clock_s": sum(waits) / len(waits), "writes_clock_s": sum(writes) / len(writes)}


def rounds(args: argparse.Namespace) -> Sample:
    """A loop of train, evaluate and predict, one step or batch each, by processor time.

    The calls of the first round, which record and trace, and medians of those after the third.
    """
    program = program_of(args.contender, models.MODELS[args.model])
    estimator, input_fn = program.estimator, program.model.input_fn

    def predict() -> None:
        with contextlib.closing(estimator.predict(input_fn, yield_single_examples=False)) as found:
            next(found)

    calls = {
        "train": Stopwatch(time.process_time),
        "evaluate": Stopwatch(time.process_time),
        "predict": Stopwatch(time.process_time),
    }
    for _ in range(args.number):
        calls["train"].timing(lambda: estimator.train(input_fn, steps=1))()
        calls["evaluate"].timing(lambda: estimator.evaluate(input_fn, steps=1))()
        calls["predict"].timing(predict)()
    seconds = {name: stopwatch.seconds for name, stopwatch in calls.items()}
    seconds["round"] = [sum(each) for each in zip(*seconds.values(), strict=True)]
    first = {f"first_{name}_s": each[0] for name, each in seconds.items()}
    later = {f"{name}_s": statistics.median(each[3:]) for name, each in seconds.items()}
    return first | later


SAMPLES = {
    function.__name__: function
    for function in (start, second, record, ops, cores, hosts, checkpoint, rounds)
}


def main() -> None:
    """Keeps stdout for the answer: whatever TensorFlow prints goes to stderr."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samples", description=__doc__)
    parser.add_argument("sample", choices=SAMPLES)
    parser.add_argument("--contender", choices=("e2s", "legacy"), default="e2s")
    parser.add_argument("--model", choices=models.MODELS, default="dense")
    parser.add_argument(
        "--number",
        type=int,
        default=1,
        help="of cores, hosts, layers, files or rounds",
    )
    parser.add_argument("--model-dir", default="", help="of start; default: a new one")
    args = parser.parse_args()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer.write(json.dumps(SAMPLES[args.sample](args)) + "\n")
    answer.close()


if __name__ == "__main__":
    sys.exit(main())
