"""What a program may say of how its training runs, beyond what the original could be told."""

from __future__ import annotations

import dataclasses
import os

from estimator2strategy.engine.runtime import profiling


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """See the arguments of `Estimator`, which have the same names.

    Raises:
        ValueError: There is no such value.
    """

    resume_input: bool = True
    jit_compile: bool = False
    async_checkpoints: bool = True
    checkpoint_shards: int | None = None
    profile_dir: str | os.PathLike | None = None

    def __post_init__(self) -> None:
        if self.jit_compile not in (True, False):
            raise ValueError(
                f"jit_compile must be True or False, but provided {self.jit_compile!r}."
            )
        shards = self.checkpoint_shards
        if shards is not None and not (isinstance(shards, int) and shards >= 1):
            raise ValueError(f"checkpoint_shards must be None or >= 1, but provided {shards!r}.")

    @property
    def profile_folder(self) -> str | None:
        """Where profiles go: as the program says, else as the environment does."""
        chosen = self.profile_dir or os.environ.get(profiling.VARIABLE)
        return os.fspath(chosen) if chosen else None
