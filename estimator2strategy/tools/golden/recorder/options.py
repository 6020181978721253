"""The options of a recording; they are read before TensorFlow is imported."""

import argparse
import json
import os

from estimator2strategy.engine.command_line import Parser, positive
from estimator2strategy.tools.golden.recorder.folder import PARTS, RecordError

_EXAMPLE = """\
examples:
  {prog} --out golden --program train.py --data_dir=/data --batch_size=16
  {prog} --out golden --program -m trainer.task --batch_size=16
  {prog} --out golden trainer.model:model_fn --input trainer.data:input_fn --batch-size 16

The program runs as ever, with its own flags, and stops once it is recorded. `e2s record --print`
prints the one file that does this under TensorFlow 1.13 to 2.15; `e2s verify golden` replays.
"""


def add_source(parser):
    """The arguments that say what to record."""
    parser.add_argument("model_fn", nargs="?", help="module:function or file.py:function")
    parser.add_argument(
        "--estimator",
        metavar="FUNCTION",
        help="instead of model_fn: a function that returns an Estimator",
    )
    parser.add_argument("--input", metavar="INPUT_FN", help="for training: module:function")
    parser.add_argument(
        "--eval-input", metavar="INPUT_FN", help="for evaluation; by default --input"
    )
    parser.add_argument(
        "--predict-input", metavar="INPUT_FN", help="for prediction; by default --input"
    )
    parser.add_argument(
        "--serving", metavar="RECEIVER_FN", help="also export the model, with this function"
    )
    parser.add_argument(
        "--params",
        type=_json,
        metavar="JSON",
        help="hyperparameters: '{\"learning_rate\": 0.1}'",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        metavar="N",
        help="make a TPUEstimator (use_tpu=False) of this batch size",
    )
    parser.add_argument(
        "--program",
        nargs=argparse.REMAINDER,
        help="instead of model_fn and its options: a program and its flags; must come last",
    )


def add_parts(parser, verb):
    """The option that chooses parts; training is what all others need."""
    parser.add_argument(
        "--part",
        action="append",
        choices=PARTS[1:],
        help=f"{verb} only this, beside training; may be repeated; by default all",
    )


def parts_of(options):
    """The parts that were asked for."""
    return PARTS[:1] + tuple(options.part or PARTS[1:])


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        said = f"{text!r} is not JSON, as '{{\"hidden\": 64}}' is"
        raise argparse.ArgumentTypeError(said) from None


def source_of(options):
    """The options of `add_source`, as JSON; `options` gets an error for a missing one."""
    if options.program:
        return {"program": options.program, "cwd": os.getcwd()}
    if not (options.model_fn or options.estimator) or not options.input:
        raise RecordError(
            "say what to record: a model_fn (or --estimator) and its --input, or --program"
        )
    names = [
        "model_fn",
        "estimator",
        "input",
        "eval_input",
        "predict_input",
        "serving",
        "params",
        "batch_size",
    ]
    return {name: getattr(options, name) for name in names}


def record_parser(prog):
    """The parser of all options."""
    parser = Parser(
        prog=prog,
        description="Records what a model does here: a golden to verify it against elsewhere.",
        epilog=_EXAMPLE.format(prog=prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", default="golden", metavar="DIR", help="the folder to write; golden by default"
    )
    for option, default, limited in (
        ("--steps", 20, "train at most N steps"),
        ("--eval-batches", 10, "evaluate at most N batches"),
        ("--predict-batches", 4, "predict at most N batches"),
    ):
        parser.add_argument(
            option,
            type=positive,
            default=default,
            metavar="N",
            help=f"{limited}; {default} by default",
        )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="start from this checkpoint, and not from initial values",
    )
    add_parts(parser, "record")
    add_source(parser)
    return parser
