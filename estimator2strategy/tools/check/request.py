"""The request of a command line, and the levels that it may ask for.

Nothing of the program is imported yet, and TensorFlow only where a level runs.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import importlib.machinery
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from estimator2strategy.engine.command_line import positive
from estimator2strategy.tools.check.check_report import Evidence
from estimator2strategy.tools.check.settings import Settings, SettingsError, Target

# The batch of a core, in examples, if the command does not say.
EXAMPLES_PER_CORE = 8


class Mode(str, enum.Enum):
    """The calls that a model is checked for, as options and reports name them."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "predict"

    __str__ = str.__str__


MODES = tuple(Mode)


@dataclasses.dataclass(frozen=True)
class Asked:
    """The request to check a model above static. The process of each level gets it.

    Attributes:
        name: The model, as the user named it.
        model: `MODULE:function` or `FILE.py:function`; "" with a `program`.
        inputs: Mode -> the input_fn for it, likewise.
        params: Hyperparameters, or the `MODULE:name` of an object that has or returns them.
        modes: The modes to check; empty: all that there is an input for.
        batch_size: Global, in examples; None: `EXAMPLES_PER_CORE` for each core.
        checkpoint: A checkpoint, or a folder of them, that the model is to fit.
        program: A program and its own arguments, in place of `model` and `inputs`.
        cores: The number of cores to emulate.
        facade: True if the program's `tensorflow` is TF 1.15's.
        root: The folder that the model is imported in, and that paths in findings are relative to.
        path: Further places to import from.
        levels: The levels to go through.
        time_limit: Seconds for each level; None: the level's own limit.
        options: The options of single levels, by name: {"tpu": ("v3-8",)}.
    """

    name: str
    model: str = ""
    inputs: Mapping[Mode, str] = dataclasses.field(default_factory=dict)
    params: Mapping[str, Any] | str = dataclasses.field(default_factory=dict)
    modes: tuple[Mode, ...] = ()
    batch_size: int | None = None
    checkpoint: str | None = None
    program: tuple[str, ...] = ()
    cores: int = 8
    facade: bool = True
    root: Path = dataclasses.field(default_factory=Path.cwd)
    path: tuple[str, ...] = ()
    levels: tuple[Evidence, ...] = (Evidence.RECORDED,)
    time_limit: float | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def is_function(target: str) -> bool:
    """True if an argument names a function (`trainer.model:model_fn`), and not a path."""
    place, colon, name = target.rpartition(":")
    return bool(colon and place) and name.isidentifier() and not Path(target).exists()


def inputs_of(given: Sequence[str]) -> dict[Mode, str]:
    """Mode -> input_fn, from `--input FN` (for all modes) and `--input eval=FN`.

    Raises:
        SettingsError: It names no function, or no mode.
    """
    found: dict[Mode, str] = {}
    for text in given:
        mode, equals, function = text.partition("=")
        modes = (_mode(mode, f"--input {text}"),) if equals else MODES
        function = function if equals else text
        if not is_function(function):
            raise SettingsError(
                f"--input {text}: give MODULE:function or FILE.py:function, such as "
                "trainer.data:input_fn"
            )
        found.update(dict.fromkeys(modes, function))
    return found


def modes_of(given: str | None) -> tuple[Mode, ...]:
    """The modes in `train,eval`.

    Raises:
        SettingsError: One is unknown.
    """
    named = (mode.strip() for mode in (given or "").split(","))
    return tuple(_mode(mode, "--modes") for mode in named if mode)


def _mode(name: str, option: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise SettingsError(f"{option}: {name!r} is none of {', '.join(MODES)}") from None


def params_of(given: str | None) -> dict[str, Any] | str:
    """Hyperparameters from `FILE.json`, `k=v,...`, or `MODULE:name`, which is read later.

    Raises:
        SettingsError: They cannot be read.
    """
    if not given:
        return {}
    if given.endswith(".json"):
        try:
            params = json.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"--params {given}: {error}") from error
        if not isinstance(params, dict):
            raise SettingsError(f"--params {given}: a JSON object is needed, with a value for each")
        return params
    if is_function(given):
        return given
    found: dict[str, Any] = {}
    for part in given.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise SettingsError(
                f"--params {given}: {part!r} is no key=value. Give key=value,key=value, a file "
                "FILE.json, or MODULE:name of a dict or of a function that returns one."
            )
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    named = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in named:
        return named[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def name_of_program(program: Sequence[str]) -> str:
    """The file of `FILE.py FLAGS`, or the module of `-m MODULE FLAGS`."""
    return " ".join(program[1:2]) if program[0] == "-m" else program[0]


def file_of_program(program: Sequence[str]) -> str | None:
    """The file that a program starts with; None if there is none."""
    name = name_of_program(program)
    if program[0] != "-m":
        return name if Path(name).is_file() else None
    return file_of(f"{name}.__main__:") or file_of(f"{name}:")


def file_of(target: str) -> str | None:
    """The file of `MODULE:name` or `FILE.py:name`; nothing is imported to find it."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return place
    search = ["", *sys.path]
    *packages, last = place.split(".")
    for package in packages:
        spec = importlib.machinery.PathFinder.find_spec(package, search)
        if spec is None or not spec.submodule_search_locations:
            return None
        search = list(spec.submodule_search_locations)
    spec = importlib.machinery.PathFinder.find_spec(last, search)
    installed = spec is None or "site-packages" in (spec.origin or "")
    return None if installed or spec is None else spec.origin


class Level(NamedTuple):
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


# Options of single levels, which get them as `subject.options`.
_OF_LEVELS = ("golden", "tpu", "fit_batch", "tpu_time_limit", "no_tpu_cache")


# Option -> what argparse is to know of it, in the order of the help.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--input": {
        "action": "append",
        "default": [],
        "metavar": "[MODE=]MODULE:input_fn",
        "help": "the input_fn, for all modes or for one; may be repeated",
    },
    "--params": {
        "metavar": "PARAMS",
        "help": "key=value,key=value; a file FILE.json; or MODULE:name of a dict, an HParams, or "
        "of a function that returns one",
    },
    "--modes": {"metavar": "MODES", "help": "some of train,eval,predict; by default all"},
    "--batch-size": {
        "type": positive,
        "metavar": "N",
        "help": "the global batch size; by default 8 for each core",
    },
    "--checkpoint": {
        "metavar": "DIR",
        "help": "a checkpoint, or a folder of them, that has to fit the model",
    },
    "--levels": {
        "metavar": "LEVELS",
        "help": f"some of {', '.join(level.option for level in LEVELS)}, or all; "
        "by default recorded",
    },
    "--cores": {
        "type": positive,
        "default": 8,
        "metavar": "N",
        "help": "cores to emulate; by default 8",
    },
    "--time-limit": {
        "type": float,
        "metavar": "SECONDS",
        "help": "the time limit of each level of each model",
    },
    "--golden": {
        "metavar": "DIR",
        "help": "replay a golden of `e2s record`, to see if it is still the same model",
    },
    "--tpu": {
        "metavar": "TPUS",
        "help": "compile the train step with the real TPU compiler: v2-8,v3-8,v4-8,v5e-4,v5p-8,"
        "v6e-8,tpu7x-8; takes minutes for a large model, and needs no TPU, but pip install "
        "'estimator2strategy[tpu-compile]'",
    },
    "--fit-batch": {
        "action": "store_true",
        "help": "with --tpu: find the largest batch that fits",
    },
    "--tpu-time-limit": {
        "type": float,
        "metavar": "SECONDS",
        "help": "the time limit of each compilation of --tpu; by default 1800",
    },
    "--no-tpu-cache": {
        "action": "store_true",
        "help": "compile again, and do not use the results in ~/.cache",
    },
    "--program": {
        "metavar": "FILE.py [FLAGS]",
        "help": "run a whole program (or -m MODULE) with its own flags up to its first train, "
        "evaluate, predict or train_and_evaluate, and check the arguments of that call; must be "
        "the last option",
    },
}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how to call a model."""
    group = parser.add_argument_group("models")
    for option, known in _OPTIONS.items():
        group.add_argument(option, **known)


def models_of(options: argparse.Namespace, settings: Settings) -> list[Asked]:
    """The models that the command line asks for.

    Raises:
        SettingsError: Options that cannot be read, or that contradict each other.
    """
    names = [path for path in options.paths if is_function(path)]
    inputs = inputs_of(options.input)
    if names and not inputs:
        raise SettingsError(f"{names[0]}: give its --input MODULE:input_fn, too")
    if inputs and not names:
        raise SettingsError("--input is for MODULE:model_fn, and there is none")
    if options.fit_batch and not options.tpu:
        raise SettingsError("--fit-batch is for --tpu, and there is none")
    levels = levels_of(options.levels)
    given = {level for name, level in BY_OPTION.items() if getattr(options, name)}
    levels = tuple(sorted({*levels, *given}))
    common = {
        "params": params_of(options.params),
        "modes": modes_of(options.modes),
        "batch_size": options.batch_size,
        "checkpoint": options.checkpoint,
        "cores": options.cores,
        "facade": settings.target == Target.FACADE,
        "root": settings.root,
        "levels": levels,
        "time_limit": options.time_limit,
        "options": {name: getattr(options, name) for name in _OF_LEVELS},
    }
    asked = [Asked(name, model=name, inputs=inputs, **common) for name in names]
    if options.program:
        if not file_of_program(options.program):
            raise SettingsError(f"--program {' '.join(options.program[:2])}: it is not there")
        name = name_of_program(options.program)
        asked.append(Asked(name, program=options.program, **common))
    return asked


def source_files(models: Iterable[Asked]) -> Iterator[str]:
    """The files that models are in, for the static level; those that cannot be found are not."""
    for asked in models:
        path = file_of_program(asked.program) if asked.program else file_of(asked.model)
        if path and Path(path).is_file():
            yield path
