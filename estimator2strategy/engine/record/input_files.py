"""Warns of input files that give other examples than they hold, or than TensorFlow 1.15 read.

TensorFlow says nothing where a file of records is cut inside a header, or a compressed one at such
a place: it ends there. And of a GZIP file of several members TensorFlow 1.15 read the first alone.

Only files that the graph of input_fn names are looked at, and no more than the limits below.
"""

from __future__ import annotations

import concurrent.futures
import functools
import glob
import itertools
import os
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.record import cut_records
from estimator2strategy.engine.record.cut_records import Unpacked, packed_as
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.engine.wrong_argument import calling_line, wrong_argument

# A constant of more strings holds examples, and no names of files.
_MOST_NAMES = 100_000
_MOST_PATTERNS = 100
_LONGEST_NAME = 4096
# Each remote file takes some requests, of which several are under way at a time.
_MOST_REMOTE, _THREADS = 200, 16
# Bytes of all compressed files together: they have to be unpacked, which takes a second or two.
_MOST_PACKED = 1 << 27
# Ops that read the files that are named to them, in Datasets and queues.
_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "CSVDataset")
_FORMATS = frozenset(["GZIP", "ZLIB"])

_WRITE_AGAIN = "Write the file again, or leave it out: the examples behind are missing."
_PACK_AGAIN = "Pack the file again, as one piece."
# What is wrong with a file -> what to do. `{}` is a number of bytes.
_ADVICE = {
    "a TFRecord file that is truncated: its last {} byte(s) are the beginning of a header, "
    "expected 12. It ends there as if it were whole": _WRITE_AGAIN,
    "a compressed file that is truncated: it ends in the middle of its data": _WRITE_AGAIN,
    "a GZIP file of several members. TensorFlow 1.15 read the first alone; all are read now, "
    "which gives more examples": _PACK_AGAIN + " To repeat an old run, keep the first member.",
    "a ZLIB file of several streams. TensorFlow reads the first alone": _PACK_AGAIN,
    "a GZIP file with other bytes behind its data. TensorFlow 1.15 ended there; it is an error "
    "now": _PACK_AGAIN,
}
_CUT_RECORDS, _CUT_PACKED, _MEMBERS, _STREAMS, _OTHER_BYTES = _ADVICE
_BEHIND = {"GZIP": _MEMBERS, "ZLIB": _STREAMS, "?": _OTHER_BYTES}


class _File(NamedTuple):
    """A file, as it was when somebody looked."""

    path: str
    size: int
    modified: int
    packed_as: str


class _Finding(NamedTuple):
    what: str
    cut_bytes: int = 0


def warn_of_input_files(graph: tf.Graph) -> None:
    """Warns of the files that an input reads, and that give other examples than they seem to.

    Args:
        graph: That of input_fn, which has been called.
    """
    if not any("Dataset" in op.type or "Reader" in op.type for op in graph.get_operations()):
        return
    named = dict(_named_files(graph))
    if not named:
        return
    has_readers, formats = _reading(graph.as_graph_def())
    paths = [path for path in named if has_readers or not _is_remote(path)]
    told: Counter[str] = Counter()
    for path, finding in _findings(paths, formats):
        told[finding.what] += 1
        # All files of a folder are packed alike: one line for them is enough.
        if finding.what not in _BEHIND.values() or told[finding.what] == 1:
            _warn("input_fn", path, finding, user_line(named[path].traceback))


def warn_of_file(reader: str, path: str, formats: frozenset[str] = _FORMATS) -> None:
    """Warns of one file as `warn_of_input_files` does.

    Args:
        reader: The function that reads it, for the message.
    """
    for _, finding in _findings([path], formats):
        _warn(reader, path, finding, calling_line())


def _warn(reader: str, path: str, finding: _Finding, at: str) -> None:
    what = f"{reader} reads {finding.what.format(finding.cut_bytes)}"
    tf.compat.v1.logging.warn(str(wrong_argument(what, path, _ADVICE[finding.what], at=at)))


def _named_files(graph: tf.Graph) -> Iterator[tuple[str, tf.Operation]]:
    """Each file that a string constant names, as a path or a pattern, and the constant."""
    remote = 0
    for op in graph.get_operations():
        if op.type != "Const" or op.outputs[0].dtype != tf.string:
            continue
        if (op.outputs[0].shape.num_elements() or 0) > _MOST_NAMES:
            continue
        names = tf.make_ndarray(op.get_attr("value")).ravel()
        for name in names:
            name = os.fsdecode(name)
            remote += _is_remote(name)
            if remote <= _MOST_REMOTE or not _is_remote(name):
                for path in _found(name, len(names) <= _MOST_PATTERNS):
                    yield path, op


def _found(name: str, may_be_pattern: bool) -> list[str]:
    if not name or len(name) > _LONGEST_NAME or "\0" in name:
        return []
    is_pattern = may_be_pattern and any(sign in name for sign in "*?[")
    if _is_remote(name):
        try:
            return tf.io.gfile.glob(name)[:_MOST_REMOTE] if is_pattern else [name]
        except tf.errors.OpError:
            return []  # the input itself will say so
    paths = glob.glob(name) if is_pattern else [name]
    return [path for path in paths if os.path.isfile(path)]


def _is_remote(path: str) -> bool:
    return "://" in path


def _reading(graph_def: tf.compat.v1.GraphDef) -> tuple[bool, frozenset[str]]:
    """Returns if a graph has ops that read files, and the formats of compression that it names."""
    has_readers = False
    formats: set[str] = set()
    inner = (function.node_def for function in graph_def.library.function)
    for node in itertools.chain(graph_def.node, *inner):
        has_readers |= node.op.startswith(_READERS)
        texts = [node.attr[key].s for key in ("compression_type", "encoding") if key in node.attr]
        if node.op == "Const":
            texts.extend(node.attr["value"].tensor.string_val)
        formats.update(text.decode() for text in texts if text in (b"GZIP", b"ZLIB"))
    return has_readers, frozenset(formats)


def _findings(paths: list[str], formats: frozenset[str]) -> Iterator[tuple[str, _Finding]]:
    """The problems of files, in their order."""
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        # Local files are done by one thread: they wait for nothing.
        threaded = pool.map if any(map(_is_remote, paths)) else map
        files = [file for file in threaded(_stated, paths) if file]
        # A file that is not said to be compressed is read as it is.
        files = [f if f.packed_as in formats else f._replace(packed_as="") for f in files]
        sizes = (file.size if file.packed_as else 0 for file in files)
        left = itertools.accumulate(
            sizes, lambda left, size: max(0, left - size), initial=_MOST_PACKED
        )
        for file, findings in zip(files, threaded(_look, files, left), strict=True):
            yield from ((file.path, finding) for finding in findings)


def _stated(path: str) -> _File | None:
    """The file, if there is one; the input itself tells what cannot be read."""
    try:
        if _is_remote(path):
            stat = tf.io.gfile.stat(path)
            size, modified = stat.length, stat.mtime_nsec
        else:
            size, modified = os.path.getsize(path), os.stat(path).st_mtime_ns
        with _open(path) as file:
            head = file.read(cut_records.HEADER)
    except (OSError, tf.errors.OpError):
        return None
    return _File(path, size, modified, "" if cut_records.is_header(head) else packed_as(head))


def _open(path: str) -> Any:
    return tf.io.gfile.GFile(path, "rb") if _is_remote(path) else open(path, "rb")


@functools.cache
def _look(file: _File, most: int) -> tuple[_Finding, ...]:
    """The problem of a file; `most` bytes of a compressed one are read."""
    try:
        with _open(file.path) as opened:
            if not file.packed_as:
                cut = cut_records.cut_bytes(opened, file.size)
                return (_Finding(_CUT_RECORDS, cut),) if cut else ()
            data, tail = Unpacked(opened, file.packed_as, most), cut_records.Tail()
            while some := data.read_some():
                tail.add(some)
        return tuple(_findings_in_packed(file, most, data, tail))
    except (OSError, tf.errors.OpError, zlib.error, struct.error):
        return ()


def _findings_in_packed(
    file: _File, most: int, data: Unpacked, tail: cut_records.Tail
) -> Iterator[_Finding]:
    if data.behind:
        yield _Finding(_BEHIND[data.behind])
    if data.cut:
        yield _Finding(_CUT_PACKED)
    elif data.whole and tail.may_be_cut():
        with _open(file.path) as opened:
            cut = cut_records.walk(Unpacked(opened, file.packed_as, most), tail.size)
        if cut:
            yield _Finding(_CUT_RECORDS, cut)
