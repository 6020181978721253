"""Mutants: what is left of a file after an accident, or after somebody with bad intentions.

Each function takes a `random.Random` and the whole thing, and returns a mutant of it.
"""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Lines and pieces that have broken readers of source, or of logs.
_PIECES = (
    "# coding: undefined",
    "# coding: punycode",
    "# coding: rot13",
    "# coding: idna",
    "# coding: utf-16",
    "# coding: unicode_escape",
    "# -*- coding: latin-1 -*-",
    "# coding: zlib",
    "\ufeff",
    "\x00",
    "\x0c",
    "\x1b[2J",
    "\u202e",
    "\u2028",
    "\r",
    "\\\n",
    "'''",
    '"""',
    "\t",
    "(" * 250,
    "-" * 9_000 + "1",
    "a" + ".b" * 3_000,
    "+".join("1" * 4_000),
    "lambda: " * 500,
    "[" * 90 + "]" * 90,
    "::error file=x::pwned",
    "##vso[task.complete result=Failed]",
    "f'{x!r:{y}}'",
    "match x:\n  case _: pass",
    "from . import *",
    "from tensorflow import *",
    "import tensorflow as tf",
    "tf = tf.tf",
    "tf: tf = tf",
    "class tf(tf.x): pass",
    "def tf(tf=tf): return tf",
    "del tf",
    "global tf",
    "nonlocal x",
    "async def f(): await tf.x",
    "@tf.x",
    "print 'x'",
    "0777",
    "x = (yield)",
    "# e2s: ignore[",
    "# e2s: ignore[E2S201]",
    "# TODO(e2s): imports: x",
    "import tensorflow.contrib as c; c.x(*c, **c)",
    "tf.contrib." + "x" * 5_000,
    "try: import tensorflow as tf\nexcept: tf = None",
    "\U000e0041",
    "\udc80",
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../../etc/passwd",
    "/etc/passwd",
    "\x00",
    "\udc80",
    "\u202e",
    "a\n::error::x",
    "x" * 10_000,
    [],
    {},
    [[]],
    [None],
    {"x": None},
    [1, "x"],
    ["../x"],
    "int64",
    "resource",
)


def text(random: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A mutant of source: of its bytes, its words or its lines."""
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        data = random.choice(
            (_bytes_flipped, _part_cut, _part_twice, _lines_mixed, _words_mixed, _piece_put_in)
        )(random, data)
        if others and random.random() < 0.15:
            data = _spliced(random, data, random.choice(others))
    return data


def binary(random: random.Random, data: bytes) -> bytes:
    """A mutant of bytes."""
    for _ in range(random.choice((1, 1, 2, 8))):
        data = random.choice(
            (_bytes_flipped, _bytes_flipped, _part_cut, _part_twice, _truncated, _noise)
        )(random, data)
    return data


def document(random: random.Random, data: bytes) -> bytes:
    """A mutant of JSON: one of its values, or of its keys, is another; or of its bytes."""
    if random.random() < 0.2:
        return binary(random, data)
    try:
        whole = json.loads(data)
    except ValueError:  # it is a mutant already
        return binary(random, data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        whole = _with_another_value(random, whole)
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def arrays(random: random.Random, data: bytes) -> bytes:
    """A mutant of an .npz: of an array in it, of its form, or of its bytes."""
    if random.random() < 0.3:
        return binary(random, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # it is a mutant already
        return binary(random, data)
    if not parts:
        return data
    for _ in range(random.choice((1, 1, 3))):
        name = random.choice(sorted(parts))
        random.choice(_OF_ARRAYS)(random, parts, name)
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


# Of bytes.


def _bytes_flipped(random: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(min(len(found), random.choice((1, 2, 16)))):
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found)


def _span(random: random.Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 4, 30, 400)))


def _part_cut(random: random.Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _part_twice(random: random.Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[start:end] * random.choice((2, 2, 3, 50)) + data[end:]


def _truncated(random: random.Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _noise(random: random.Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + random.randbytes(end - start) + data[end:]


def _spliced(random: random.Random, data: bytes, other: bytes) -> bytes:
    start, (first, last) = random.randrange(len(data) + 1), _span(random, other)
    return data[:start] + other[first:last] + data[start:]


def _lines_mixed(random: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    lines[i], lines[j] = (
        lines[j],
        random.choice((lines[i], b" " + lines[i], b"    " + lines[i], lines[i].lstrip())),
    )
    return b"\n".join(lines)


def _words_mixed(random: random.Random, data: bytes) -> bytes:
    words = data.split(b" ")
    i, j = random.randrange(len(words)), random.randrange(len(words))
    words[i] = random.choice(
        (words[j], b"", b"(", b")", b"=", b"*", b"lambda", b"tf.contrib.x", b"[", b":", b"in")
    )
    return b" ".join(words)


def _piece_put_in(random: random.Random, data: bytes) -> bytes:
    piece = random.choice(_PIECES).encode("utf-8", "surrogateescape")
    if random.random() < 0.3:
        return piece + b"\n" + data
    lines = data.split(b"\n")
    i = random.randrange(len(lines))
    line = lines[i]
    indent = line[: len(line) - len(line.lstrip())]
    lines[i:i] = [indent + piece]
    return b"\n".join(lines)


# Of JSON.


def _with_another_value(random: random.Random, whole: Any) -> Any:
    """The document with another value at one place; places high up are as likely as deep ones."""
    node, path = whole, []
    while isinstance(node, (dict, list)) and node and random.random() < 0.8:
        key = random.choice(sorted(node)) if isinstance(node, dict) else random.randrange(len(node))
        path.append(key)
        node = node[key]
    if not path:
        return _value(random) if random.random() < 0.1 else whole
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    deed = random.random()
    if deed < 0.25:
        del holder[last]
    elif deed < 0.35 and isinstance(holder, dict):
        holder[str(random.choice(_VALUES))] = holder.pop(last)
    elif deed < 0.45 and isinstance(holder, list):
        holder.append(copy.deepcopy(random.choice(holder)))
    else:
        holder[last] = _value(random)
    return whole


def _value(random: random.Random) -> Any:
    """A copy, which the next mutation may change: a document that holds itself is no JSON."""
    return copy.deepcopy(random.choice(_VALUES))


# Of arrays.


def _another_array(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: np.float32("nan"),
        lambda: np.zeros([0]),
        lambda: np.full([3, 5], np.inf),
        lambda: np.array(["x", "yy"]),
        lambda: np.array([b"x"]),
        lambda: np.array([None, {}], object),
        lambda: np.zeros([2, 2], [("a", "i4")]),
        lambda: np.zeros([1] * 20),
        lambda: np.array([-1, 2**62]),
        lambda: np.array(1 + 2j),
        lambda: np.zeros([1000, 1000]),
        lambda: np.datetime64("2020"),
    )
    out = io.BytesIO()
    np.save(out, np.asarray(random.choice(makers)()), allow_pickle=True)
    parts[name] = out.getvalue()


def _another_header(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    descr = random.choice(("<f4", "|O", "<U1000000000", "<f8", "x", "|V8", "<M8[s]"))
    shape = random.choice(((10**15,), (2**40, 2**40), (-1,), (3,), (), (0, 10**9), "x"))
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}}}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    parts[name] = (
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + parts[name][128:]
    )


def _other_bytes(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    parts[name] = binary(random, parts[name])


def _gone(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    del parts[name]
    parts.setdefault("x.npy", b"")


def _other_name(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    new = random.choice(
        ("../x.npy", "/tmp/x.npy", name + "/x", name.replace(".npy", "|bytes.npy"), "\x01.npy")
    )
    parts[new] = parts.pop(name)


def _exchanged(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    other = random.choice(sorted(parts))
    parts[name], parts[other] = parts[other], parts[name]


def _bomb(random: random.Random, parts: dict[str, bytes], name: str) -> None:
    parts[name] = parts[name] + bytes(1 << 26)


_OF_ARRAYS = (
    _another_array,
    _another_array,
    _another_header,
    _other_bytes,
    _gone,
    _other_name,
    _exchanged,
    _bomb,
)
