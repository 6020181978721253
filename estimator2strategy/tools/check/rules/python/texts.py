"""Texts: their formats, their files, and those that are paths."""

import ast
import re
import string
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import unguarded
from estimator2strategy.tools.reader.estimator_programs import length_of
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, parents, walk

_CONVERSIONS = "diouxXeEfFgGcrsa"
_ONE_VALUE = {"builtins.float", "builtins.int", "builtins.len", "builtins.str"}


def format_values(source: Source, context: Context) -> Iterator[Hit]:
    for node in source.all_of(ast.BinOp):
        text = _text(node.left) if isinstance(node.op, ast.Mod) else None
        if text is not None and unguarded(node):
            takes, given = _conversions(text), _values(node.right, source)
            if takes is not None and given is not None and takes != given:
                yield Hit(node, f"this format takes {_count(takes)} and gets {given}")
    for call in source.calls:
        text = _text(getattr(call.node.func, "value", None)) if call.last == "format" else None
        if text is None or call.is_open or not unguarded(call.node):
            continue
        takes, given = _fields(text), len(call.node.args)
        if takes is not None and takes > given:
            yield Hit(call.node, f"this format takes {_count(takes)} and gets {given}")


def _text(node: ast.AST | None) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else None


def _count(number: int) -> str:
    return f"{number} value{'s' * (number != 1)}"


def _conversions(text: str) -> int | None:
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


def _values(node: ast.expr, source: Source) -> int | None:
    """The number of values that stand behind a `%`; None if it is not known."""
    if isinstance(node, ast.Tuple):
        return length_of(node)
    if isinstance(node, ast.Call):
        return 1 if Call(node, source.scope_of(node), source).name in _ONE_VALUE else None
    is_one = isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, tuple)
    )
    return 1 if is_one else None


def _fields(text: str) -> int | None:
    """The number of values by position that `text.format(...)` takes; None if it is odd."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return None
    firsts = [name.partition(".")[0].partition("[")[0] for name in names]
    numbers = [int(first) + 1 for first in firsts if first.isdecimal()]
    return max([firsts.count(""), *numbers], default=0)


_TEMPORARY = {"tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"}
_OPENERS = {"builtins.open", "io.open"}
_FILES = {
    *_OPENERS,
    "tf.gfile.FastGFile",
    "tf.gfile.GFile",
    "tf.gfile.Open",
    "tf.io.gfile.GFile",
    "tf.python.lib.io.file_io.FileIO",
}
# Function -> the position of its file, and what opens one whose text it refuses. A file of
# TensorFlow's takes bytes in any mode.
_PICKLES = {
    f"{module}.{name}": (position, openers)
    for module in ("pickle", "six.moves.cPickle")
    for name, position, openers in (("load", 0, _FILES), ("dump", 1, _OPENERS))
}
_CSV = {"csv.reader", "csv.DictReader", "csv.writer", "csv.DictWriter"}


def text_as_bytes(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        known = call.last == "write" or call.name in _CSV or call.name in _PICKLES
        if not known or not unguarded(call.node):
            continue
        if call.last == "write" and len(call.node.args) == 1 and _is_for_text(call.node.args[0]):
            opened = _opened(getattr(call.node.func, "value", None), call.scope, source)
            if opened is not None and opened.name in _TEMPORARY and _is_of_bytes(opened, 0, "w+b"):
                message = f"{opened.last}() is a file of bytes in Python 3"
                yield Hit(call.node, message, fix=f'Write {opened.last}(mode="w+").')
        if call.name in _CSV and call.node.args:
            opened = _opened(call.node.args[0], call.scope, source)
            if opened is not None and opened.name in _OPENERS and _is_of_bytes(opened, 1, "r"):
                message = f"{call.name} takes a file of text in Python 3"
                yield Hit(call.node, message, fix=f'Open it with "{_way(opened)}" and newline="".')
        if call.name in _PICKLES:
            position, openers = _PICKLES[call.name]
            file = call.argument("file", position)
            opened = _opened(file, call.scope, source) if file is not None else None
            if opened is not None and opened.name in openers and _is_of_text(opened, 1, "r"):
                message = f"{call.name} takes a file of bytes in Python 3"
                yield Hit(call.node, message, fix=f'Open it with "{_way(opened)}b".')


def _way(opened: Call) -> str:
    """The mode of a file, without what says that it is one of text or of bytes."""
    return re.sub("[btU]", "", _mode(opened, 1, "r"))


def _opened(node: ast.expr | None, scope: LexicalScope, source: Source) -> Call | None:
    """The call that opens the file which a name or an expression is, for certain; else None."""
    if isinstance(node, ast.Call):
        return source.call(node, scope)
    if not isinstance(node, ast.Name) or scope.find(node.id) is not scope:
        return None
    found = source.assigned(node, scope)
    if found is not None:
        return source.call(found[0], scope)
    for outer in (each for each in parents(node) if isinstance(each, ast.With)):
        for item in outer.items:
            if getattr(item.optional_vars, "id", None) == node.id:
                other = _is_bound_in(outer.body, node.id)
                return None if other else source.call(item.context_expr, scope)
    return None


def _is_bound_in(body: list[ast.stmt], name: str) -> bool:
    """True if statements give a name another value."""
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for statement in body
        for node in walk(statement)
    )


def _is_of_bytes(opened: Call, position: int, default: str) -> bool:
    return "b" in _mode(opened, position, default)


def _is_of_text(opened: Call, position: int, default: str) -> bool:
    return "b" not in (_mode(opened, position, default) or "b")


def _mode(opened: Call, position: int, default: str) -> str:
    """The mode that a file is opened with; empty if it is not known."""
    mode = opened.argument("mode", position)
    value = default if mode is None else getattr(mode, "value", None)
    return value if isinstance(value, str) and not opened.is_open else ""


def _is_for_text(node: ast.expr) -> bool:
    """True for a string, for strings put together, and for what is joined or formatted."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_for_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("join", "format") and _is_for_text(node.func.value)
    return False


_PATH = re.compile(r"[\w.:~ -]*(\\[\w.~ -]+)+\\?")
# Functions whose first argument is a path.
_FIRST = {
    "builtins.open", "io.open", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.save",
    "os.listdir", "os.makedirs", "os.mkdir", "cv2.imread", "cv2.imwrite", "PIL.Image.open",
    "tf.gfile.GFile", "tf.gfile.Open", "tf.gfile.Exists", "tf.gfile.ListDirectory",
    "tf.gfile.MakeDirs", "tf.gfile.Glob", "tf.data.TextLineDataset", "tf.data.TFRecordDataset",
    "tf.train.latest_checkpoint", "tf.summary.FileWriter", "tf.python_io.TFRecordWriter",
}  # fmt: skip
_READERS = re.compile(r"pandas\.read_\w+")
_KEYWORDS = {"model_dir", "filepath_or_buffer"}
# Functions that return a folder, to which programs add the rest of a path.
_FOLDERS = {
    "os.getcwd", "os.path.abspath", "os.path.dirname", "os.path.expanduser", "os.path.join",
    "os.path.normpath", "os.path.realpath",
}  # fmt: skip
# Words of questions for the system on which a program runs.
_ASKS = re.compile(r"os\.name|platform|windows|win32", re.IGNORECASE)


def windows_path(source: Source, context: Context) -> Iterator[Hit]:
    del context
    for value, where, scope in (*_given(source), *_added(source)):
        path = source.constant(value, scope)
        if isinstance(path, str) and _PATH.fullmatch(path) and not _is_for_windows(where):
            yield Hit(value, f"{path!r} is one name, not a path, where this is not Windows")


def _given(source: Source) -> Iterator[tuple[ast.expr, ast.AST, LexicalScope]]:
    """The arguments that are paths, each with its call and scope."""
    for call in source.calls:
        name = call.name or ""
        for keyword in call.node.keywords:
            if keyword.arg in _KEYWORDS:
                yield keyword.value, call.node, call.scope
        if name in _FIRST or _READERS.fullmatch(name):
            yield from ((value, call.node, call.scope) for value in call.node.args[:1])
        if name == "os.path.join":
            yield from ((value, call.node, call.scope) for value in call.node.args)


def _added(source: Source) -> Iterator[tuple[ast.expr, ast.AST, LexicalScope]]:
    """Strings that are added to a folder: `os.getcwd() + "\\\\data"`."""
    for node in source.all_of(ast.BinOp):
        if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
            scope = source.scope_of(node)
            folder = source.call(node.left, scope)
            if folder is not None and folder.name in _FOLDERS:
                yield node.right, node, scope


def _is_for_windows(node: ast.AST) -> bool:
    """True if a question for the system is around a place."""
    outer = (o for o in parents(node) if isinstance(o, ast.If | ast.IfExp))
    return any(_ASKS.search(ast.unparse(o.test)) for o in outer)
