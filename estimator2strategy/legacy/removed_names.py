"""Names that Python, NumPy and others have dropped since TensorFlow 1.15, for legacy modules.

TensorFlow 1.15 ran on Python 2.7 to 3.7 with NumPy 1.x. A legacy module that imports one of the
modules in `_DROPPED` gets a copy of it, with the dropped names added.
"""

from __future__ import annotations

import collections.abc
import csv
import functools
import importlib
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


class ArgSpec(collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])):
    """The result of `inspect.getargspec` until Python 3.10."""


def _getargspec(function: Callable[..., Any]) -> ArgSpec:
    spec = inspect.getfullargspec(function)
    if spec.kwonlyargs or spec.annotations:
        raise ValueError(
            "Function has keyword-only parameters or annotations, use inspect.signature()"
        )
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def _fromstring(
    string: Any, dtype: Any = float, count: int = -1, sep: str = "", **more: Any
) -> Any:
    import numpy as np

    if sep:
        return np.fromstring(string, dtype, count, sep=sep, **more)
    data = string.encode("latin1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


def _ragged(name: str) -> Callable[..., Any]:
    """A NumPy function that makes objects of rows of different lengths, as until NumPy 1.23."""

    def made(value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        # A copy only where it cannot be avoided; for that NumPy 2 says None.
        if kwargs.get("copy") is False and np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            kwargs["copy"] = None
        try:
            return getattr(np, name)(value, dtype, *args, **kwargs)
        except ValueError as error:
            if dtype is not None or "inhomogeneous" not in str(error):
                raise
            return getattr(np, name)(value, object, *args, **kwargs)

    made.__name__ = name
    return made


def _asscalar(array: Any) -> Any:
    return array.item()


def _asfarray(a: Any, dtype: Any = float) -> Any:
    import numpy as np

    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else float)


def _reshape(a: Any, newshape: Any, order: Any = "C") -> Any:
    import numpy as np

    return np.reshape(a, newshape, order)


def _of_order(name: str) -> Callable[..., Any]:
    """A quantile function of NumPy, whose `method` was called `interpolation` until NumPy 1.22."""

    def quantile(*args: Any, **kwargs: Any) -> Any:
        import numpy as np

        if "interpolation" in kwargs and "method" not in kwargs:
            kwargs["method"] = kwargs.pop("interpolation")
        return getattr(np, name)(*args, **kwargs)

    quantile.__name__ = name
    return quantile


class _Cast(dict[str, Any]):
    """`np.cast[np.float32](values)`."""

    def __missing__(self, dtype: Any) -> Callable[..., Any]:
        import numpy as np

        return lambda values: np.asarray(values, dtype)


# Names of NumPy that are still there, but no longer for what they were used for then.
_CHANGED = {
    "fromstring": _fromstring,
    "reshape": _reshape,
    **{name: _ragged(name) for name in ("array", "asarray")},
    **{n: _of_order(n) for n in ("nanpercentile", "nanquantile", "percentile", "quantile")},
}
CHANGED = {("numpy", name) for name in _CHANGED}
# Module -> dropped name -> the thing itself, or one that does what it did.
_MADE: dict[str, dict[str, Any]] = {
    "collections": {
        name: f"collections.abc:{name}" for name in collections.abc.__all__ if name != "Buffer"
    },
    "inspect": {"getargspec": _getargspec},
    "numpy": {
        **{kind.__name__: kind for kind in (bool, complex, float, int, object, str)},
        "long": int,
        "unicode": str,
        "NINF": -math.inf,
        "asfarray": _asfarray,
        "asscalar": _asscalar,
        "cast": _Cast(),
        **_CHANGED,
    },
}


def _dropped() -> dict[str, dict[str, Any]]:
    """Module -> dropped name -> "module:name" of what it is today, or the thing itself."""
    names = {module: dict(values) for module, values in _MADE.items()}
    with open(Path(__file__).with_suffix(".csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names.setdefault(row["module"], {})[row["name"]] = row["today"]
    return names


_DROPPED = _dropped()

# Today's spelling of names that only legacy modules still get.
_OWN = {
    ("inspect", "getargspec"): "inspect.getfullargspec",
    ("numpy", "NINF"): "-math.inf",
    ("numpy", "asfarray"): "numpy.asarray(values, dtype=float)",
    ("numpy", "asscalar"): "array.item()",
    ("numpy", "cast"): "numpy.asarray(values, dtype)",
}

# Modules that packages have moved or dropped -> the module that has their names today.
_MOVED = {
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg",
    "scipy.sparse.linalg.eigen.arpack.arpack": "scipy.sparse.linalg",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.grid_search": "sklearn.model_selection",
}

# Modules that Python itself has dropped -> what to do.
_MODULES = {
    "distutils": "Python 3.12 dropped it, and setuptools brings it back: pip install setuptools",
    "imp": "Python 3.12 dropped it: importlib has what it did. Python 3.11 still has both.",
}


def moved(name: str) -> ModuleType | None:
    """The module that has today what `name` had, if it is one that moved and can be imported."""
    today = _MOVED.get(name)
    try:
        return importlib.import_module(today) if today else None
    except ModuleNotFoundError:
        return None


def explain(error: ModuleNotFoundError) -> None:
    """Adds to the error what to do about a module that Python has dropped."""
    advice = _MODULES.get(str(error.name).partition(".")[0])
    if advice:
        error.msg = f"{error.msg}. {advice}"


def print_numbers_plainly() -> None:
    """Shows a number of NumPy as 0.5, as NumPy 1 did, and not as np.float32(0.5).

    Programs print the metrics of an evaluation, and read such text again. An array may still be
    printed as the program wants it.
    """
    import numpy as np

    np.set_printoptions(legacy="1.21")


def covers(name: str) -> bool:
    """True if legacy modules get a copy of this module."""
    return name in _DROPPED


def todays(name: str) -> str | None:
    """Returns today's name for a dropped one ("numpy.float"); None if legacy modules get none."""
    home, _, last = name.rpartition(".")
    if name in _MOVED or home in _MOVED:
        return _MOVED.get(name) or f"{_MOVED[home]}.{last}"
    dropped = _DROPPED.get(home, {})
    if last not in dropped or (home, last) in CHANGED:
        return None
    today = dropped[last]
    if (home, last) in _OWN:
        return _OWN[home, last]
    if isinstance(today, str):
        return today.replace(":", ".").removesuffix(".")
    return getattr(today, "__name__", last)


def is_renamed(name: str) -> bool:
    """True if today's name stands for the very thing; False if another call does the same."""
    home, _, last = name.rpartition(".")
    return todays(name) is not None and (home, last) not in _OWN


@functools.cache
def module(name: str) -> ModuleType:
    """A copy of a module, with the names that it lost."""
    genuine = importlib.import_module(name)
    copy = ModuleType(name, genuine.__doc__)
    copy.__dict__.update(vars(genuine))
    copy.__dict__["__getattr__"] = lambda attribute: getattr(genuine, attribute)
    for lost, today in _DROPPED[name].items():
        if lost in vars(genuine) and (name, lost) not in CHANGED:
            continue
        value = today
        if isinstance(today, str):
            home, _, attribute = today.partition(":")
            value = importlib.import_module(home)
            value = getattr(value, attribute, None) if attribute else value
        if value is not None:
            setattr(copy, lost, value)
    return copy
