"""Flags that are defined after the command line was parsed."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.tensorflow.flag_of_two_modules import (
    closure,
    flags_at_top,
)
from estimator2strategy.tools.check.rules.tensorflow.undeclared_flag import GIVEN
from estimator2strategy.tools.reader.source import parents

# absl's own FLAGS parse nothing by themselves.
_PARSES = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def find(source, context):
    own = flags_at_top(source)
    if not own or not any(call.last == "run" for call in source.calls):
        return  # others import it: which of them reads FLAGS first is for them to say
    read = _first_read(source, context.project)
    if read is None:
        return
    line, where = read
    late = [flag for flag, call in own.items() if call.node.lineno > line]
    if late:
        more = f" and {len(late) - 1} more are" if len(late) > 1 else " is"
        message = f"{where} reads FLAGS before the flag {late[0]!r}{more} defined"
        yield Hit(own[late[0]].node, message)


def _first_read(source, project):
    """(line of the file in which FLAGS are first read, place of the read); None if in none."""
    found = [(node.lineno, f"line {node.lineno}") for node in _reads(source)]
    for module, statement in project.imports.at_top.get(source, ()):
        inner = closure(module, project)
        if source in inner:
            continue
        reading = ((other, next(_reads(other), None)) for other in inner)
        at = next((f"{other.shown}:{node.lineno}" for other, node in reading if node), None)
        if at is not None:
            found.append((statement.lineno, at))
    return min(found, default=None)


def _reads(source):
    """Flags that are read when a file is imported."""
    for node, scope in source.chains if "FLAGS" in source.text else ():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if not _is_in_any_case(node):
            continue
        name = source.name(node, scope) or ""
        if name.startswith(_PARSES) and name.partition(".FLAGS.")[2].partition(".")[0] not in GIVEN:
            yield node


def _is_in_any_case(node):
    """True if a file's code runs a node whenever it runs, in no function or condition."""
    inner = node
    for outer in parents(node):
        if isinstance(outer, _FUNCTIONS):
            if inner in outer.body:
                return False
        elif isinstance(outer, (ast.If, ast.IfExp, ast.BoolOp, ast.Lambda, ast.Try, ast.While)):
            return False
        inner = outer
    return True
