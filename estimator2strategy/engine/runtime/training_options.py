"""Options of training that the original Estimator did not have."""

from __future__ import annotations

import dataclasses
import os

from estimator2strategy.engine.runtime import preemption, profiling


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
            `py_func`, summaries, checks, random numbers (which stay as they are). The tensors of a
            batch must have one shape (`drop_remainder=True`).
        async_checkpoints: Training goes on while a checkpoint is written, where nobody can tell:
            not with `saving_listeners`, with savers or saver hooks of the program, on a TPU, or on
            several machines. One that cannot be written is then no error, except for the last.
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

    Raises:
        TypeError: `profile_dir` is not a path.
        ValueError: A switch is not a bool, `checkpoint_shards` is not a positive number, or
            `max_restarts` a negative one.
    """

    resume_input: bool = True
    jit_compile: bool = False
    async_checkpoints: bool = True
    checkpoint_shards: int | None = None
    max_restarts: int = preemption.MAX_RESTARTS
    profile_dir: str | os.PathLike | None = None

    def __post_init__(self) -> None:
        for name in ("resume_input", "jit_compile", "async_checkpoints"):
            if (value := getattr(self, name)) not in (True, False):
                raise ValueError(f"{name} must be True or False, but provided {value!r}.")
        shards = self.checkpoint_shards
        if shards is not None and not (isinstance(shards, int) and shards >= 1):
            raise ValueError(f"checkpoint_shards must be None or >= 1, but provided {shards!r}.")
        restarts = self.max_restarts
        if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 0:
            raise ValueError(f"max_restarts must be an int >= 0, but provided {restarts!r}.")
        if self.profile_dir is not None:
            os.fspath(self.profile_dir)

    @property
    def profile_folder(self) -> str | None:
        """The folder of profiles: the program's, else the environment's."""
        chosen = self.profile_dir or os.environ.get(profiling.VARIABLE)
        return os.fspath(chosen) if chosen else None
