"""Names of Python 2, names that Python 3 has dropped since, and versions that are refused."""

import ast
import re
from collections.abc import Iterator

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import stored
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Source, kept, parents
from estimator2strategy.tools.reader.symbol_uses import imported_and_used

BUILTINS = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "raw_input": "input",
    "long": "int",
    "unichr": "chr",
    "reduce": "functools.reduce",
    "execfile": "exec",
    "cmp": "(a > b) - (a < b)",
    "reload": "importlib.reload",
}
MODULES = {
    "httplib": "http.client",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "cPickle": "pickle",
    "StringIO": "io",
    "cStringIO": "io",
    "ConfigParser": "configparser",
    "Queue": "queue",
    "commands": "subprocess",
}
_IMP = (
    "Today: importlib.reload for imp.reload, importlib.util and importlib.machinery for the rest."
)
# 2to3 makes `str(x, "utf8")` of it, which takes no text.
_DECODED = (
    "Text is Unicode in Python 3: leave the call out, or write `x.decode(encoding)` where x is "
    "bytes."
)
# A file that a program imports on Python 2 only.
_FOR_PYTHON_2 = re.compile(r"(^|[/_])py(thon)?_?2[^/]*\.py$")
_METHODS = {"iteritems": "items", "itervalues": "values", "iterkeys": "keys", "has_key": "in"}


def python2_names(source: Source, context: Context) -> Iterator[Hit]:
    if _FOR_PYTHON_2.search(source.shown):
        return
    for node, scope in source.chains:
        if isinstance(node, ast.Name):
            now = BUILTINS.get(node.id)
            if now and source.resolve(node, scope) == f"builtins.{node.id}" and unguarded(node):
                fix = _DECODED if node.id == "unicode" and _is_decoding(node) else None
                yield Hit(node, f"{node.id} is a built-in of Python 2; Python 3 has {now}", fix=fix)
    for target, _ in source.imports:
        module = target.module
        if target.level or module not in (*MODULES, "imp") or not unguarded(target.node):
            continue
        if source.follow(source, target) not in (module, f"{module}.{target.name}"):
            continue
        if module == "imp":
            gone = "imp is gone since Python 3.12"
            yield Hit(target.node, gone, severity=Severity.WARNING, fix=_IMP)
        else:
            yield Hit(target.node, f"{module} is a module of Python 2; now {MODULES[module]}")
    for call in source.calls:
        if call.last in _METHODS and isinstance(call.node.func, ast.Attribute):
            owner = call.node.func.value
            if isinstance(owner, ast.Name) and owner.id in ("six", "future", "utils"):
                continue
            if len(call.node.args) == (call.last == "has_key") and unguarded(call.node):
                release = "Python 2 (and pandas 2)" if call.last == "iteritems" else "Python 2"
                yield Hit(call.node, f".{call.last}() went with {release}: {_METHODS[call.last]}")


def _is_decoding(name: ast.Name) -> bool:
    """True for `unicode(text, "utf8")`."""
    call = next(parents(name))
    return isinstance(call, ast.Call) and call.func is name and len(call.args + call.keywords) > 1


def unguarded(node: ast.AST, *, tries: bool = True) -> bool:
    """True if no `try` and no question for the version is around it, nor before it in an `and`.

    Args:
        node: What may be guarded.
        tries: False if a `try` is none of the guards.
    """
    inner = node
    for outer in parents(node):
        if tries and isinstance(outer, ast.Try):
            return False
        if isinstance(outer, (ast.If, ast.IfExp)) and _asks(outer.test):
            return False
        if isinstance(outer, ast.BoolOp) and inner in outer.values:
            before = outer.values[: outer.values.index(inner)]
            if any(_asks(operand) for operand in before):
                return False
        inner = outer
    return True


@kept
def _asks(test: ast.expr) -> bool:
    return any(word in ast.unparse(test) for word in ("version", "PY2", "PY3", "python"))


_NEWEST = "3.13"
_ENCODING = "sys.setdefaultencoding"
_FIELD_TYPES = "_field_types"
_UNICODE = "Delete this line, and `reload(sys)` before it: text is Unicode in Python 3."


def dropped_by_python(source: Source, context: Context) -> Iterator[Hit]:
    seen = set()
    for node, name in imported_and_used(source):
        row = rows.find(name) if rows.library_of(name) == rows.PYTHON else None
        if row is None or row.name in seen or row.name in (*MODULES, "imp"):
            continue
        old, since = row.name, row.gone
        if _is_given_back(old):
            continue
        if unreached.is_expendable(node) or not unguarded(node) or _is_own(old, context.project):
            continue
        seen.add(old)
        severity = Severity.WARNING if since == _NEWEST else None
        fix = _UNICODE if old == _ENCODING else None
        if row.today:
            fix = f"Today: {row.today}."
        gone = f"{old} is gone: Python {since} does not have it"
        yield Hit(node, gone, severity=severity, fix=fix)
    yield from _field_types(source, context.project)


def _is_given_back(name: str) -> bool:
    """True if legacy modules get this name from this package."""
    from estimator2strategy.legacy import removed_names

    return bool(removed_names.todays(name))


def _field_types(source: Source, project: Project) -> Iterator[Hit]:
    """`Row._field_types` of a typing.NamedTuple; no other class of Python's had it."""
    if _FIELD_TYPES in stored(project):
        return
    for node in source.all_of(ast.Attribute):
        if node.attr == _FIELD_TYPES and isinstance(node.ctx, ast.Load) and unguarded(node):
            gone = "_field_types of a NamedTuple is gone: Python 3.9 does not have it"
            yield Hit(node, gone, fix="Today: __annotations__.")


def _is_own(module: str, project: Project) -> bool:
    """True if the program may have a module of this name somewhere."""
    if "." in module:
        return False
    return bool(project.named(module))


def refused_version(source: Source, context: Context) -> Iterator[Hit]:
    """Checks of TensorFlow's version by which a program ends itself."""
    if "version" not in source.text.lower():
        return
    on_tf2 = context.runs_on_tensorflow2(source)
    checks: list[ast.Assert | ast.If] = source.all_of(ast.Assert, ast.If)
    for node in checks:
        refused = isinstance(node, ast.If)
        if isinstance(node, ast.If) and not isinstance(node.body[0], ast.Raise):
            continue
        if unreached.answer(source, node.test, on_tf2) is not refused:
            continue
        if not unreached.is_tried(node, unreached.ANY | {"AssertionError"}):
            version = unreached.version(on_tf2)
            yield Hit(node, f"TensorFlow {version} does not pass `{ast.unparse(node.test)}`")
