"""`import estimator2strategy.tf1 as tf` to `import tensorflow as tf`."""

import ast

from estimator2strategy.engine.names import tables
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)
from estimator2strategy.tools.reader.source import names_in

_PACKAGE = "estimator2strategy"
_FACADE = "estimator2strategy.tf1"


@codemod(
    "drop-facade",
    stage=8,
    tier=SafetyTier.REVIEW,
    title="`import estimator2strategy.tf1 as tf` back to `import tensorflow as tf`",
    why="Where all names that a file uses are in TensorFlow 2; else the import is marked with "
    "those that are not. A file that still uses this package's estimator keeps it. So does one "
    "that uses tf.keras where some file has a model_fn: the facade's tf.keras is tf-keras, and "
    "Keras 3 does not train in a model_fn. Imports of this package that nothing reads any more are "
    "deleted.",
    proof="Names mean what they mean in TensorFlow 2 from here on: tf.keras is Keras 3 ([the "
    "table](#keras-beside-tensorflow-115) says where it computes otherwise), tf.data gives TF2 "
    "datasets, and code runs eagerly unless it is in a tf.function.",
)
def find(module):
    if _PACKAGE not in module.source.modules:
        return
    unread = _unread_imports(module)
    for node in unread:
        yield module.replace_statement(node, "")
    for target, _ in module.source.imports:
        if target.node in unread:
            continue
        if target.module == _PACKAGE and not target.name:
            used = list(dict.fromkeys(_used_of_package(module)))
            yield Todo(target.node, f"it still uses {_first(used) or _PACKAGE}")
        if target.module == _PACKAGE and target.name == "estimator":
            yield Todo(target.node, "it still trains an Estimator: see stage 7")
        if target.module.startswith(_FACADE) and (target.name or target.module != _FACADE):
            yield Todo(target.node, "reach this through tf")
    imports = [
        t.node
        for t, _ in module.source.imports
        if t.module == _FACADE and not t.name and t.node not in unread
    ]
    missing = list(dict.fromkeys(_missing(module)))
    # Keras 3 does not train in a model_fn, whose graph is of TF1.
    in_model_fn = module.facts.of_specs and any(module.uses("tf.keras"))
    for node in imports:
        bound = node.names[0].asname
        if in_model_fn:
            yield Todo(node, "its tf.keras is tf-keras, as a model_fn needs it: see stage 7")
        if missing:
            yield Todo(node, f"TensorFlow 2 has no {_first(missing)}")
        elif not in_model_fn and len(node.names) == 1 and bound and module.is_alone(node):
            renamed = "" if bound == "tensorflow" else f" as {bound}"
            yield module.replace_statement(node, f"import tensorflow{renamed}")


def _unread_imports(module):
    """Statements at the top of the file that import nothing but unread names of this package."""
    read = {name for node, _ in module.source.chains for name in names_in(node)}
    read |= module.facts.imported  # another file may take it from this one
    read |= {n.value for n in ast.walk(module.source.tree) if _is_string(n)}  # in __all__, say
    found = []
    for node in module.source.tree.body:
        if isinstance(node, ast.Import):
            modules = {alias.name.partition(".")[0] for alias in node.names}
            bound = {alias.asname or _PACKAGE for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = {node.module.partition(".")[0]}
            bound = {alias.asname or alias.name for alias in node.names}
        else:
            continue
        if modules == {_PACKAGE} and not bound & (read | {"*"}) and module.is_alone(node):
            found.append(node)
    return found


def _used_of_package(module):
    """`e2s.transfer_weights`, as it is written."""
    for node, scope in module.source.chains:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        name = module.source.resolve(node, scope) or ""
        through_tf = name.startswith((_FACADE, f"{_PACKAGE}.estimator"))
        if module.source.resolve(root, scope) == _PACKAGE and not through_tf:
            yield ast.unparse(node)


def _first(names):
    """The first five names, and how many there are more."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _is_string(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _missing(module):
    """The names that a file reaches by the facade, and that TensorFlow 2 has not."""
    for node, name in module.uses():
        raw = module.source.resolve(node, module.source.scope_of(node)) or ""
        if not raw.startswith(f"{_FACADE}."):
            continue
        symbol = tables.public(name)
        in_v1 = ".compat.v1." in raw
        gone = symbol.startswith(("tf.contrib", "tf.estimator", "tf.layers", "tf.nn.rnn_cell"))
        if gone or tables.exists(symbol, "v1" if in_v1 else "v2") is False:
            yield f"tf.compat.v1.{symbol.removeprefix('tf.')}" if in_v1 else symbol
