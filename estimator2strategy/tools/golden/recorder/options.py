"""The options of a recording, read before TensorFlow is imported, and its folder."""

import argparse
import hashlib
import json
import os
import shutil
import sys
from typing import Any

import numpy as np

from estimator2strategy.engine.command_line import Parser, positive

FORMAT = "estimator2strategy golden"
VERSION = 1


class RecordError(Exception):
    """Recording cannot be done; the message says why, and what to do."""


PARTS = ("train", "evaluate", "predict", "export")


class NoBatchError(RecordError):
    """There is no batch to record a mode with: the input is empty, or the golden has none."""


# Arrays in .npz files, without pickle: strings and bfloat16 get a form of their own.


def packed(name: Any, array: Any) -> Any:
    """Name -> array, of dtypes that every numpy can read."""
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        flat = [v if isinstance(v, bytes) else str(v).encode("utf-8") for v in array.ravel()]
        lengths = np.array([len(v) for v in flat], np.int64).reshape(array.shape)
        return {
            name + "|bytes": np.frombuffer(b"".join(flat), np.uint8),
            name + "|lengths": lengths,
        }
    if array.dtype.name == "bfloat16":
        return {name + "|bfloat16": array.view(np.uint16)}
    return {name: array}


def unpacked(arrays: Any, name: Any) -> Any:
    """The array that `packed` took apart; strings are an object array of bytes.

    Raises:
        KeyError: There is none of that name.
    """
    if name + "|bytes" in arrays:
        data, lengths = arrays[name + "|bytes"].tobytes(), arrays[name + "|lengths"]
        ends = np.cumsum(lengths.ravel())
        objects = np.empty(lengths.size, object)
        objects[:] = [data[end - n : end] for end, n in zip(ends, lengths.ravel())]
        return objects.reshape(lengths.shape)
    if name + "|bfloat16" in arrays:
        bits = arrays[name + "|bfloat16"].astype(np.uint32) << 16
        return bits.view(np.float32)
    return arrays[name]


class Golden:
    """A golden that was written: its JSON as `about`, and the arrays."""

    def __init__(self, folder: Any):
        self.folder = folder
        with open(os.path.join(folder, "golden.json"), encoding="utf-8") as file:
            self.about = json.load(file)
        self._batches = np.load(os.path.join(folder, "batches.npz"), allow_pickle=False)
        self._results = np.load(os.path.join(folder, "results.npz"), allow_pickle=False)

    def batches(self, mode: Any) -> Any:
        """The batches of a mode, each a list of arrays; None where none were recorded."""
        about = self.about["batches"].get(mode)
        if about is None:
            return None
        leaves = range(len(about["leaves"]))
        name = "{}/{}/{}".format
        return [
            [unpacked(self._batches, name(mode, i, j)) for j in leaves]
            for i in range(about["count"])
        ]

    def result(self, name: Any) -> Any:
        """An array of results.npz."""
        return unpacked(self._results, name)

    def results(self, prefix: Any) -> Any:
        """The results whose name starts with `prefix`: rest of the name -> array."""
        names = {name.partition("|")[0] for name in self._results.files}
        return {n[len(prefix) :]: self.result(n) for n in sorted(names) if n.startswith(prefix)}

    def all_results(self) -> Any:
        """Name -> array, of all results."""
        return self.results("")

    def checkpoint(self, which: Any) -> Any:
        """Prefix of the checkpoint at the `first` or the `last` step."""
        return os.path.join(self.folder, "checkpoints", self.about["checkpoints"][which])


def copy_checkpoint(path: Any, folder: Any, name: Any) -> Any:
    """Copies the files of a name-based checkpoint; returns the prefix of the copy."""
    there, prefix = os.path.split(path)
    for file in sorted(os.listdir(there or ".")):
        base, dot, ending = file.rpartition(".")
        if base == prefix and ending.startswith(("index", "data-")):
            shutil.copyfile(os.path.join(there, file), os.path.join(folder, name + dot + ending))
    return os.path.join(folder, name)


def files_of(folder: Any) -> Any:
    """The files of a golden, but for golden.json."""
    files = [
        os.path.relpath(os.path.join(parent, name), folder).replace(os.sep, "/")
        for parent, _, names in os.walk(folder)
        for name in names
    ]
    return sorted(set(files) - {"golden.json"})


def sha256(path: Any) -> Any:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


def say(message: Any) -> None:
    sys.stderr.write(f"e2s record: {message}\n")


_EXAMPLE = """\
examples:
  {prog} --out golden --program train.py --data_dir=/data --batch_size=16
  {prog} --out golden --program -m trainer.task --batch_size=16
  {prog} --out golden trainer.model:model_fn --input trainer.data:input_fn --batch-size 16

The program runs as ever, with its own flags, and stops once it is recorded. `e2s record --print`
prints the one file that does this under TensorFlow 1.13 to 2.15; `e2s verify golden` replays.
"""


def add_source(parser: Any) -> None:
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


def add_parts(parser: Any, verb: Any) -> None:
    """The option that chooses parts; training is what all others need."""
    parser.add_argument(
        "--part",
        action="append",
        choices=PARTS[1:],
        help=f"{verb} only this, beside training; may be repeated; by default all",
    )


def parts_of(options: Any) -> Any:
    """The parts that were asked for."""
    return PARTS[:1] + tuple(options.part or PARTS[1:])


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        said = f"{text!r} is not JSON, as '{{\"hidden\": 64}}' is"
        raise argparse.ArgumentTypeError(said) from None


def source_of(options: Any) -> Any:
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


def record_parser(prog: Any) -> Any:
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
