"""One training step of an Estimator, three times: emulated cores, XLA on CPUs, a TPU's compiler.

step = compared(estimator, input_fn, batch)     # fails where XLA's program computes otherwise
compiled_for(step, "v3-8")                      # the same bytes
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.lowering import lower
from estimator2strategy.engine.xla import tpus
from estimator2strategy.engine.xla.core_program import core_program
from estimator2strategy.engine.xla.tpu_compiler import Compiled, TpuCompiler
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from tests.hooks import LossRecorder
from tests.xla_cpu import execute

# What the order of sums explains, in float32.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
# As many cores as emulated ones, of each generation; the table has smaller ones of two.
LARGER = {"v4-16": ("v4-8", "v4:2x2x2"), "v5p-16": ("v5p-8", "v5p:2x2x2")}
OF_EIGHT = ("v2-8", "v3-8", "v4-16", "v5e-8", "v5p-16", "v6e-8")


@dataclasses.dataclass(frozen=True)
class Step:
    """The program of a core, and what `lower` made of it."""

    program: CoreProgram
    module: bytes


def compared(estimator: Any, input_fn: Callable, batch: int) -> Step:
    """Runs the step after the last checkpoint both ways, and compares all that it changes.

    Args:
        estimator: A TPUEstimator on emulated cores. It has a checkpoint, makes one step in a
            block, and draws no random numbers.
        input_fn: Its input, in the same order each time.
        batch: Its global batch size.
    """
    with recording_graph(estimator):
        program = core_program(record_for(estimator, ModeKeys.TRAIN, input_fn))
    module = lower(program)
    before = variables(estimator)
    after = execute(program, module, parts(program, estimator, input_fn, batch), before)

    recorder = LossRecorder()
    estimator.train(input_fn, steps=1, hooks=[recorder])
    trained = variables(estimator)
    (losses,) = after.outputs.values()
    np.testing.assert_allclose(np.mean(losses), recorder.losses[0], **TOLERANCE)
    changed = {name for name in before if not np.array_equal(before[name], trained[name])}
    assert "global_step" in changed
    assert changed <= after.variables.keys() <= trained.keys()
    for name, of_cores in after.variables.items():
        np.testing.assert_allclose(of_cores[0], trained[name], **TOLERANCE, err_msg=name)
    return Step(program, module)


def variables(estimator: Any) -> dict[str, np.ndarray]:
    """All values of the last checkpoint."""
    reader = tf.train.load_checkpoint(estimator.model_dir)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def parts(
    program: CoreProgram, estimator: Any, input_fn: Callable, batch: int
) -> list[list[np.ndarray]]:
    """The first global batch of an input: each core's part."""
    (drawn,) = input_fn({**estimator.params, "batch_size": batch}).take(1)
    tensors = [tensor.numpy() for tensor in tf.nest.flatten(drawn)]
    cores = [np.split(tensor, program.replicas) for tensor in tensors]
    shapes = [tuple(program.spec(name).shape) for name in program.feeds]
    assert [of_tensor[0].shape for of_tensor in cores] == shapes
    return [list(of_core) for of_core in zip(*cores, strict=True)]


def compiled_for(step: Step, name: str) -> Compiled:
    """The answer of a TPU's compiler to the bytes of a step, by the name of the TPU."""
    base, topology = LARGER.get(name, (name, None))
    tpu = tpus.table()[base]
    if topology:
        tpu = dataclasses.replace(tpu, name=name, topology=topology, devices=8)
    return TpuCompiler().compile(tpu, step.module, step.program.replicas)
