"""The levels above static, by name; TensorFlow is imported only where one runs."""

from __future__ import annotations

import dataclasses

from estimator2strategy.tools.check.check_report import Evidence
from estimator2strategy.tools.check.settings import SettingsError


@dataclasses.dataclass(frozen=True)
class Level:
    """A level of evidence: its module, its time limit, and the proof that it gives.

    Attributes:
        module: The module that has `check(subject: Subject) -> LevelReport`.
        seconds: The time limit for one model, unless `--time-limit` gives another.
        proves: The proof that it gives when it passes, in one line.
        beyond: The questions that it cannot answer.
        runs_the_program: Its `check` gets the `Asked`, and runs the program as a whole itself.
    """

    module: str
    seconds: float
    proves: str
    beyond: tuple[str, ...]
    runs_the_program: bool = False


LEVELS: dict[Evidence, Level] = {
    Evidence.RECORDED: Level(
        "estimator2strategy.tools.check.levels.recorded",
        600,
        "model_fn and input_fn build a graph here, and what is in it",
        (
            "values: no batch was taken, no step was run",
            "other values of params, flags and batch sizes, which may build other graphs",
            "whether it compiles for a TPU, fits into its memory, or gives the numbers it gave",
        ),
    ),
    Evidence.CPU_COMPILED: Level(
        "estimator2strategy.tools.check.levels.cpu_compiled",
        1800,
        "XLA has all ops of the step of each mode, and compiles it for the CPU, alone",
        (
            "what the TPU's compiler says: it has other kernels, for other dtypes, and limits",
            "values: no step was run",
        ),
    ),
    Evidence.REPLICATED: Level(
        "estimator2strategy.tools.check.levels.replicated_step",
        1200,
        "one step on emulated cores gives what it gives on one device, or why not",
        (
            "more than the one step, and the one batch",
            "the precision of a TPU: emulated cores compute as this CPU does",
        ),
    ),
    Evidence.VERIFIED: Level(
        "estimator2strategy.tools.check.levels.verified",
        3600,
        "forward, gradients, slots, losses, cores, metrics and export are what they were when the "
        "golden was recorded",
        (
            "other batches, and more steps, than those of the golden",
            "the precision of a TPU: all of it was computed by this CPU",
        ),
        runs_the_program=True,
    ),
    Evidence.TPU_TRACED: Level(
        "estimator2strategy.tools.check.levels.tpu_traced",
        1800,
        "the train function can be built for a TPU of one and of two hosts, and sends the step "
        "as it was recorded",
        (
            "whether a TPU's worker takes what it would be sent",
            "values: no step was run",
        ),
    ),
    Evidence.TPU_COMPILED: Level(
        "estimator2strategy.tools.check.levels.tpu_compiled",
        86400,  # of all compilations; each has a limit of its own
        "the compiler in libtpu makes a program of the step, sums over cores included, that fits "
        "into a core's memory",
        (
            "whether TensorFlow on a TPU's worker lowers the step as TensorFlow does here: it has "
            "kernels of its own for TPUs, which no package holds",
            "what another version of the compiler says than the installed libtpu: TPUs run the one "
            "that their runtime came with",
            "memory that the runtime and other programs take: evaluation, infeed, checkpoints",
            "speed and values: nothing was run",
        ),
    ),
}

# Levels that need more than the model, by the option that gives it and asks for them.
BY_OPTION = {"golden": Evidence.VERIFIED, "tpu": Evidence.TPU_COMPILED}
# The levels of `--levels all`.
ALL = tuple(level for level in LEVELS if level not in BY_OPTION.values())


def levels_of(given: str | None) -> tuple[Evidence, ...]:
    """The levels above static in `recorded,replicated`; by default `recorded`.

    Raises:
        SettingsError: One is unknown.
    """
    if given is None:
        return (Evidence.RECORDED,)
    if given == "all":
        return ALL
    known = {level.option: level for level in LEVELS}
    found = []
    for word in given.split(","):
        if word.strip() == Evidence.STATIC.option:
            continue
        if word.strip() not in known:
            names = ", ".join([Evidence.STATIC.option, *known, "all"])
            raise SettingsError(f"--levels: {word!r} is none of {names}")
        found.append(known[word.strip()])
    return tuple(sorted(set(found)))
