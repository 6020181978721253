"""`e2s checkpoint`: inspect, diff, convert and verify."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from estimator2strategy.engine import patches, quiet_import
from estimator2strategy.engine.command_line import Parser
from estimator2strategy.tools.untrusted import printable

if TYPE_CHECKING:
    from estimator2strategy.tools.checkpoint.mapping import Mapping

_EXAMPLE = """\
examples:
  e2s checkpoint inspect model_dir/
  e2s checkpoint diff model.ckpt-20 new.weights.h5 --model model.py:build
  e2s checkpoint convert model.ckpt-20 new.weights.h5 --to keras --model model.py:build
  e2s checkpoint convert new.weights.h5 back/model.ckpt-20 --to tf1 --like model.ckpt-20 \\
      --model model.py:build
  e2s checkpoint verify golden/ --model model.py:build --backend jax   # leaves TensorFlow
  e2s checkpoint convert trained.npz model_dir/model.ckpt-20 --to tf1     # of an exported step

exit code: 0 done, or no difference; 1 differences, or something could not be decided; 2 an error.
"""


def main(argv: Sequence[str]) -> int:
    """Runs `e2s checkpoint` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    patches.noted("command's log")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if said := quiet_import.missing():
        sys.stderr.write(f"e2s checkpoint: {said}\n")
        return 2
    quiet_import.import_tensorflow()
    from estimator2strategy.errors import CheckpointError
    from estimator2strategy.tools.checkpoint.conversion import UndecidedError

    try:
        exit_code: int = options.run(options)
        return exit_code
    except UndecidedError as error:
        if options.write_map:
            _write_map(options.write_map, error.mapping)
        _complain(error)
        return 1
    except (CheckpointError, OSError) as error:
        _complain(error)
        return 2


def _complain(error: Exception) -> None:
    printable.write(f"e2s checkpoint: {printable.printable_lines(str(error))}\n", sys.stderr)


def _say(text: str) -> None:
    printable.write(printable.printable_lines(text))


def _inspect(options: argparse.Namespace) -> int:
    import dataclasses

    from estimator2strategy.tools.checkpoint.checkpoint_report import inspected
    from estimator2strategy.tools.checkpoint.opening import open_store

    store = open_store(options.path, options.model)
    if options.json:
        entries = [dataclasses.asdict(entry) for entry in store.entries]
        sys.stdout.write(json.dumps({"kind": store.kind, "entries": entries}, indent=1) + "\n")
    else:
        _say(inspected(store))
    return 0


def _diff(options: argparse.Namespace) -> int:
    import dataclasses

    from estimator2strategy.tools.checkpoint import checkpoint_report
    from estimator2strategy.tools.checkpoint.opening import open_store

    first, second = (open_store(path, options.model) for path in (options.a, options.b))
    pairs = checkpoint_report.pairs_of(first, second, options.map)
    rows = checkpoint_report.differences(first, second, pairs, options.tolerance)
    if options.json:
        sys.stdout.write(json.dumps([dataclasses.asdict(d) for d in rows], indent=1) + "\n")
    else:
        left_out = checkpoint_report.not_comparable(first, second, pairs)
        _say(checkpoint_report.diff_text(rows, first, second, left_out))
    return int(bool(rows))


def _convert(options: argparse.Namespace) -> int:
    from estimator2strategy.tools.checkpoint import checkpoint_report, mapping
    from estimator2strategy.tools.checkpoint.conversion import convert
    from estimator2strategy.tools.checkpoint.opening import open_store
    from estimator2strategy.tools.checkpoint.store import Format

    done = convert(
        open_store(options.source, options.model),
        options.out,
        Format(options.to),
        like=options.like,
        model=options.model,
        rows=mapping.read(options.map) if options.map else None,
        partial=options.partial,
    )
    if options.write_map:
        _write_map(options.write_map, done.mapping)
    _say(checkpoint_report.converted_text(options.out, done))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from estimator2strategy.tools.checkpoint import backend_proof, mapping
    from estimator2strategy.tools.golden.result import CheckStatus

    made = backend_proof.checks(
        options.golden,
        options.model,
        options.backend,
        mapping.read(options.map) if options.map else None,
        options.tolerance,
        options.python,
    )
    failed = [check for check in made if check.status is CheckStatus.FAILED]
    head = "DIFFERENT" if failed else "the same model"
    _say(f"{head}: {options.golden} and {options.model} on {options.backend}, no TensorFlow\n\n")
    for check in made:
        said = "; ".join(filter(None, (f"within {check.tolerance}", check.detail)))
        _say(f"{check.what:32}{check.status.value:8}{check.slack:16}{said}\n")
    return int(bool(failed))


def _write_map(path: str, mapped: Mapping) -> None:
    from estimator2strategy.tools.checkpoint import mapping

    mapping.write(path, mapped)
    sys.stderr.write(f"e2s checkpoint: wrote the mapping to {path}\n")


def parser() -> Parser:
    """Returns the parser of `e2s checkpoint`."""
    made = Parser(
        prog="e2s checkpoint",
        description="Lists, compares, converts and verifies checkpoints of TF1, TF2 and Keras.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = made.add_subparsers(required=True, metavar="inspect | diff | convert | verify")
    inspect = parts.add_parser(
        "inspect",
        help="list the variables and slots of a checkpoint",
        description="Lists the variables and slots of a checkpoint, with shapes and dtypes.",
        epilog="example: e2s checkpoint inspect model_dir/",
    )
    inspect.add_argument(
        "path",
        metavar="PATH",
        help="a folder, a prefix, a SavedModel, a .weights.h5, a .keras, a .npz",
    )
    diff = parts.add_parser(
        "diff",
        help="list how two checkpoints differ",
        description="Lists missing and extra values, and other shapes, dtypes and values.",
        epilog="example: e2s checkpoint diff model.ckpt-10 model.ckpt-20",
    )
    diff.add_argument("a", metavar="A", help="a checkpoint, as of `e2s checkpoint inspect`")
    diff.add_argument("b", metavar="B", help="another one, in the same or another format")
    diff.add_argument(
        "--tolerance", type=float, default=0.0, help="allowed difference of values; by default 0"
    )
    for part, run in ((inspect, _inspect), (diff, _diff)):
        part.add_argument("--json", action="store_true", help="print JSON, not a table")
        part.set_defaults(run=run, write_map=None)
    convert = _add_convert(parts)
    verify = _add_verify(parts)
    for part in (diff, convert, verify):
        part.add_argument("--map", metavar="FILE", help="use a mapping that --write-map wrote")
    for part in (inspect, diff, convert):
        part.add_argument(
            "--model",
            metavar="MODULE:FUNCTION",
            help="a function that builds the Keras model, for the names of its variables",
        )
    verify.add_argument(
        "--model", metavar="MODULE:FUNCTION", required=True, help="builds the Keras model"
    )
    return made


def _add_verify(parts: Any) -> Parser:
    """Adds the parser of `e2s checkpoint verify`, except for the options that others share."""
    verify: Parser = parts.add_parser(
        "verify",
        help="compare a migrated model on JAX or torch with a golden",
        description="Gives a Keras model the weights of a golden's last checkpoint, runs it in a "
        "process without TensorFlow, and compares predictions and losses with the golden's.",
        epilog="example: e2s checkpoint verify golden --model model.py:build --backend jax",
    )
    verify.add_argument("golden", metavar="GOLDEN", help="the folder that `e2s record` wrote")
    verify.add_argument(
        "--backend", choices=("jax", "torch"), default="jax", help="of Keras; jax by default"
    )
    verify.add_argument(
        "--tolerance", type=float, default=1.0, metavar="FACTOR", help="widen the tolerances"
    )
    verify.add_argument(
        "--python", metavar="PATH", help="the Python that has the backend; this one by default"
    )
    verify.set_defaults(run=_verify, write_map=None)
    return verify


def _add_convert(parts: Any) -> Parser:
    """Adds the parser of `e2s checkpoint convert`, except for the options that others share."""
    convert: Parser = parts.add_parser(
        "convert",
        help="write a checkpoint in another format",
        description="Writes the values of a checkpoint into a new one, in another format.",
        epilog="example:\n  e2s checkpoint convert model.ckpt-20 new.weights.h5 --to keras "
        "--model model.py:build",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument("source", metavar="SOURCE", help="the checkpoint to read")
    convert.add_argument(
        "out", metavar="OUT", help="the new one: a prefix, a .weights.h5 or a .keras file"
    )
    convert.add_argument(
        "--to", required=True, choices=("tf1", "tf2", "keras"), help="the format of the new one"
    )
    convert.add_argument(
        "--like", metavar="PATH", help="a checkpoint with the names of the new one"
    )
    convert.add_argument(
        "--write-map", metavar="FILE", help="write the mapping that was inferred, as JSON or CSV"
    )
    convert.add_argument(
        "--partial",
        action="store_true",
        help="leave variables without a source as they are in --like",
    )
    convert.set_defaults(run=_convert)
    return convert
