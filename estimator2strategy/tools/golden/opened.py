"""Opens a golden that anybody may have made: it is checked whole before anything is done with it.

Nothing outside of its folder is read, nothing in it is unpickled, and no archive may become much
larger than it is.

The forms of the values in golden.json are a table; the first value of another form is named.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from estimator2strategy.engine import quiet_import
from estimator2strategy.tools.golden.recorder.options import (
    FORMAT,
    VERSION,
    Golden,
    RecordError,
    files_of,
    sha256,
)
from estimator2strategy.tools.untrusted.archives import check_is_no_bomb
from estimator2strategy.tools.untrusted.printable import printable, printable_lines
from estimator2strategy.tools.untrusted.regular_files import irregular, read_bytes

_NAME = re.compile(r"[\w.+-]*\w[\w.+-]*")  # of a file: in the folder, and in no other
_MOST = 10**9


class _Form(NamedTuple):
    """A kind of value.

    Attributes:
        said: Its name in messages.
        fits: True of a value of that kind.
    """

    said: str
    fits: Any


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_shape(value: Any) -> bool:
    sizes = value if isinstance(value, list) else ()
    return value is None or (
        isinstance(value, list)
        and all(size is None or size == -1 or _is_count(size) for size in sizes)
    )


_TEXT = _Form("a text", lambda value: isinstance(value, str))
_COUNT = _Form("a count", _is_count)
_SHAPE = _Form("a shape", _is_shape)
_FILE = _Form(
    "the name of a file in its folder",
    lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)) and ".." not in value,
)
_ANY = _Form("anything", lambda value: True)
_OBJECT = _Form("an object", lambda value: isinstance(value, dict))
_TENSORS = {str: {"dtype": _TEXT, "shape": _SHAPE}}
# A key with "?" may be missing; `str` is any key.
_ABOUT = {
    "sha256": {str: _TEXT},
    "source": _OBJECT,
    "checkpoints": {"first": _FILE, "last": _FILE},
    "batches": {
        "train": _OBJECT,
        str: {"count": _COUNT, "leaves": [{"dtype": _TEXT, "shape": _SHAPE}], "structure": _OBJECT},
    },
    "train": {
        "steps": _COUNT,
        "global_steps": [_COUNT],
        "variables": [{"name": _TEXT, "shape": _SHAPE, "dtype": _TEXT}],
        "gradients": [_TEXT],
        "draws": [{"kind": _TEXT, "shape": _ANY}],
        "uncontrolled": [_TEXT],
        "race?": {"step": _COUNT, "variables": [_TEXT]},
    },
    "evaluate?": {"metrics": [_TEXT]},
    "predict?": {"keys": [_TEXT]},
    "export?": {"signatures": {str: {"method": _TEXT, "inputs": _TENSORS, "outputs": _TENSORS}}},
    "notes?": [_TEXT],
    "versions?": {str: _TEXT},
}
# Ways to name a source, of which one has `program`.
_SOURCE = {
    "program?": [_TEXT],
    "cwd?": _TEXT,
    **dict.fromkeys(
        ("model_fn?", "estimator?", "input?", "eval_input?", "predict_input?", "serving?"),
        _Form("a text or null", lambda value: value is None or isinstance(value, str)),
    ),
}


def wrong_form(about: dict[str, Any]) -> str | None:
    """The first value of another form than it must have, and where it is; None: there is none."""
    return _problem("", about, _ABOUT) or _problem("source", about["source"], _SOURCE)


def _problem(where: str, value: Any, form: Any) -> str | None:
    if isinstance(form, _Form):
        return (
            None if form.fits(value) else f"{where} is {_shown(value)}, and should be {form.said}"
        )
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is {_shown(value)}, and should be a list"
        problems = (_problem(f"{where}[{i}]", part, form[0]) for i, part in enumerate(value))
        return next(filter(None, problems), None)
    if not isinstance(value, dict):
        return f"{where} is {_shown(value)}, and should be an object"
    for key, inner in form.items():
        if key is str:
            problems = (
                _problem(f"{where}.{name}".strip("."), v, inner) for name, v in value.items()
            )
            wrong = next(filter(None, problems), None)
        elif key.rstrip("?") in value:
            name = key.rstrip("?")
            wrong = _problem(f"{where}.{name}".strip("."), value[name], inner)
        else:
            wrong = None if key.endswith("?") else f"{f'{where}.{key}'.strip('.')} is missing"
        if wrong:
            return wrong
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."


_BRANCHES = {"dict", "list", "tuple", "sparse", "ragged", "namedtuple"}


def fits_structure(tree: Any, leaves: int, depth: int = 0) -> bool:
    """True of a tree that `structures.rebuilt` takes, with so many leaves."""
    if not isinstance(tree, dict) or depth > 50:
        return False
    kind = tree.get("kind")
    if kind == "none":
        return True
    if kind == "leaf":
        return _is_count(tree.get("index")) and tree["index"] < leaves
    parts = tree.get("parts")
    if kind not in _BRANCHES or not isinstance(parts, list):
        return False
    if kind in ("dict", "namedtuple"):
        keys = tree.get("keys")
        if not isinstance(keys, list) or len(keys) != len(parts):
            return False
        if not all(isinstance(key, str) for key in keys):
            return False
    if kind == "namedtuple" and not isinstance(tree.get("type"), str):
        return False
    if (kind == "sparse" and len(parts) != 3) or (kind == "ragged" and len(parts) < 2):
        return False
    return all(fits_structure(part, leaves, depth + 1) for part in parts)


_MOST_JSON = 200_000_000
_LARGEST_FILE = 1 << 62
_PART = re.compile(r"\|(bytes|lengths|bfloat16)$")


def read(folder: str, before_tensorflow: Callable[[], object] = bool) -> Golden:
    """The golden in a folder.

    Args:
        folder: The folder.
        before_tensorflow: Is called when all else has been checked, and checkpoints are read next,
            for which TensorFlow is imported.

    Raises:
        RecordError: It is none, or not as it was written; says what is wrong.
    """
    if not os.path.lexists(folder):
        raise RecordError(f"there is no folder {printable(folder)}")
    if not os.path.lexists(os.path.join(folder, "golden.json")):
        raise RecordError(f"{printable(folder)} is no golden: it has no golden.json")
    try:
        _check_files(folder)
        about = json.loads(read_bytes(os.path.join(folder, "golden.json"), _MOST_JSON))
        _check_about(about)
        _check_unchanged(folder, about["sha256"])
        for name in ("batches.npz", "results.npz"):
            _check_arrays(os.path.join(folder, name))
        golden = Golden(folder)
        _check_batches(golden)
        _check_results(golden)
        before_tensorflow()
        _check_checkpoints(golden)
    except _WrongError as wrong:
        raise RecordError(f"{printable(folder)}: {wrong}") from None
    except Exception as error:  # readers of formats raise errors of many kinds
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        said = printable_lines(said)[:500]
        raise RecordError(f"{printable(folder)} cannot be read ({said})") from error
    return golden


class _WrongError(Exception):
    """A sentence about a golden that is not as it was written, without its name."""


def _check_files(folder: str) -> None:
    """Refuses all but plain files and folders: the recorder writes no links."""

    def fail(error: OSError) -> None:
        raise _WrongError(f"{printable(str(error.filename))} cannot be read ({error.strerror})")

    for at, folders, names in os.walk(folder, onerror=fail):
        for name in (*folders, *names):
            path = os.path.join(at, name)
            status = os.lstat(path)
            shown = printable(os.path.relpath(path, folder))
            if os.path.islink(path):
                raise _WrongError(f"{shown} is a link; a golden has none")
            problem = irregular(path, status, _LARGEST_FILE)
            if problem and not stat.S_ISDIR(status.st_mode):
                raise _WrongError(f"{shown} is {problem}; a golden has none")


def _check_about(about: Any) -> None:
    if not isinstance(about, dict):
        raise _WrongError("golden.json is no object of JSON")
    form = about.get("format"), about.get("version")
    if form != (FORMAT, VERSION):
        raise _WrongError(
            f"it is of format {form[0]!r}, version {form[1]}; this reads {FORMAT!r}, "
            f"version {VERSION}"
        )
    if wrong := wrong_form(about):
        raise _WrongError(f"golden.json is not as it was written: {printable(wrong)[:500]}")


def _check_unchanged(folder: str, written: dict[str, str]) -> None:
    there = set(files_of(folder))
    changed = [
        name
        for name in sorted(written)
        if name not in there or sha256(os.path.join(folder, name)) != written[name]
    ]
    if changed:
        names = ", ".join(map(printable, changed))
        raise _WrongError(f"{names} changed after the recording, or is gone")


def _check_arrays(path: str) -> None:
    """Reads the heads of the arrays of an .npz: no objects, and as many bytes as they say."""
    where = os.path.basename(path)
    with zipfile.ZipFile(path) as archive:
        check_is_no_bomb(archive, path)
        for part in archive.infolist():
            with archive.open(part) as file:
                version = np.lib.format.read_magic(file)
                read_head = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
                shape, _, dtype = read_head(file)
                name = f"{printable(part.filename)} of {where}"
                if dtype.hasobject:
                    raise _WrongError(f"{name} has pickled objects, which are not read")
                size = math.prod(shape) * dtype.itemsize
                if size != part.file_size - file.tell():
                    raise _WrongError(f"{name} says that it has {size:,} bytes, and has others")


def _check_batches(golden: Golden) -> None:
    for mode, about in golden.about["batches"].items():
        leaves = about["leaves"]
        if not fits_structure(about["structure"], len(leaves)):
            raise _WrongError(f"the structure of the batches for {printable(mode)} is none")
        for i in range(about["count"]):
            for j, leaf in enumerate(leaves):
                name = f"{mode}/{i}/{j}"
                array = _array(golden._batches, name)
                _check_shape(name, array.shape, leaf["shape"])
                _check_dtype(name, array, leaf["dtype"])


def _check_results(golden: Golden) -> None:
    train = golden.about["train"]
    steps, variables, gradients = train["steps"], len(train["variables"]), len(train["gradients"])
    expected = {
        "losses": [steps],
        "gradients": [steps, gradients, 3],
        "values": [steps + 1, variables, 3],
        "updates": [steps, variables, 3],
    }
    for name in _names(golden._results):
        array = _array(golden._results, name)
        if array.dtype.kind not in "biufO":
            raise _WrongError(
                f"{printable(name)} of results.npz has numbers of dtype {array.dtype}"
            )
    for name, shape in expected.items():
        array = _array(golden._results, f"train/{name}")
        if array.dtype.kind != "f":
            raise _WrongError(f"train/{name} of results.npz has no floating-point numbers")
        if array.size or math.prod(shape):
            _check_shape(f"train/{name}", array.shape, shape)
    if "race" in train:
        again = _array(golden._results, "train/again")
        runs = again.shape[0] if again.ndim else 0
        _check_shape("train/again", again.shape, [runs, variables, 3])
        if not runs or again.dtype.kind != "f" or train["race"]["step"] >= steps:
            raise _WrongError("train/again of results.npz is not of a step that ran again")
    if "evaluate" in golden.about:
        _array(golden._results, "evaluate/losses")


def _names(arrays: Any) -> Iterator[str]:
    return iter(sorted({_PART.sub("", name) for name in arrays.files}))


def _array(arrays: Any, name: str) -> np.ndarray:
    """An array, as `unpacked` gives it; strings as objects."""
    lengths, kinds = f"{name}|lengths", set(arrays.files)
    if f"{name}|bytes" in kinds:
        if lengths not in kinds:
            raise _WrongError(f"{printable(name)} has bytes, and no lengths of its strings")
        stored, data = arrays[lengths], arrays[f"{name}|bytes"]
        if stored.dtype.kind != "i" or (stored < 0).any() or stored.sum() != data.nbytes:
            raise _WrongError(f"{printable(name)} has lengths of strings that do not fit its bytes")
        return np.empty(stored.shape, object)
    if f"{name}|bfloat16" in kinds:
        stored = arrays[f"{name}|bfloat16"]
        if stored.dtype != np.uint16:
            raise _WrongError(f"{printable(name)} is no bfloat16")
        return np.empty(stored.shape, np.float32)
    if name not in kinds:
        raise _WrongError(f"the array {printable(name)} is missing")
    array: np.ndarray = arrays[name]
    return array


def _check_shape(name: str, shape: tuple[int, ...], expected: list[int | None] | None) -> None:
    if expected is not None and (
        len(shape) != len(expected)
        or any(e is not None and e >= 0 and s != e for s, e in zip(shape, expected, strict=True))
    ):
        raise _WrongError(
            f"{printable(name)} has the shape {list(shape)}, and should have {expected}"
        )


def _check_dtype(name: str, array: np.ndarray, expected: str) -> None:
    dtype = array.dtype.name
    here = {"object": "string"}.get(dtype, dtype)
    if here != {"bfloat16": "float32"}.get(expected, expected):
        raise _WrongError(
            f"{printable(name)} is of dtype {dtype}, and should be {printable(expected)}"
        )


def _check_checkpoints(golden: Golden) -> None:
    """Reads all that will be restored; each tensor has a checksum."""
    quiet_import.import_tensorflow()
    import tensorflow as tf

    written = {v["name"]: v for v in golden.about["train"]["variables"]}
    if "global_step" not in written:
        raise _WrongError("it has no variable global_step")
    for which in ("first", "last"):
        path = golden.checkpoint(which)
        name = f"the {which} checkpoint"
        if not os.path.isfile(f"{path}.index"):
            raise _WrongError(f"{name}, {printable(os.path.basename(path))}, is not in it")
        reader = tf.train.load_checkpoint(path)
        dtypes = reader.get_variable_to_dtype_map()
        for tensor, shape in reader.get_variable_to_shape_map().items():
            about = written.get(tensor)
            if about is None:
                continue
            _check_shape(f"{tensor} of {name}", tuple(shape), about["shape"])
            if dtypes[tensor].name != about["dtype"]:
                raise _WrongError(f"{printable(tensor)} of {name} is not of dtype {about['dtype']}")
            reader.get_tensor(tensor)
        gone = sorted(written.keys() - dtypes.keys())
        if gone:
            raise _WrongError(f"{name} has no {', '.join(map(printable, gone[:5]))}")
