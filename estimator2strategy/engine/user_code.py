"""The arguments that a user's function takes, and the line where the user wrote it."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sysconfig
from collections.abc import Callable, Iterable
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names that `function` can be called with: of a def, lambda, partial, method or object."""
    parameters = inspect.signature(function).parameters.values()
    bound = set(function.keywords) if isinstance(function, functools.partial) else set()
    return tuple(p.name for p in parameters if p.kind in _NAMED and p.name not in bound)


def needed_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Those of `argument_names` that have no default."""
    parameters = inspect.signature(function).parameters
    empty = inspect.Parameter.empty
    return tuple(n for n in argument_names(function) if parameters[n].default is empty)


def location(function: Callable[..., Any]) -> str:
    """`name (file.py:12)`, for error messages."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    if not hasattr(inner, "__code__"):
        inner = getattr(inner, "__func__", None) or type(inner).__call__
    code = getattr(inner, "__code__", None)
    if code is None:
        return repr(function)
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


@functools.cache
def _library_folders() -> tuple[str, ...]:
    import tensorflow

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    site_packages = os.path.dirname(os.path.dirname(os.path.abspath(tensorflow.__file__)))
    libraries = ("tensorflow", "keras", "tf_keras", "tf_slim")
    installed = tuple(os.path.join(site_packages, name) + os.sep for name in libraries)
    return (*installed, package + os.sep, sysconfig.get_paths()["stdlib"] + os.sep)


def is_user_file(filename: str) -> bool:
    """True if a file is the user's own: not of Python, TensorFlow, Keras or this package."""
    return not filename.startswith((*_library_folders(), "<frozen"))


def user_frame(traceback: Iterable[Any]) -> Any:
    """The innermost frame of the user's own in an op's traceback, None if there is none."""
    frames = [frame for frame in traceback if is_user_file(frame.filename)]
    return frames[-1] if frames else None


def user_line(traceback: Iterable[Any]) -> str:
    """`file.py:12: source` of the innermost frame of the user's own in an op's traceback."""
    innermost = user_frame(traceback)
    if innermost is None:
        return "unknown line"
    # TensorFlow's frames come without their source line.
    return source_line(innermost.filename, innermost.lineno)


def source_line(filename: str, number: int) -> str:
    """`file.py:12: source`."""
    return f"{filename}:{number}: {linecache.getline(filename, number).strip()}"
