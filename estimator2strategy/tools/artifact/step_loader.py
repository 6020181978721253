"""Trains an exported step, in an environment with jax, numpy and flatbuffers alone.

    python run.py --steps 100                           # on the first batch, again and again
    python run.py --steps 100 --batches batches.npz     # name of a feed -> array [steps, ...]
    python run.py --steps 100 --batches batches.py      # its batches() yields {name: array}
    python run.py --steps 100 --save trained.npz        # the values that it has trained

`description.json`, beside this file, lists the feeds and the variables. From Python:

    step = ExportedStep("step/")
    variables = step.on_devices(step.values())
    batches = step.stacked([step.first_batch()] * step.steps_per_block)
    variables, outputs = step(variables, batches, step.steps_per_block)
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import json
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]  # by name

FORMAT, VERSION = "estimator2strategy step", 1
OLDEST_JAX = (0, 10)
REPLICAS = "replicas"  # the axis of the mesh that the step was exported for
_UNREADABLE = (zipfile.BadZipFile, zlib.error)
# The parts of a description that this file uses.
_PARTS = (
    *("feeds", "variables", "outputs", "steps_per_block", "replicas"),
    *("loss", "precision", "files", "written_by"),
)
INSTALL = "pip install 'jax>=0.10' flatbuffers (for a GPU 'jax[cuda13]', for a TPU 'jax[tpu]')"


class RefusedStepError(Exception):
    """The step cannot be run; the message says why, and what to do."""


class ExportedStep:
    """A block of training steps, and all that was written with it.

    Args:
        folder: The folder that `e2s export-step` wrote.
        platform: "cpu", "cuda" or "tpu"; None: JAX's default.

    Attributes:
        description: The content of description.json.
        feeds, variables, outputs: Rows of it, each with `name`, `shape` and `dtype`.
        steps_per_block: The number of steps of a call.
        devices: The devices that run it, one for each replica.

    Raises:
        RefusedStepError: It is damaged, or does not run here.
    """

    def __init__(self, folder: str, platform: str | None = None):
        self.folder = folder
        self.description = described(folder)
        self.feeds, self.variables, self.outputs = (
            self.description[part] for part in ("feeds", "variables", "outputs")
        )
        self.steps_per_block = self.description["steps_per_block"]
        self._jax = imported_jax()
        self.devices = self._devices(platform)
        self._exported = self._deserialized()
        self._shardings = self._placed()
        self._whole = self._jax.jit(self._of_all_steps, donate_argnums=0)
        self._part = self._jax.jit(self._exported.call, donate_argnums=0)

    def __call__(self, variables: Sequence[Any], batches: Sequence[Any], count: int) -> Any:
        """Runs a block.

        Args:
            variables: The values before it, of `on_devices` or of an earlier call; they are given
                away, and not to be used again.
            batches: An array for each feed, with an axis in front that numbers the steps.
            count: The number of steps to run, at most `steps_per_block`.

        Returns:
            The values after it, and an array for each output, with axes in front that number the
            replicas and the steps.
        """
        with self._jax.enable_x64(True):
            batches = self._jax.device_put(tuple(batches), self._shardings[1])
            if count == self.steps_per_block:
                return self._whole(tuple(variables), batches)
            return self._part(tuple(variables), batches, np.int32(count))

    def _of_all_steps(self, variables: Sequence[Any], batches: Sequence[Any]) -> Any:
        # A GPU asks the host before each turn of a loop, unless the program says how many it has.
        return self._exported.call(variables, batches, np.int32(self.steps_per_block))

    def compile(self) -> Any:
        """Compiles a whole block ahead of its first call; returns JAX's compiled function."""
        with self._jax.enable_x64(True):
            given = [self._jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self._exported.in_avals]
            placed = [*self._shardings[0], *self._shardings[1]]
            given = [
                self._jax.ShapeDtypeStruct(g.shape, g.dtype, sharding=s)
                for g, s in zip(given[:-1], placed, strict=True)
            ]
            count = len(self.variables)
            arguments = (tuple(given[:count]), tuple(given[count:]))
            self._whole = self._whole.lower(*arguments).compile()
        return self._whole

    def on_devices(self, values: Arrays) -> Any:
        """The variables of the step, of {name: value}, in its order and on its devices.

        Raises:
            RefusedStepError: One is missing, or has another shape or dtype.
        """
        fitting = [checked(values, row, "value") for row in self.variables]
        with self._jax.enable_x64(True):
            return self._jax.device_put(tuple(fitting), self._shardings[0])

    def on_host(self, variables: Sequence[Any]) -> Arrays:
        """{name: value} of the step's variables."""
        return {
            row["name"]: np.asarray(v) for row, v in zip(self.variables, variables, strict=True)
        }

    def values(self, path: str | None = None) -> Arrays:
        """{name: value}: the initial values, or those of a file that `--save` wrote."""
        return arrays_in(path or self._file("values.npz"))

    def first_batch(self) -> Arrays:
        """The first batch of the program's input: {name: array}."""
        return arrays_in(self._file("first_batch.npz"))

    def stacked(self, batches: Sequence[Arrays]) -> list[np.ndarray]:
        """An array for each feed, of up to `steps_per_block` batches of all replicas.

        Raises:
            RefusedStepError: A batch does not fit.
        """
        batches = [*batches, *[batches[-1]] * (self.steps_per_block - len(batches))]
        arrays = [[checked(batch, row, "batch") for row in self.feeds] for batch in batches]
        return [np.stack(of_feed) for of_feed in zip(*arrays, strict=True)]

    def losses(self, outputs: Sequence[Any], count: int) -> np.ndarray:
        """The loss of each step: the mean of the replicas'."""
        losses = np.asarray(outputs[self.description["loss"]], np.float64)
        means: np.ndarray = losses.reshape(len(self.devices), self.steps_per_block, -1).mean((0, 2))
        return means[:count]

    def _file(self, name: str) -> str:
        return verified(self.folder, name, self.description["files"])

    def _devices(self, platform: str | None) -> list[Any]:
        jax, wanted = self._jax, self.description["replicas"]
        if wanted > 1 and "device_count" not in os.environ.get("XLA_FLAGS", ""):
            jax.config.update("jax_num_cpu_devices", wanted)  # of no effect on other platforms
        try:
            here = jax.devices(platform)
        except RuntimeError as error:
            raise RefusedStepError(
                f"there is no device of the platform {platform or 'that JAX is set to'} here: "
                f"{first_line(error)}. {INSTALL}; or give --platform cpu"
            ) from error
        if len(here) < wanted:
            raise RefusedStepError(
                f"the step was exported for {wanted} replicas, and there are {len(here)} devices "
                f"of the platform {here[0].platform}: export it for {len(here)}, or give "
                "--platform cpu, which makes as many as it needs"
            )
        return list(here[:wanted])

    def _deserialized(self) -> Any:
        with open(self._file("step.bin"), "rb") as file:
            serialized = file.read()
        try:
            from jax import export

            exported = export.deserialize(bytearray(serialized))
        except ImportError as error:
            raise RefusedStepError(f"{error.name} is not installed: {INSTALL}") from error
        except Exception as error:  # of many kinds: of flatbuffers, of MLIR, of JAX
            raise RefusedStepError(
                f"step.bin cannot be read by jax {self._jax.__version__}: {first_line(error)}. It "
                f"was written by jax {self.description['written_by']['jax']}: install that"
            ) from error
        rows = [(row["shape"], row["dtype"]) for row in self.variables]
        first = [self.steps_per_block]
        rows += [(first + row["shape"], row["dtype"]) for row in self.feeds] + [([], "int32")]
        taken = [(list(aval.shape), str(aval.dtype)) for aval in exported.in_avals]
        if rows != taken:
            raise RefusedStepError("description.json does not fit step.bin: export the step again")
        return exported

    def _placed(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The shardings of the variables, and of the feeds."""
        sharding = self._jax.sharding
        if len(self.devices) == 1:
            one = sharding.SingleDeviceSharding(self.devices[0])
            return tuple(one for _ in self.variables), tuple(one for _ in self.feeds)
        mesh = sharding.Mesh(np.array(self.devices), (REPLICAS,))

        def placed(*axes: str | None) -> Any:
            return sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes))

        own = {True: placed(REPLICAS), False: placed()}
        variables = tuple(own[row.get("of_each_replica", False)] for row in self.variables)
        return variables, tuple(placed(None, REPLICAS) for _ in self.feeds)


def described(folder: str) -> dict[str, Any]:
    """The description of an exported step.

    Raises:
        RefusedStepError: There is none, or it is none that this file can read.
    """
    path = os.path.join(folder, "description.json")
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except (OSError, ValueError) as error:
        raise RefusedStepError(f"{path} cannot be read: {first_line(error)}") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise RefusedStepError(f"{path} does not describe a step of `e2s export-step`")
    if description.get("version") != VERSION:
        raise RefusedStepError(
            f"{path} has version {description.get('version')} of the format, and this file reads "
            f"version {VERSION}: use the run.py that was written with it"
        )
    if missing := [part for part in _PARTS if part not in description]:
        raise RefusedStepError(
            f"{path} is damaged: it has no {missing[0]!r}. Export the step again"
        )
    return description


def verified(folder: str, name: str, checksums: Mapping[str, str]) -> str:
    """The path of a file of the folder.

    Raises:
        RefusedStepError: It is not there, or not as it was written.
    """
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RefusedStepError(f"{path} cannot be read: {first_line(error)}") from error
    if digest != checksums.get(name):
        raise RefusedStepError(
            f"{path} is damaged: its checksum is not that of description.json. Copy the folder "
            "again, or export the step again"
        )
    return path


def imported_jax() -> Any:
    """The module jax.

    Raises:
        RefusedStepError: It is not installed, or too old.
    """
    try:
        import flatbuffers  # noqa: F401  # jax.export imports it late
        import jax
        import jax.export
    except ImportError as error:
        raise RefusedStepError(f"{error.name} is not installed: {INSTALL}") from error
    if jax.__version_info__[:2] < OLDEST_JAX:
        raise RefusedStepError(f"jax {jax.__version__} is too old: {INSTALL}")
    return jax


def arrays_in(path: str) -> Arrays:
    """{name: array} of a .npz file; nothing in it is unpickled.

    Raises:
        RefusedStepError: It cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (*_UNREADABLE, OSError, ValueError, EOFError, AttributeError, KeyError) as error:
        raise RefusedStepError(f"{path} is no .npz file of arrays: {first_line(error)}") from error


def checked(arrays: Arrays, row: Mapping[str, Any], what: str) -> np.ndarray:
    """One of `arrays`, as a row of the description wants it."""
    name, shape, dtype = row["name"], tuple(row["shape"]), row["dtype"]
    if name not in arrays:
        known = ", ".join(sorted(arrays)[:5]) or "nothing"
        raise RefusedStepError(f"there is no {what} of {name!r}: given are {known}")
    array = np.asarray(arrays[name])
    if dtype == "bfloat16" and array.dtype.itemsize == 2 and array.dtype.kind == "V":
        import ml_dtypes  # comes with jax; NumPy's files do not know the type

        array = array.view(ml_dtypes.bfloat16)
    if array.shape != shape or str(array.dtype) != dtype:
        raise RefusedStepError(
            f"the {what} of {name!r} is {array.dtype}{list(array.shape)}, and the step takes "
            f"{dtype}{list(shape)}"
        )
    return array


def batches_of(step: ExportedStep, path: str | None) -> Iterator[Arrays]:
    """Yields {name: array}, a batch for each step."""
    names = [row["name"] for row in step.feeds]
    if path is None:
        yield from itertools.repeat(step.first_batch())
    elif path.endswith(".py"):
        spec = importlib.util.spec_from_file_location("batches", path)
        if spec is None or spec.loader is None or not os.path.isfile(path):
            raise RefusedStepError(f"there is no file {path}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not hasattr(module, "batches"):
            raise RefusedStepError(
                f"{path} has no function batches(), which yields {{name: array}}"
            )
        for batch in module.batches():
            if not hasattr(batch, "keys"):
                if len(batch) != len(names):
                    raise RefusedStepError(
                        f"{path}: a batch has {len(batch)} arrays, and the step takes {len(names)}"
                    )
                batch = dict(zip(names, batch, strict=True))
            yield batch
    else:
        arrays = arrays_in(path)
        stacked = {name: arrays[name] for name in names if name in arrays}
        if len(stacked) < len(names) or 0 in map(np.ndim, stacked.values()):
            raise RefusedStepError(
                f"{path} needs an array [steps, ...] of each of {', '.join(names)}"
            )
        count = min(map(len, stacked.values()), default=1)
        for number in itertools.cycle(range(count)):
            yield {name: array[number] for name, array in stacked.items()}


def blocks_of(
    step: ExportedStep, batches: Iterable[Arrays], steps: int
) -> Iterator[tuple[list[np.ndarray], int]]:
    """Yields (stacked batches, number of steps) until there are `steps`, or no more batches."""
    batches = itertools.islice(batches, steps)
    while block := list(itertools.islice(batches, step.steps_per_block)):
        yield step.stacked(block), len(block)


def train(
    step: ExportedStep,
    values: Arrays,
    batches: Iterable[Arrays],
    steps: int,
    say: Callable[[str], None],
) -> tuple[Arrays, list[float]]:
    """Trains; says losses and times.

    Returns:
        ({name: value} of the step's variables, the losses of all steps).
    """
    variables, losses, seconds, said = step.on_devices(values), [], [], 0.0
    started = time.monotonic()
    step.compile()
    say(f"compiled in {time.monotonic() - started:.1f} s")
    blocks = blocks_of(step, batches, steps)
    block = next(blocks, None)
    while block:
        count, began = block[1], time.monotonic()
        variables, outputs = step(variables, *block)
        block = next(blocks, None)  # is made while the devices work
        losses += step.losses(outputs, count).tolist()
        seconds.append((time.monotonic() - began) / count)
        if not np.isfinite(losses[-1]):
            say(f"the loss is {losses[-1]} after step {len(losses)}")
            break
        if block is None or time.monotonic() - said > 1:
            said = time.monotonic()
            say(f"step {len(losses)}: loss {losses[-1]:.6g}")
    if len(losses) < steps:
        say(f"ended after {len(losses)} of {steps} steps")
    if seconds:
        say(f"{1 / np.median(seconds[1:] or seconds):.4g} steps/s (median of blocks)")
    return step.on_host(variables), losses


def save(path: str, values: Arrays) -> None:
    """Writes a .npz file, whole or not at all."""
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        with open(scratch, "wb") as file:
            arrays: dict[str, Any] = dict(values)
            np.savez(file, **arrays)
        os.replace(scratch, path)
    except OSError as error:
        raise RefusedStepError(f"{path} cannot be written: {first_line(error)}") from error
    finally:
        if os.path.exists(scratch):
            os.remove(scratch)


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Trains an exported step, without TensorFlow.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("folder", nargs="?", default=here, help="the folder; default: this file's")
    parser.add_argument("--steps", type=int, default=100, help="steps to train; default 100")
    parser.add_argument("--batches", help=".npz of arrays [steps, ...], or .py with batches()")
    parser.add_argument("--start", metavar="NPZ", help="go on from what --save wrote")
    parser.add_argument("--save", metavar="NPZ", help="write the trained values there")
    parser.add_argument("--platform", choices=("cpu", "cuda", "tpu"), help="default: JAX's choice")
    options = parser.parse_args(arguments)

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    try:
        step = ExportedStep(options.folder, options.platform)
        kinds = dict.fromkeys(device.device_kind for device in step.devices)
        say(f"{len(step.devices)} x {', '.join(kinds)} ({step.devices[0].platform})")
        say(f"float32 products in precision: {step.description['precision']}")
        values = step.values(options.start)
        batches = batches_of(step, options.batches)
        trained, _ = train(step, values, batches, options.steps, say)
        if options.save:
            save(options.save, {**values, **trained})
            say(f"saved to {options.save}")
    except RefusedStepError as refused:
        sys.stderr.write(f"run.py: {refused}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
