"""`e2s export-step`: writes a training step as a folder that trains where only JAX is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from estimator2strategy.engine import quiet_import
from estimator2strategy.engine.command_line import Parser
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.errors import EstimatorToStrategyError
from estimator2strategy.tools.check.request import Asked, Mode, inputs_of, params_of
from estimator2strategy.tools.check.settings import SettingsError

_EXAMPLE = """\
example:
  e2s export-step trainer/model.py:model_fn --input trainer/data.py:input_fn --out step/
  python step/run.py --steps 100 --save trained.npz      # there: jax, numpy and flatbuffers
"""


def main(argv: Sequence[str]) -> int:
    """Runs `e2s export-step` with these arguments; returns the exit code."""
    arguments = parser().parse_args(list(argv))
    if said := quiet_import.missing():
        sys.stderr.write(f"e2s export-step: {said}\n")
        return 2
    quiet_import.import_tensorflow()
    from estimator2strategy.tools.check.levels.check_error import CheckError

    try:
        _export(arguments)
    except (SettingsError, CheckError, EstimatorToStrategyError, ValueError, OSError) as error:
        sys.stderr.write(f"e2s export-step: {error}\n")
        return 2
    sys.stdout.write(f"{arguments.out}: python {arguments.out}/run.py --steps 100\n")
    return 0


def _export(arguments: argparse.Namespace) -> None:
    from estimator2strategy.tools.artifact.step_export import export_step
    from estimator2strategy.tools.check.levels.load import subject_of

    subject = subject_of(
        Asked(
            name=arguments.model,
            model=arguments.model,
            inputs=inputs_of([arguments.input]),
            params=params_of(arguments.params),
            modes=(Mode.TRAIN,),
            batch_size=arguments.batch_size,
            cores=arguments.cores,
        )
    )
    export_step(
        subject.estimator(subject.strategy() if arguments.cores > 1 else None),
        subject.inputs[Mode.TRAIN],
        arguments.out,
        steps_per_block=arguments.steps_per_block,
        precision=arguments.precision,
        checkpoint=arguments.checkpoint,
    )


def parser() -> argparse.ArgumentParser:
    """The parser of `e2s export-step`."""
    made = Parser(
        prog="e2s export-step",
        description="Writes a training step as a folder that trains without TensorFlow.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("model", metavar="MODEL", help="MODULE:model_fn or FILE.py:model_fn")
    made.add_argument("--input", required=True, metavar="FN", help="its input_fn, likewise")
    made.add_argument("--out", required=True, metavar="DIR", help="the folder to write")
    made.add_argument("--params", metavar="P", help="k=v,k=v or FILE.json or MODULE:name")
    made.add_argument("--batch-size", type=int, metavar="N", help="of all replicas together")
    made.add_argument("--cores", type=int, default=1, metavar="N", help="replicas; default 1")
    made.add_argument("--steps-per-block", type=int, default=10, metavar="N", help="default 10")
    made.add_argument("--checkpoint", metavar="PATH", help="the values to start from")
    made.add_argument(
        "--precision",
        choices=[precision.value for precision in Precision],
        default=Precision.DEFAULT.value,
        help="of products of float32",
    )
    return made
