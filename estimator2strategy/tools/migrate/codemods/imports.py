"""`import tensorflow` to `estimator2strategy.tf1`, in all its forms, and in the end back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.era import (
    Era,
    era,
    imports_of_tensorflow,
    is_program,
)
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.source import names_in, parents

_FACADE = "estimator2strategy.tf1"
_ROOTS = ("tensorflow", "tensorflow.compat.v1")


@codemod("imports", stage=2, tier=SafetyTier.SAFE)
def find_imports(module: Module) -> Iterator[Any]:
    source = module.source
    statements = [n for n in imports_of_tensorflow(source) if not _is_fallback(n)]
    how = era(source)
    if how is Era.TF2 or (how is Era.UNKNOWN and not module.facts.is_legacy):
        return
    stars = [n for n in statements if any(alias.name == "*" for alias in n.names)]
    for node in stars:
        message = (
            "name what this import is for; the imports of the file stay as they are until then"
        )
        yield Todo(node, message)
    if stars:
        return
    roots = [n.lineno for n in statements if _roots(n)]
    first = min((n.lineno for n in statements if not n.col_offset), default=None)
    # Where a program says its mode: below the first import that gives TensorFlow a name.
    mode = min(roots, default=first) if _asks_for_graph_mode(module) else None
    for node in statements:
        missing = _missing(node)
        if missing:
            yield Todo(node, f"{missing} is not in this package, nor in today's TensorFlow")
        if not module.is_alone(node):
            yield Todo(node, "write this import on a line of its own")
            continue
        lines, needs_tf = _rewritten(node, module)
        tf = module.tf or "tf"
        if node.lineno == mode:
            needs_tf = needs_tf or not roots
            lines.append(f"{_roots(node) or tf}.disable_eager_execution()")
        imports: Any = ()
        if needs_tf and not node.col_offset and not any(line < node.lineno for line in roots):
            if not _roots(node):
                lines.insert(0, f"import {_FACADE} as {tf}")
        elif needs_tf and not roots:
            imports = ((_FACADE, None, tf),)
        yield module.replace_statement(node, "\n".join(lines), imports)


def _rewritten(node: Any, module: Module) -> Any:
    """The lines in the place of an import, and whether they use `tf`."""
    tf = module.tf or "tf"
    lines, needs_tf, kept = [], False, []
    for alias in node.names:
        if isinstance(node, ast.Import):
            name, bound = _legacy(alias.name), alias.asname
            if name is None:
                kept.append(alias)
            elif name == "tf" or bound is None:
                lines.append(f"import {_FACADE} as {bound or alias.name.partition('.')[0]}")
            else:
                lines.append(_from_contrib(name, bound) or f"{bound} = {_below(tf, name)}")
        else:
            base = _legacy(node.module)
            bound = alias.asname or alias.name
            if base == "tf" and alias.name == "compat":
                lines.append(f"{bound} = {tf}.compat")
            elif base == "tf":
                lines.append(_from(_FACADE, alias.name, bound))
            elif f"{base}.{alias.name}" in ("tf", "tf.compat.v1"):
                lines.append(f"import {_FACADE} as {bound}")
            else:
                full = f"{base}.{alias.name}"
                lines.append(_from_contrib(full, bound) or f"{bound} = {_below(tf, full)}")
    needs_tf = any(" = " in line for line in lines)
    if kept:
        lines.insert(0, "import " + ", ".join(map(ast.unparse, kept)))
    return _joined([line for line in dict.fromkeys(lines) if not _is_there(line, node, module)]), (
        needs_tf
    )


def _legacy(module: str) -> Any:
    """`tf.contrib.slim` for `tensorflow.contrib.slim`; None for what is not TensorFlow's."""
    for raw, legacy in (
        ("tensorflow.compat.v1", "tf"),
        ("tensorflow", "tf"),
        ("tensorflow_estimator.python.estimator", "tf.python.estimator"),
        ("tensorflow_estimator", "tf"),
    ):
        if module == raw or module.startswith(f"{raw}."):
            return legacy + module[len(raw) :]
    return None


def _below(tf: Any, name: Any) -> Any:
    return tf + name.removeprefix("tf")


def _from_contrib(name: Any, bound: Any) -> Any:
    parts = name.split(".")
    if parts[:2] == ["tf", "contrib"] and len(parts) == 3:
        return _from(f"{_FACADE}.contrib", parts[2], bound)
    return None


def _from(module: str, name: Any, bound: Any) -> Any:
    return f"from {module} import {name}" + (f" as {bound}" if bound != name else "")


def _joined(lines: Any) -> Any:
    """Neighbouring imports from one module as one statement."""
    joined: list[Any] = []
    for line in lines:
        head, _, names = line.partition(" import ")
        if line.startswith("from ") and joined and joined[-1].startswith(f"{head} import "):
            joined[-1] += f", {names}"
        else:
            joined.append(line)
    return joined


def _is_there(line: Any, node: Any, module: Module) -> Any:
    """True if an earlier `import tensorflow` binds the same name as this one will."""
    if not line.startswith("import "):
        return False
    bound = line.rpartition(" ")[2]
    earlier = [n for n in imports_of_tensorflow(module.source) if n.lineno < node.lineno]
    return node.col_offset == 0 and any(_roots(n) == bound for n in earlier)


def _roots(node: Any) -> Any:
    """The name that an import at the top of a file binds to TensorFlow itself."""
    if node.col_offset or not isinstance(node, ast.Import):
        return None
    for alias in node.names:
        if alias.name in _ROOTS and (alias.asname or alias.name == "tensorflow"):
            return alias.asname or "tensorflow"
    return None


def _is_fallback(node: Any) -> bool:
    """True if it is the other branch of a `try` that imports this package."""
    return any(
        isinstance(outer, ast.Try) and "estimator2strategy" in ast.unparse(outer)
        for outer in parents(node)
    )


def _asks_for_graph_mode(module: Module) -> bool:
    modes = ("tf.disable_eager_execution", "tf.disable_v2_behavior", "tf.enable_eager_execution")
    if not module.facts.has_sessions or not is_program(module.source):
        return False
    return not any(module.calls(*modes, "tf.enable_v2_behavior"))


def _missing(node: Any) -> Any:
    """A name that it imports of which nothing is known."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = _legacy(alias.name)
        else:
            base = _legacy(node.module)
            name = f"{base}.{alias.name}" if base else None
        if name is None or _is_known(name):
            continue
        return name
    return None


def _is_known(name: Any) -> Any:
    if name == "tf" or name.startswith(("tf.compat.v2", "tf.core.")) or name == "tf.compat.v1":
        return True
    if ".python" in name and not name.startswith("tf.contrib"):
        return tables.served(name) is not None or not tables.private_is_gone(name)
    modules = facade.names().keys() | tables.contrib().modules
    return name in modules or tables.served(name) is not None


_PACKAGE = "estimator2strategy"


@codemod("drop-facade", stage=8, tier=SafetyTier.REVIEW)
def find_drop_facade(module: Module) -> Iterator[Any]:
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
    missing = list(dict.fromkeys(_lost(module)))
    # Keras 3 does not train in a model_fn, whose graph is of TF1.
    in_model_fn = module.facts.of_specs and any(module.uses("tf.keras"))
    statements: Any = imports
    for node in statements:
        bound = node.names[0].asname
        if in_model_fn:
            yield Todo(node, "its tf.keras is tf-keras, as a model_fn needs it: see stage 7")
        if missing:
            yield Todo(node, f"TensorFlow 2 has no {_first(missing)}")
        elif not in_model_fn and len(node.names) == 1 and bound and module.is_alone(node):
            renamed = "" if bound == "tensorflow" else f" as {bound}"
            yield module.replace_statement(node, f"import tensorflow{renamed}")


def _unread_imports(module: Module) -> Any:
    """Statements at the top of the file that import nothing but unread names of this package."""
    read = {name for node, _ in module.source.chains for name in names_in(node)}
    read |= module.facts.imported  # another file may take it from this one
    nodes: Iterator[Any] = ast.walk(module.source.tree)
    read |= {n.value for n in nodes if _is_string(n)}  # in __all__, say
    unread = []
    for node in module.source.tree.body:
        if isinstance(node, ast.Import):
            modules = {alias.name.partition(".")[0] for alias in node.names}
            bound = {alias.asname or _PACKAGE for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = {str(node.module).partition(".")[0]}
            bound = {alias.asname or alias.name for alias in node.names}
        else:
            continue
        if modules == {_PACKAGE} and not bound & (read | {"*"}) and module.is_alone(node):
            unread.append(node)
    return unread


def _used_of_package(module: Module) -> Iterator[Any]:
    """`e2s.transfer_weights`, as it is written."""
    for node, scope in module.source.chains:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        name = module.source.resolve(node, scope) or ""
        through_tf = name.startswith((_FACADE, f"{_PACKAGE}.estimator"))
        if module.source.resolve(root, scope) == _PACKAGE and not through_tf:
            yield ast.unparse(node)


def _first(names: Any) -> Any:
    """The first five names, and how many there are more."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _is_string(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _lost(module: Module) -> Iterator[Any]:
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
