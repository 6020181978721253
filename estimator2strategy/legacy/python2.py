"""Finds the places at which a program is written in Python 2."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Pattern of the first line that Python 3 cannot read -> its name.
_SYNTAX = {
    r"^\s*print\s+[^=(\s]|^\s*print\s*$|^\s*print\s*\(.*\)\s*%|^\s*print\s*>>": "a print statement",
    r"^\s*except\s+[^:]+,\s*\w+\s*:": "`except Error, name:`",
    r"^\s*raise\s+[\w.]+\s*,": "`raise Error, message`",
    r"^\s*exec\s+[^(\s]": "an exec statement",
    r"(?<![\w.])0\d+[lL]?\b": "an octal number without 0o",
    r"\b\d+[lL]\b": "a long integer",
    r"<>": "the operator <>",
    r"`[^`]+`": "backquotes for repr",
    r"\b[uU][rR]['\"]": "a ur'' string",
    r"(lambda\s*|def\s+\w+\s*\([^)]*)\(\w+\s*,": "an argument that is a tuple",
}
# Pattern of an error's message when Python 2 code runs -> the cause.
_RUNTIME = {
    r"name '(xrange|unicode|basestring|raw_input|long|unichr|reduce|execfile|cmp|file|reload)' is "
    "not defined": "`{}` is a built-in of Python 2",
    r"'dict' object has no attribute '(iteritems|itervalues|iterkeys|has_key)'": (
        "`dict.{}` is of Python 2"
    ),
    r"object has no attribute '(next)'": "`iterator.{}()` is of Python 2: next(iterator)",
    r"'(map|filter|zip)' object is not subscriptable": "`{}` made a list in Python 2",
    r"object of type '(map|filter|zip)' has no len": "`{}` made a list in Python 2",
    r"No module named '(urllib2|cPickle|StringIO|ConfigParser|Queue|__builtin__|cStringIO)'": (
        "the module `{}` is of Python 2"
    ),
}
# The same of what later versions of libraries dropped.
_DROPPED = {
    r"'numpy.ndarray' object has no attribute 'tostring'": (
        "NumPy 2.3 dropped `tostring`: write `tobytes`, or install numpy<2.3"
    ),
    r"'\w*Thread' object has no attribute 'isAlive'": (
        "Python 3.9 dropped `isAlive`: write `is_alive`"
    ),
    r"No module named 'pkg_resources'": (
        "setuptools 82 dropped it, and tensorflow_hub, for one, imports it: "
        'pip install "setuptools<82"'
    ),
}
CONVERT = (
    "Convert the program first: `2to3 -w FILES` (part of Python up to 3.12) or "
    "`pip install future && futurize -w FILES`."
)
# 2to3 leaves tabs as they are.
_EXPAND = "Write spaces for its tabs, of eight columns as in Python 2: `expand -i FILE > NEW_FILE`."


def construct(error: Exception, line: str) -> str | None:
    """The name of the Python 2 construct in the line of a syntax error, if there is one."""
    if isinstance(error, TabError):
        return "tabs mixed with spaces"
    if not isinstance(error, SyntaxError):
        return None
    return next((what for pattern, what in _SYNTAX.items() if re.search(pattern, line)), None)


def advice(error: Exception) -> str:
    """The way to make Python 3 of a file that raises this error."""
    return _EXPAND if isinstance(error, TabError) else CONVERT


def explain(error: SyntaxError) -> None:
    """Rewrites the message of a SyntaxError that comes from Python 2 code."""
    what = construct(error, error.text or _line(error.filename, error.lineno))
    if what is not None:
        python3 = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        error.msg = (
            f"this is Python 2 ({what}, line {error.lineno}), and runs on {python3} only after a "
            f"conversion. {advice(error)} ({error.msg})"
        )


def hint(error: BaseException) -> str | None:
    """The hint for an error that is typical of Python 2 code; None for others."""
    for pattern, what in _RUNTIME.items():
        match = re.search(pattern, str(error))
        if match and isinstance(error, (NameError, AttributeError, ImportError, TypeError)):
            return f"This is Python 2: {what.format(match[1])}. {CONVERT}"
    for pattern, what in _DROPPED.items():
        if re.search(pattern, str(error)):
            return f"{what}."
    return None


def _line(filename: str | None, number: int | None) -> str:
    try:
        return Path(filename or "").read_text(errors="replace").splitlines()[(number or 1) - 1]
    except (OSError, IndexError):
        return ""
