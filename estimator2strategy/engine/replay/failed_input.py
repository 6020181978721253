"""An input that fails midway: the error says what came, the user's line, and what to do.

TensorFlow names the op that takes the next batch, which is not the user's, and no line.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan.edges import known, labels_in
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.user_code import is_user_file, source_line, user_line

# The end of an input is no failure; the others may end by trying again.
NO_FAILURES = (
    tf.errors.OutOfRangeError,
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
OURS = "The Dataset of input_fn failed midway, got: "
# TensorFlow's words before the first failure of a message: the frames of ours that traced the op.
BEFORE = re.compile(
    r"\A(?:\s*Graph execution error:\s*\n)?"
    r"(?:\s*\n|Detected at node .*\n|<stack traces unavailable>\n| +File \".*\n)*"
    r"(?:\d+ root error\(s\) found\.\n)?"
)
# Lines of a message that say nothing of the failure itself.
_AROUND = re.compile(
    r"\s*$|Graph execution error|Detected at node|<stack traces|\s*File \"|\s*\[\["
    r"|\d+ root error"
)
_NUMBERED = re.compile(r"\(\d+\) [A-Z_]+:\s*")
# Ops that take a batch, of the program or of an engine; `x/_2` is what waits for `x`.
_TAKER = re.compile(r"IteratorGetNext[A-Za-z]*(?:_\d+)?$")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')


class _Failure(NamedTuple):
    """A kind of failure.

    Attributes:
        words: A regular expression that finds it in TensorFlow's message.
        makers: The types of the ops of the dataset that fails so begin with one of these.
        instead: The advice, as a sentence.
    """

    words: str
    makers: tuple[str, ...]
    instead: str


_ANY = _Failure("", (), "Look at the functions and files of this Dataset.")


@functools.cache
def _failures() -> list[_Failure]:
    """The kinds of `failed_input.csv`; the first one whose words are found counts."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return [_Failure(r["words"], tuple(r["makers"].split()), r["instead"]) for r in rows]


def is_failed_input(recorded: RecordedGraph, message: str) -> bool:
    """True if an error comes from taking a batch: from the op that takes it, or its Dataset."""
    named = (_TAKER.search(label) or _takes_batch(recorded, label) for label in labels_in(message))
    return any(named) or "[Op:IteratorGetNext" in message


def _takes_batch(recorded: RecordedGraph, label: str) -> bool:
    name = known(label, recorded.position)
    return name is not None and recorded.takes_batch(name)


def named_input_failure(recorded: RecordedGraph, error: Exception) -> Exception:
    """Returns the error of a user's Dataset, with the user's line if that is known."""
    failed: Any = error
    message = str(failed.message)
    failure = next((kind for kind in _failures() if re.search(kind.words, message)), _ANY)
    line = line_in_python(message) or _line_of_maker(recorded, failure.makers)
    if line is None:
        return error
    text = (
        f"{OURS}{_sentence(message)}\n  At {line}\n  {failure.instead}\n"
        f"  TensorFlow's words: {BEFORE.sub('', message)}"
    )
    named: Exception = type(failed)(failed.node_def, failed.op, text)
    return named


def _sentence(message: str) -> str:
    """The line of a message that says what was expected, and what came."""
    said = [line.strip() for line in message.splitlines() if not _AROUND.match(line)]
    return _NUMBERED.sub("", said[0]).rstrip(".") if said else "it gave no batch"


def line_in_python(message: str) -> str | None:
    """The innermost line of the user's own in the traceback of a Python function."""
    _, begins, traceback = message.partition("\nTraceback (most recent call last):")
    frames = [match for match in _FRAME.finditer(traceback) if is_user_file(match["file"])]
    if not begins or not frames:
        return None
    return source_line(frames[-1]["file"], int(frames[-1]["line"]))


def _line_of_maker(recorded: RecordedGraph, makers: tuple[str, ...]) -> str | None:
    """The line that made the last dataset of such a type; without types, the last of all."""
    made = [op for op in recorded.graph.get_operations() if op.type == "MakeIterator"]
    datasets = [make.inputs[0].op for make in made]
    for op in datasets:
        chosen = next((part for part in _parts(op) if part.type.startswith(makers or "")), op)
        line = user_line(chosen.traceback)
        if line != "unknown line":
            return line
    return None


def _parts(op: tf.Operation) -> Iterator[tf.Operation]:
    """A dataset's op, and those of the datasets that it is made of, from the last one on."""
    waiting, seen = [op], set()
    while waiting:
        op = waiting.pop(0)
        if op.name not in seen:
            seen.add(op.name)
            yield op
            waiting += [given.op for given in op.inputs if given.dtype == tf.variant]
