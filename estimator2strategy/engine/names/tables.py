"""Facts about names of TensorFlow, from tables, without TensorFlow.

    served("tf.contrib.layers.conv2d")              # what the facade has for it, or why not
    exists("tf.layers.dense", "v2")                 # False: plain TensorFlow 2 has no such name
    home("tf.estimator.ModeKeys", "")               # what does its work in TensorFlow 2
    canonical("tensorflow.compat.v1.layers.dense")  # "tf.layers.dense"

The first is the facade's own table; the others are those of `rows`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from pathlib import Path

from estimator2strategy.engine.names import name_table, rows
from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names.name_table import Symbol

_ESTIMATOR = "estimator2strategy.estimator:"
_PACKAGE = Path(__file__).resolve().parents[2]


@functools.cache
def contrib() -> name_table.SymbolTable:
    """The table of `tf.contrib`."""
    return name_table.read("tf1/contrib/symbols.csv", modules="tf1/contrib/modules.txt")


@functools.cache
def served(name: str) -> Symbol | None:
    """The facade's row for a legacy name; None if TF 1.15 had no such name."""
    if name == "tf.contrib":
        return Symbol(name, "works")
    if name in BEFORE_1_15:
        return None
    if name.startswith("tf.contrib."):
        row = contrib().find(name)
        if row is None and (name in contrib().modules or _is_in_installed_module(name)):
            return Symbol(name, "home")
        return row
    row = facade.find(name)
    if row is not None and row.status == "refused" and _is_written(facade.canonical(name)):
        return Symbol(name, "works")
    if row is not None and row.home.startswith(_ESTIMATOR):
        first = row.home.removeprefix(_ESTIMATOR).partition(".")[0]
        row = row if first in _bound("estimator/__init__.py") else None
    return row or _private_of_the_estimator(name)


def _is_in_installed_module(name: str) -> bool:
    """True if a name of contrib is in a module that lives on as a whole in another library."""
    parts = name.split(".")
    for end in range(3, len(parts)):
        row = contrib().find(".".join(parts[:end]))
        if row is not None and row.home.startswith("="):
            return _is_in_alias(".".join([row.home[1:], *parts[end:]]))
        if row is not None and row.home and ":" not in row.home:
            return True
    return False


def _is_in_alias(name: str) -> bool:
    """True if TF 1.15 had a name that a name of contrib stands for, as far as tables know."""
    if name.startswith("tf.contrib."):
        return _is_in_installed_module(name)
    return name.startswith("tf.python.") or facade.in_its_modules(name.split("."), 1)


def _private_of_the_estimator(name: str) -> Symbol | None:
    """The row for a name of a deep module of tensorflow_estimator, or for a name below it."""
    name = facade.canonical(name)
    for root, modules in facade.FLAT.items():
        for end in range(name.count(".") + 1, root.count(".") + 1, -1):
            *module, last = name.split(".")[:end]
            if not f"{'.'.join(module)}.".startswith(f"{root}."):
                break
            files = [f"{m.removeprefix('tf.').replace('.', '/')}" for m in modules]
            if any(last in _bound(f"{f}.py") | _bound(f"{f}/__init__.py") for f in files):
                return Symbol(name, "works")
            if f"{root}.{last}" in facade.rows():
                return Symbol(name, "home")
    return None


def _is_written(name: str) -> bool:
    """True if this package has a name that a table still lists as one to come."""
    parts = name.split(".")
    if parts[:2] != ["tf", "estimator"]:
        return False
    for end in range(2, len(parts)):
        stem = "/".join(parts[1:end])
        if parts[end] not in _bound(f"{stem}/__init__.py") | _bound(f"{stem}.py"):
            return False
        if not (_PACKAGE / f"{stem}/{parts[end]}.py").exists():
            return True  # no module: what is below is the class's
    return True


@functools.cache
def _bound(file: str) -> frozenset[str]:
    path = _PACKAGE / file
    if not path.exists():
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return frozenset(names)


@functools.cache
def _names(which: str) -> dict[str, frozenset[str]]:
    return {
        module: frozenset(line.split())
        for module, line in rows.facts(rows.TENSORFLOW)[which].items()
    }


# Folders of TensorFlow's files, which have no public names.
FILES = ("tf.python", "tf.compiler", "tf.tools")
# Their content is not in the table; or, in compat.v1, depends on which Keras is installed.
_UNKNOWN = {
    "v2": ("tf.compat", "tf.raw_ops", *FILES, "tf.core", "tf.lite"),
    "v1": ("tf.compat", "tf.raw_ops", *FILES, "tf.core", "tf.lite", "tf.keras"),
}
# Private names that programs before TensorFlow 1.5 use, and that 1.15 did not have either.
BEFORE_1_15 = frozenset(
    {"tf.nn.rnn_cell._linear", "tf.python.ops.rnn_cell._linear"}
    | {f"tf.python.ops.rnn_cell_impl.{name}" for name in ("_linear", "_Linear")}
)
# Names that compat.v1 has beside Keras 2 only.
NEED_KERAS_2 = ("tf.layers", "tf.nn.rnn_cell")


@functools.cache
def exists(name: str, which: str) -> bool | None:
    """True if today's `tensorflow` ("v2") or its compat.v1 ("v1") has a name; None if not known.

    A name below a class or function is there if that is.
    """
    if name.startswith("tf.compat.v2."):
        name, which = "tf." + name.removeprefix("tf.compat.v2."), "v2"
    if any(name == path or name.startswith(f"{path}.") for path in _UNKNOWN[which]):
        return None
    modules = _names(which)
    module, *parts = name.split(".")
    for part in parts:
        if part.startswith("_"):
            return None
        # Names that compat.v1 has only beside Keras 2 are those of TF 1.15.
        known = facade.names() if _needs_keras_2(module, which) else modules
        if part not in known.get(module, ()):
            return False
        module = f"{module}.{part}"
        if module not in modules and not _needs_keras_2(module, which):
            return True
    return True


def _needs_keras_2(module: str, which: str) -> bool:
    is_below = any(f"{module}.".startswith(f"{path}.") for path in NEED_KERAS_2)
    return is_below and which == "v1" and module in facade.names()


def may_hide(name: str, target: str) -> bool:
    """True if `import *` may bring `target` as `name`: `range` may, and `len` stays Python's."""
    return target.startswith("@") or not hasattr(builtins, name) or served(target) is not None


def rank(name: str) -> int:
    """The place of a name among those that several `import *` may bring, the likeliest first."""
    if name.startswith("tf.python."):
        return 1  # no table has the names of private modules
    return 2 if name.startswith("tf.") and served(name) is None else 0


def changed(name: str) -> rows.Row | None:
    """The row of a function whose arguments are others in TensorFlow 2; None for others."""
    row = rows.find(name)
    return row if row is not None and row.before else None


def private_is_gone(name: str) -> bool:
    """True if a name in TensorFlow's files that programs import is not there any more."""
    row = rows.find(name)
    is_older = any(name == path or name.startswith(f"{path}.") for path in BEFORE_1_15)
    return is_older or (row is not None and bool(row.gone))


@functools.cache
def public(name: str) -> str:
    """The symbol that a name belongs to: `tf.flags.FLAGS` for `tf.flags.FLAGS.batch_size`."""
    parts = name.split(".")
    if "python" in parts or name.startswith(FILES):
        return name
    for end in range(2, len(parts)):
        prefix = ".".join(parts[:end])
        if prefix not in _modules() and not is_in_contrib(prefix):
            return prefix
    return name


def is_in_contrib(module: str) -> bool:
    """True for a module of `tf.contrib`."""
    return module.startswith("tf.contrib.") and module in contrib().modules


@functools.cache
def _modules() -> frozenset[str]:
    others = {"tf.compat", "tf.compat.v1", "tf.compat.v2", "tf.contrib"}
    return frozenset(others.union(facade.names(), _names("v2")))


# How a module is written -> the legacy name, for the longest prefix that fits.
_ALIASES = (
    ("tensorflow.compat.v1.compat.v1", "tf"),
    ("tensorflow.compat.v1", "tf"),
    ("tensorflow.compat.v2", "tf.compat.v2"),
    ("tensorflow", "tf"),
    ("tf", "another_tf"),  # `import tf` is a module of ROS
    ("estimator2strategy.tf1", "tf"),
    ("estimator2strategy.estimator", "tf.estimator"),
    ("tensorflow_estimator.python.estimator", "tf.python.estimator"),
    ("tensorflow_estimator.estimator", "tf.estimator"),
    ("tensorflow_estimator.contrib.estimator", "tf.contrib.estimator"),
)
_FRONT_DOOR = {
    "Estimator": "Estimator",
    "EstimatorSpec": "EstimatorSpec",
    "ModeKeys": "ModeKeys",
    "RunConfig": "RunConfig",
    "InputPipelineConfig": "tpu.InputPipelineConfig",
    "TPUConfig": "tpu.TPUConfig",
    "TPUEstimator": "tpu.TPUEstimator",
    "TPUEstimatorSpec": "tpu.TPUEstimatorSpec",
}


@functools.lru_cache(maxsize=2**14)
def canonical(raw: str) -> str:
    """The name of TF 1.15 for what is written like this; other names as they are."""
    if raw.startswith("@"):
        return raw
    for prefix, legacy in _ALIASES:
        if raw == prefix or raw.startswith(f"{prefix}."):
            return legacy + raw[len(prefix) :]
    top, _, rest = raw.partition(".")
    if top == "estimator2strategy" and rest in _FRONT_DOOR:
        return f"tf.estimator.{_FRONT_DOOR[rest]}"
    return raw


# The replacement of a name in TensorFlow 2. The tables of the facade have one for most names; here
# are the many of `tf.estimator`, and advice that names something that is gone is followed, too.

_ROOTS = (
    "tf.estimator.",
    "tf.contrib.estimator.",
    "tf.contrib.learn.",
    "tf.contrib.tpu.",
    "tf.python.estimator.",
    "tf.python.tpu.",
)
_LIBRARIES = ("tf.contrib.slim.", "tf.contrib.layers.", "tf.contrib.framework.", "tf.contrib.crf.")
# The rows of a whole module say these.
_FOR_ALL = {
    "",
    "a tf.distribute strategy and a loop",
    "tf.Module, tf.train.Checkpoint",
    "tf.distribute.TPUStrategy; see contract.md",
    "tf.keras.layers",
}
# The beginning of the names of some modules -> the fact that says who does their work today.
_WORKS = ((_ROOTS, "of Estimators"), (_LIBRARIES, "of contrib"))
_NAME = re.compile(r"\btf(?:\.\w+)+")


@functools.cache
def home(name: str, advice: str) -> str:
    """Returns advice on the replacement of a name in TensorFlow 2.

    Args:
        name: A name of TensorFlow 1.x, "tf.estimator.RunConfig".
        advice: What the facade's table says of it; "" if nothing.

    Returns:
        Words that name nothing that is gone itself; "" where nothing is known.
    """
    written = _written(name, advice)
    if written:
        return written
    if name.startswith("tf.keras.") and advice == "tf.keras":
        return _class_of(name)
    gone = next((found for found in _NAME.findall(advice) if is_gone(found)), None)
    if gone is None:
        return advice
    if gone == name:
        return ""
    row = served(gone)
    return home(gone, row.advice if row is not None else "")


def _written(name: str, advice: str) -> str:
    """The advice on a name in the tables above, or on the class or module that it is in."""
    owner, _, last = name.rpartition(".")
    for roots, fact in _WORKS:
        if not f"{name}.".startswith(roots):
            continue
        works = rows.by_hand(fact)
        if last in works:
            return works[last]
        if advice in _FOR_ALL:
            return works.get(owner.rpartition(".")[2]) or _moved(owner, last)
    return ""


def _moved(owner: str, last: str) -> str:
    """The place of what went from `tf.contrib` to TensorFlow, or its place as one of layers."""
    if owner.startswith("tf.contrib.framework"):
        homes = ("tf", "tf.nest") if owner.endswith("nest") else ("tf", "tf.train")
        there = [f"{home}.{last}" for home in homes if exists(f"{home}.{last}", "v2")]
        return there[-1] if there else ""
    row = served(f"tf.contrib.layers.{last}") if owner == "tf.contrib.slim" else None
    return row.advice if row is not None else ""


def _class_of(name: str) -> str:
    """The class of Keras that does what a function did: `MeanSquaredError`."""
    owner, _, last = name.rpartition(".")
    there = f"{owner}.{''.join(word.capitalize() for word in last.split('_'))}"
    return there if exists(there, "v2") else ""


def is_gone(name: str) -> bool:
    """True if TensorFlow 2 does not have this public name."""
    if name.startswith(("tf.estimator", "tf.contrib")):
        return True
    return exists(name, "v2") is False
