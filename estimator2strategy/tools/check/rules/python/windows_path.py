"""Paths that only Windows reads as folders."""

import ast
import re

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import all_of
from estimator2strategy.tools.reader.source import parents

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


def find(source, context):
    del context
    for value, where, scope in (*_given(source), *_added(source)):
        path = source.constant(value, scope)
        if isinstance(path, str) and _PATH.fullmatch(path) and not _is_for_windows(where):
            yield Hit(value, f"{path!r} is one name, not a path, where this is not Windows")


def _given(source):
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


def _added(source):
    """Strings that are added to a folder: `os.getcwd() + "\\\\data"`."""
    for node in all_of(source, ast.BinOp):
        if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
            scope = source.scope_of(node)
            folder = source.call(node.left, scope)
            if folder is not None and folder.name in _FOLDERS:
                yield node.right, node, scope


def _is_for_windows(node):
    """True if a question for the system is around a place."""
    outer = (o for o in parents(node) if isinstance(o, ast.If | ast.IfExp))
    return any(_ASKS.search(ast.unparse(o.test)) for o in outer)
