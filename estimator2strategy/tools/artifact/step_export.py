"""Writes a training step of an Estimator as a folder that trains without TensorFlow.

    export_step(estimator, input_fn, "step/", steps_per_block=10)

The folder has the block of steps (`step.bin`), the values of all variables, the first batch, a
description, and the loader `run.py`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import estimator2strategy
from estimator2strategy.engine.replay.xla.diagnoses import diagnose
from estimator2strategy.engine.replay.xla.lowering import LoweredStep, LoweringError, lower_step
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.engine.xla.core_program import described, unsupported
from estimator2strategy.errors import DeviceError, UnsupportedError
from estimator2strategy.tools.artifact import step_loader
from estimator2strategy.tools.artifact.recorded_step import RecordedStep, recorded_step


@contextlib.contextmanager
def replaced_at_once(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` at the end.

    An error leaves all as it was.

    Raises:
        FileExistsError: `folder` is there, and is no exported step.
    """
    _check_is_ours(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = scratch / "new"
        made.mkdir()
        yield made
        if folder.exists():
            os.rename(folder, scratch / "old")
        os.rename(made, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_is_ours(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        step_loader.described(str(folder))
    except step_loader.RefusedStepError as refused:
        raise FileExistsError(
            f"{folder} is there, and is no exported step ({refused}): name another folder"
        ) from refused


STEPS_PER_BLOCK = 10


def export_step(
    estimator: Any,
    input_fn: Callable[..., Any],
    folder: str | os.PathLike[str],
    *,
    steps_per_block: int = STEPS_PER_BLOCK,
    precision: str | Precision = Precision.DEFAULT,
    checkpoint: str | None = None,
) -> None:
    """Writes the training step of an Estimator as a folder that needs no TensorFlow.

        export_step(estimator, input_fn, "step/")
        # python step/run.py --steps 100 --save trained.npz

    Nothing is trained, and nothing is written to model_dir.

    Args:
        estimator: An Estimator or a TPUEstimator. With `use_tpu=True` the step is that of its
            cores, emulated ones too, and runs on as many devices.
        input_fn: As for `Estimator.train`; its first batch is kept as an example.
        folder: The folder to write. One that an earlier export wrote is replaced.
        steps_per_block: The number of steps that run in one call on the device.
        precision: "default", "high" or "highest": the precision of products of float32, where the
            device has several.
        checkpoint: A checkpoint, or a folder of them, with the values to start from. Default: the
            latest in model_dir, or else the values that the program initialises its variables with.

    Raises:
        ValueError: An argument has a wrong value.
        DeviceError: JAX is not installed, or too old.
        UnsupportedError: XLA cannot compile the step; names the op and the line that made it.
        FileExistsError: `folder` is there, and no export wrote it.
    """
    if steps_per_block < 1:
        raise ValueError(f"steps_per_block is {steps_per_block}: give at least 1")
    precision = Precision(precision)
    try:
        step_loader.imported_jax()
    except step_loader.RefusedStepError as refused:
        raise DeviceError(f"{refused}, or pip install 'estimator2strategy[jax]'") from refused
    with (
        replaced_at_once(Path(folder)) as made,
        recorded_step(estimator, input_fn, checkpoint) as recorded,
    ):
        _write(made, recorded, steps_per_block, precision)


def _write(
    folder: Path, recorded: RecordedStep, steps_per_block: int, precision: Precision
) -> None:
    from estimator2strategy.tools.artifact.exported_block import exported_block

    lowered = _lowered(recorded)
    try:
        block = exported_block(lowered, steps_per_block, precision)
    except ValueError as error:
        raise _refusal(recorded, "", step_loader.first_line(error)) from error
    (folder / "step.bin").write_bytes(block.serialized)
    batch = dict(zip(recorded.names, recorded.first_batch, strict=True))
    streams = {f"random_streams/{i}": recorded.places(s) for i, s in enumerate(lowered.streams)}
    values = {**recorded.values, **streams}
    _save(folder / "values.npz", values)
    _save(folder / "first_batch.npz", batch)
    shutil.copyfile(step_loader.__file__, folder / "run.py")
    variables = [*recorded.program.variables, *streams]
    outputs = [
        {"name": name.removesuffix(":0"), "shape": list(out.shape), "dtype": str(out.dtype)}
        for name, out in zip(recorded.program.outputs, block.outputs, strict=True)
    ]
    description = {
        **_facts(recorded, steps_per_block, precision),
        "feeds": _rows(recorded.names, batch),
        "outputs": outputs,
        "loss": recorded.loss,
        "variables": [
            {**row, "of_each_replica": row["name"] in streams and recorded.program.replicas > 1}
            for row in _rows(variables, values)
        ],
        "files": {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in ("step.bin", "values.npz", "first_batch.npz")
        },
    }
    text = json.dumps(description, indent=1)
    (folder / "description.json").write_text(text + "\n", encoding="utf-8")


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    np.savez(path, **arrays)


def _lowered(recorded: RecordedStep) -> LoweredStep:
    program = recorded.program
    with modern_world():
        problems = unsupported(program)
    if problems:
        message, fix = described(problems[0])
        raise _refusal(recorded, problems[0].node, message, fix)
    try:
        return lower_step(program, recorded.state.random_streams())
    except LoweringError as error:
        diagnosis = diagnose(error.text)
        node = next(iter(error.nodes), "")
        raise _refusal(recorded, node, diagnosis.cause, diagnosis.fix) from error


def _refusal(
    recorded: RecordedStep, node: str, message: str, fix: str | None = None
) -> UnsupportedError:
    graph = recorded.program.recorded.graph
    where = f" ({user_line(graph.get_operation_by_name(node).traceback)})" if node else ""
    remedy = f"\n  {fix}" if fix else ""
    return UnsupportedError(f"The step cannot be exported: {message}{where}{remedy}")


def _rows(names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    return [
        {"name": name, "shape": list(arrays[name].shape), "dtype": str(arrays[name].dtype)}
        for name in names
    ]


def _facts(recorded: RecordedStep, steps_per_block: int, precision: Precision) -> dict[str, Any]:
    import jax

    sizes = {value.shape[:1] for value in recorded.first_batch}
    return {
        "format": step_loader.FORMAT,
        "version": step_loader.VERSION,
        "written_by": {
            "estimator2strategy": estimator2strategy.__version__,
            "tensorflow": tf.__version__,
            "jax": jax.__version__,
        },
        "batch_size": next(iter(sizes))[0] if len(sizes) == 1 and () not in sizes else None,
        "replicas": recorded.program.replicas,
        "steps_per_block": steps_per_block,
        "precision": precision.value,
        "tf_random_seed": recorded.seed,
    }
