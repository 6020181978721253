"""The options of `e2s check` about models, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.engine.command_line import positive
from estimator2strategy.tools.check.levels.level_table import BY_OPTION, LEVELS, levels_of
from estimator2strategy.tools.check.levels.request import (
    Asked,
    file_of,
    file_of_program,
    inputs_of,
    is_function,
    modes_of,
    name_of_program,
    params_of,
)
from estimator2strategy.tools.check.settings import Settings, SettingsError, Target

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
