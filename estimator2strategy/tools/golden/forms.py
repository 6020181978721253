"""The forms of the values in golden.json, as a table; the first value of another form is named."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

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


def problem(about: dict[str, Any]) -> str | None:
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
