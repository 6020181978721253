"""Options of training that the original Estimator did not have."""

from __future__ import annotations

import dataclasses
import enum
import os
from typing import Any

from estimator2strategy.engine.replay.xla.target import JaxTarget, Precision
from estimator2strategy.engine.runtime import jax_devices, preemption, profiling, requested_job
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.wrong_argument import ArgumentRule, checked_init

CHECK_COMPILED_VARIABLE = "E2S_CHECK_COMPILED"


def _switch(name: str) -> ArgumentRule:
    return ArgumentRule(
        lambda value: value in (True, False),
        "must be True or False",
        f"Pass {name}=True or {name}=False.",
        ValueError,
    )


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _one_of(name: str, kind: type[enum.Enum], none: bool = False) -> ArgumentRule:
    known = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
    return ArgumentRule(
        lambda value: isinstance(value, kind) or (none and value is None),
        f"must be one of {known}",
        f"Pass {name}={kind.__name__}.{list(kind)[-1].name}, for example.",
        ValueError,
    )


RUNTIME_RULES = {
    "runtime": _one_of("runtime", Runtime, none=True),
    "precision": _one_of("precision", Precision, none=True),
}
_RULES = {
    **RUNTIME_RULES,
    "resume_input": _switch("resume_input"),
    "jit_compile": _switch("jit_compile"),
    "check_compiled": _switch("check_compiled"),
    "async_checkpoints": _switch("async_checkpoints"),
    "checkpoint_shards": ArgumentRule(
        lambda value: value is None or _is_int(value, 1),
        "must be None or >= 1",
        "Pass a number of files, or None.",
        ValueError,
    ),
    "max_restarts": ArgumentRule(
        lambda value: _is_int(value, 0), "must be an int >= 0", "Pass a number.", ValueError
    ),
    "profile_dir": ArgumentRule(
        lambda value: value is None or isinstance(value, (str, bytes, os.PathLike)),
        "must be a path",
        "Pass a folder as a string, or None.",
    ),
}


@checked_init(_RULES)
@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of `train` that the legacy API does not have: `Estimator(..., options=...)`.

        options = TrainingOptions(jit_compile=True, profile_dir="/tmp/profile")
        estimator.Estimator(model_fn, options=options).train(input_fn, steps=100)

    Attributes:
        resume_input: After an interruption (a kill, a signal, an error) `train` goes on with the
            example at which the restored checkpoint was written, and with the random numbers. A
            call of `train` after one that ended by itself starts its input anew, as the original
            did at every call. It does so after interruptions too, with a word in the log, if
            datasets cannot say where they are (`from_generator`), if they shuffle more than 1 GB,
            or if the program makes its input otherwise now. False: always anew.
        jit_compile: True: XLA compiles the computation of a step on one device, in as many
            programs as there are parts between the ops that XLA has no kernel for: input,
            `py_func`, summaries and checks. Random numbers stay as they are. The tensors of a batch
            must have one shape (`drop_remainder=True`).
        check_compiled: True: compiled steps watch for failures that XLA does not report (an id
            beyond its table, a label beyond the classes), and raise InvalidArgumentError with the
            op and its line. Under JAX they watch for assertions and checks of numbers, too, and
            tell at the end of a block. This is for debugging, and takes time. False: the
            environment's E2S_CHECK_COMPILED=1 (`e2s run --check-compiled`) does the same.
        async_checkpoints: True: training goes on while a checkpoint is written, where nobody can
            tell: not with `saving_listeners`, with savers or saver hooks of the program, on a TPU,
            or on several machines. One that cannot be written is then no error, except for the
            last. The next one waits until it is complete, so a kill loses fewer than two save
            intervals of steps. False: training waits, as the original's did, and a kill loses one
            interval at most.
        checkpoint_shards: Number of files that the variables of a checkpoint are written to, at
            the same time. None: one for each 256 MB, at most 8. A Saver of the program decides
            itself.
        max_restarts: How often in a row training is started again when its TPU was lost (a run ends
            with Aborted or Unavailable): the TPU is started, the latest checkpoint is restored, and
            the input goes on where it was. A block of steps that gets further than all before it
            counts anew. Then a DeviceError is raised. The original tried for ever.
        profile_dir: Folder in which `train` writes a profile of some steps, for TensorBoard. None:
            the environment's E2S_PROFILE_DIR, if any. With a profile the line at the end of
            training also tells how long steps waited for their input.
        runtime: The runtime that executes the steps of training, evaluation and prediction. With
            `Runtime.JAX` these run on the devices of JAX's default platform: `use_tpu=True` takes
            all of them as its cores, and anything else the first. None: the environment's
            E2S_RUNTIME, else TensorFlow's. With `Runtime.AUTO` JAX runs them if it has a GPU or a
            TPU; a program that cannot run there goes to TensorFlow's, with a word in the log.
        precision: The precision of float32 products under JAX, on devices that have a faster one.
            None: the environment's E2S_PRECISION, else the device's default.

    Raises:
        TypeError: `profile_dir` is not a path.
        ValueError: A switch is not a bool, `checkpoint_shards` is not a positive number, or
            `max_restarts` a negative one.
    """

    resume_input: bool = True
    jit_compile: bool = False
    check_compiled: bool = False
    async_checkpoints: bool = False
    checkpoint_shards: int | None = None
    max_restarts: int = preemption.MAX_RESTARTS
    profile_dir: str | os.PathLike[str] | None = None
    runtime: Runtime | None = None
    precision: Precision | None = None

    @property
    def checks_compiled(self) -> bool:
        """True if compiled steps watch for failures that XLA does not report."""
        return self.check_compiled or os.environ.get(CHECK_COMPILED_VARIABLE) == "1"

    @property
    def profile_folder(self) -> str | None:
        """The folder of profiles: the program's, else the environment's."""
        chosen = self.profile_dir or os.environ.get(profiling.VARIABLE)
        return os.fspath(chosen) if chosen else None


def runtime_of(options: TrainingOptions) -> Runtime:
    """The runtime that is asked for.

    Raises:
        ValueError: The environment asks for one that there is not.
    """
    return options.runtime or requested_job.requested_runtime()


def uses_jax(options: TrainingOptions) -> bool:
    """True if JAX runs the steps of an Estimator with these options.

    Raises:
        ValueError: The environment asks for a runtime that there is not.
    """
    runtime = runtime_of(options)
    return runtime is Runtime.JAX or (runtime is Runtime.AUTO and jax_devices.has_accelerator())


def jax_target_of(
    options: TrainingOptions, most: int | None = None, here: bool = False
) -> JaxTarget | None:
    """The devices of JAX that run the steps; None: TensorFlow runs them.

    Args:
        options: The options of an Estimator.
        most: Take no more than so many.
        here: Take only those of this process's host.

    Raises:
        DeviceError: JAX runs them, and is not installed, is too old, or has no device.
        ValueError: The environment asks for a runtime or a precision that there is not.
    """
    if not uses_jax(options):
        return None
    precision = options.precision or requested_job.requested_precision()
    target = jax_devices.jax_target(precision, most, here)
    return dataclasses.replace(target, checks=options.checks_compiled)
