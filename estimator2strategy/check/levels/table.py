"""The levels above static, by name; TensorFlow is imported only where one runs."""

from __future__ import annotations

import dataclasses

from estimator2strategy.check.report import Evidence
from estimator2strategy.check.settings import SettingsError


@dataclasses.dataclass(frozen=True)
class Level:
    """How a level is reached.

    Attributes:
        module: Has `check(subject: Subject) -> LevelReport`.
        seconds: How long it may take for one model, unless `--time-limit` says otherwise.
        proves: What it shows when it passes, in one line.
        beyond: What it cannot show.
    """

    module: str
    seconds: float
    proves: str
    beyond: tuple[str, ...]


LEVELS: dict[Evidence, Level] = {
    Evidence.RECORDED: Level(
        "estimator2strategy.check.levels.recorded",
        600,
        "model_fn and input_fn build a graph here, and what is in it",
        (
            "values: no batch was drawn, no step was run",
            "other values of params, flags and batch sizes, which may build other graphs",
            "whether it compiles for a TPU, fits into its memory, or gives the numbers it gave",
        ),
    ),
    Evidence.REPLICATED: Level(
        "estimator2strategy.check.levels.replicated",
        1200,
        "one step on emulated cores gives what it gives on one device, or why not",
        (
            "more than the one step, and the one batch",
            "the precision of a TPU: emulated cores compute as this CPU does",
        ),
    ),
}

# What `--levels all` means. A TPU compiler takes minutes, and is asked for by `--tpu`.
ALL = tuple(level for level in LEVELS if level < Evidence.TPU_COMPILED)


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
