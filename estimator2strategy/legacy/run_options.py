"""The options of `e2s run`, before the program."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Callable

from estimator2strategy.engine.command_line import Parser
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime import requested_strategy
from estimator2strategy.engine.runtime.requested_job import (
    COORDINATOR_VARIABLE,
    PROCESS_VARIABLE,
    PROCESSES_VARIABLE,
    Runtime,
    hosts_and_cores,
)

_EXAMPLE = """\
examples:
  e2s run train.py --data_dir=/data
  e2s run -m trainer.task --job-dir=/tmp/out
  e2s run --emulate-tpu-cores=8 run_classifier.py --use_tpu=True --output_dir=/tmp/out
  e2s run --strategy=mirrored train.py                # on all GPUs of this machine
  e2s run --strategy=mirrored:4 train.py              # without a GPU: in four parts of the CPU
  e2s run --runtime=jax train.py                      # on the devices that JAX has
  TF_CONFIG=... e2s run --strategy=multi_worker train.py      # once in each process
  e2s run --runtime=jax --coordinator=host0:2222 --processes=2 --process=1 train.py  # likewise

strategies:
{strategies}
  All Estimators train as if RunConfig(train_distribute=...) named the strategy: each replica
  takes the next batch of input_fn, so that a step takes N batches. evaluate and predict stay on
  one device. A TPUEstimator with use_tpu=True keeps its cores, and a program that builds no
  Estimator does not change; a line says so in both cases.

Arguments after the program go to the program. In its files `import tensorflow` gives TensorFlow
1.15 (estimator2strategy.tf1). Installed packages, and files that import estimator2strategy
themselves, get the TensorFlow that is installed.
"""


def parser() -> Parser:
    """Returns the parser of `e2s run`, for the options before the program."""
    names = requested_strategy.NAMES.items()
    made = Parser(
        prog="e2s run",
        usage=(
            "e2s run [options] PROGRAM.py [its flags]\n"
            "       e2s run [options] -m MODULE [its flags]"
        ),
        description="Runs an unchanged TF 1.x program on today's TensorFlow.",
        epilog=_EXAMPLE.format(strategies="\n".join(f"  {name:13} {what}" for name, what in names)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--emulate-tpu-cores",
        type=_cores,
        metavar="N",
        help="behave as if a TPU with N cores were attached; 2x4 are two hosts of four cores each",
    )
    made.add_argument(
        "--strategy",
        type=_strategy,
        metavar="NAME",
        help="train Estimators under this tf.distribute strategy; see below",
    )
    made.add_argument(
        "--profile-dir",
        metavar="DIR",
        help="write a profile of some steps of each training there, for TensorBoard",
    )
    made.add_argument(
        "--runtime",
        type=_member_of(Runtime),
        metavar="NAME",
        help="jax: JAX runs the steps, on its devices; auto: if it has a GPU or a TPU; "
        "tensorflow: as without the option",
    )
    made.add_argument(
        "--precision",
        type=_member_of(Precision),
        metavar="NAME",
        help="of float32 products under JAX: default, high or highest",
    )
    _add_options_of_jobs(made)
    made.add_argument(
        "--check-compiled",
        action="store_true",
        help="raise an error where XLA reports none: an id beyond its table, for example",
    )
    _add_options_of_modules(made)
    return made


def _add_options_of_jobs(made: Parser) -> None:
    """Adds the options of a program that several processes run together."""
    made.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="under JAX: the address at which process 0 meets the others, on other hosts",
    )
    made.add_argument("--processes", type=_whole, metavar="N", help="their number")
    made.add_argument("--process", type=_whole, metavar="I", help="the number of this one, from 0")


def job_of(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Name of an environment's variable -> its value; None: not given."""
    return {
        COORDINATOR_VARIABLE: arguments.coordinator,
        PROCESSES_VARIABLE: arguments.processes,
        PROCESS_VARIABLE: arguments.process,
    }


def _whole(text: str) -> str:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number")
    return text


def _add_options_of_modules(made: Parser) -> None:
    """Adds the options that say which TensorFlow the modules of the program take."""
    made.add_argument(
        "--legacy-module",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed package that was written for TF 1.x as well (may be repeated)",
    )
    made.add_argument(
        "--modern-module",
        action="append",
        default=[],
        metavar="PATTERN",
        help="a module of the program that takes the TensorFlow that is installed: "
        "helpers.new_* (may be repeated)",
    )
    made.add_argument(
        "--fork",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module of the program that is a copy of TensorFlow's tpu_estimator.py; this "
        "package's TPUEstimator takes its place (may be repeated)",
    )
    made.add_argument(
        "--tf2",
        action="store_true",
        help="the program was written for TensorFlow 2.0 to 2.15 and its tf.estimator, not for 1.x",
    )


def _member_of(kind: type[enum.Enum]) -> Callable[[str], enum.Enum]:
    """Finds the member of `kind` that has such a value."""

    def member(text: str) -> enum.Enum:
        known = {str(member.value): member for member in kind}
        if text not in known:
            raise argparse.ArgumentTypeError(f"no {text!r}; there are {', '.join(known)}")
        return known[text]

    return member


def _strategy(text: str) -> str:
    try:
        return requested_strategy.check_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _cores(text: str) -> str:
    if not all(hosts_and_cores(text) or [0]):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give a whole number of at least 1, or hosts x cores of each, as in 2x4"
        )
    return text
