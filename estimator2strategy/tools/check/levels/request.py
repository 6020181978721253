"""The request of a command line; nothing of the program is imported yet."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib.machinery
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator2strategy.tools.check.check_report import Evidence
from estimator2strategy.tools.check.settings import SettingsError

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
