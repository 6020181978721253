"""Format strings that take more or fewer values than they are given."""

import ast
import string

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader.estimator_programs import all_of, length_of

_CONVERSIONS = "diouxXeEfFgGcrsa"
_ONE_VALUE = {"builtins.float", "builtins.int", "builtins.len", "builtins.str"}


def find(source, context):
    for node in all_of(source, ast.BinOp):
        if isinstance(node.op, ast.Mod) and _is_text(node.left) and unguarded(node):
            takes, given = _conversions(node.left.value), _values(node.right, source)
            if takes is not None and given is not None and takes != given:
                yield Hit(node, f"this format takes {_count(takes)} and gets {given}")
    for call in source.calls:
        text = getattr(call.node.func, "value", None)
        if call.last != "format" or not _is_text(text) or call.is_open or not unguarded(call.node):
            continue
        takes, given = _fields(text.value), len(call.node.args)
        if takes is not None and takes > given:
            yield Hit(call.node, f"this format takes {_count(takes)} and gets {given}")


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _count(number):
    return f"{number} value{'s' * (number != 1)}"


def _conversions(text):
    """The number of values that `text % values` takes; None if they have names, or it is odd."""
    takes, parts = 0, iter(text)
    for letter in parts:
        if letter != "%":
            continue
        for letter in parts:  # flags, width and precision, up to the conversion
            takes += letter == "*" or letter in _CONVERSIONS
            if letter == "%" or letter in _CONVERSIONS:
                break
            if letter not in "#0- +.123456789*hlL":
                return None
        else:
            return None
    return takes


def _values(node, source):
    """The number of values that stand behind a `%`; None if it is not known."""
    if isinstance(node, ast.Tuple):
        return length_of(node)
    if isinstance(node, ast.Call):
        return 1 if source.call(node, source.scope_of(node)).name in _ONE_VALUE else None
    is_one = isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, tuple)
    )
    return 1 if is_one else None


def _fields(text):
    """The number of values by position that `text.format(...)` takes; None if it is odd."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return None
    firsts = [name.partition(".")[0].partition("[")[0] for name in names]
    numbers = [int(first) + 1 for first in firsts if first.isdecimal()]
    return max([firsts.count(""), *numbers], default=0)
