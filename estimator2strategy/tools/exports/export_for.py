"""`e2s export-for`: rewrites an exported model for TF 1.15, TF 2, Keras or a converter."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from estimator2strategy.engine import patches, quiet_import
from estimator2strategy.engine.command_line import Parser
from estimator2strategy.errors import SavedModelError
from estimator2strategy.tools.untrusted import printable

_EXAMPLE = """\
examples:
  e2s export-for --tf=1.15 exported/1700000000       # TF 1.15 and its server load it
  e2s export-for --tf=2 exported/1500000000          # an export of TF 1.15, to train further
  e2s export-for --tags=serve exported/1700000000    # a TPUEstimator's, for TFSMLayer
  e2s export-for --parts exported/1700000000         # numbers alone, for TFLite, ONNX, OpenVINO

exit code: 0 done; 2 an error, and nothing is written.
"""
_SERVE = "serve"


def main(argv: Sequence[str]) -> int:
    """Runs `e2s export-for` with these arguments; returns the exit code."""
    options = parser().parse_args(list(argv))
    if not (options.tf or options.parts or options.tags):
        sys.stderr.write("e2s export-for: add --tf=1.15, --tf=2, --parts or --tags=serve\n")
        return 2
    patches.noted("command's log")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if said := quiet_import.missing():
        sys.stderr.write(f"e2s export-for: {said}\n")
        return 2
    quiet_import.import_tensorflow()
    import tensorflow as tf

    try:
        said = _write_parts(options) if options.parts else _write_one(options)
    except (SavedModelError, OSError, tf.errors.OpError) as error:
        _complain(str(error))
        return 2
    except (ValueError, TypeError, IndexError) as error:  # of a graph that no TensorFlow wrote
        first = str(error).strip().partition("\n")[0]
        _complain(f"{options.folder} is damaged: {first}")
        return 2
    printable.write(printable.printable_lines(said))
    return 0


def _complain(said: str) -> None:
    printable.write(f"e2s export-for: {printable.printable_lines(said)}\n", sys.stderr)


def _write_one(options: argparse.Namespace) -> str:
    """Writes one SavedModel; returns what there is to say."""
    from estimator2strategy.engine.saved_models import model_files

    model = model_files.read(options.folder)
    if options.tags:
        model_files.keep_graph(model, options.tags.split(","))
    said = _REWRITES[options.tf](model) if options.tf else f"the graph {options.tags} alone"
    target = _target(options)
    model_files.write(model, options.folder, target)
    return f"{target}: {said}\n"


def _write_parts(options: argparse.Namespace) -> str:
    """Writes a folder with a SavedModel for each part; returns what there is to say."""
    from estimator2strategy.engine.saved_models import model_files, served_parts, split_plan

    if options.tf:
        raise SavedModelError("--parts and --tf exclude each other: split first")
    model = model_files.read(options.folder)
    made = served_parts.split(model, (options.tags or _SERVE).split(","), options.signature)
    target = _target(options)
    with model_files.new_folder(target) as unfinished:
        for name, part in made.items():
            has_variables = name == split_plan.NUMBERS
            into = os.path.join(unfinished, name)
            model_files.write(part, options.folder, into, variables=has_variables)
    return "".join(f"{os.path.join(target, name)}: {_flow(part)}\n" for name, part in made.items())


def _flow(part: object) -> str:
    """The inputs and outputs of a part."""
    signature = part.meta_graphs[0].signature_def["serving_default"]  # type: ignore[attr-defined]
    inputs, outputs = (", ".join(sorted(names)) for names in (signature.inputs, signature.outputs))
    return f"{inputs} -> {outputs}"


def _target(options: argparse.Namespace) -> str:
    purpose = f"tf{options.tf}" if options.tf else "parts" if options.parts else options.tags
    name = f"{options.folder.rstrip('/')}-{purpose.replace(',', '-')}"
    return options.out or name


def _for_tf115(model: object) -> str:
    from estimator2strategy.engine.saved_models import tensorflow_115

    tensorflow_115.rewrite(model)
    return "for TensorFlow 1.15 and newer"


def _for_tf2(model: object) -> str:
    from estimator2strategy.engine.saved_models import resource_variables

    count = resource_variables.with_resource_variables(model)
    if not count:
        raise SavedModelError(
            "there are no reference variables: TensorFlow 2 loads and trains it as it is"
        )
    return f"{count} reference variables are resource variables now, which TensorFlow 2 trains"


_REWRITES: dict[str, Callable[[object], str]] = {"1.15": _for_tf115, "2": _for_tf2}


def parser() -> Parser:
    """Returns the parser of `e2s export-for`."""
    made = Parser(
        prog="e2s export-for",
        description="Rewrites an exported model for other readers than today's TensorFlow.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("folder", metavar="FOLDER", help="a SavedModel; it stays as it is")
    made.add_argument("--out", metavar="DIR", help="the new folder; default: FOLDER-tf1.15, ...")
    made.add_argument(
        "--tf",
        choices=[*_REWRITES],
        help="1.15: that TensorFlow loads it; 2: an export of TF 1.15 can be trained and saved",
    )
    made.add_argument(
        "--parts", action="store_true", help="split strings and parsing from the numbers"
    )
    made.add_argument(
        "--tags", metavar="TAG,TAG", help="only the graph with these tags; for --parts: serve"
    )
    made.add_argument("--signature", metavar="NAME", help="for --parts; default: predict, if any")
    return made
