"""`import tensorflow` to `estimator2strategy.tf1`, in all its forms."""

import ast

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)
from estimator2strategy.tools.migrate.era import (
    Era,
    era,
    imports_of_tensorflow,
    is_program,
)
from estimator2strategy.tools.reader.source import parents

_FACADE = "estimator2strategy.tf1"
_ROOTS = ("tensorflow", "tensorflow.compat.v1")


@codemod(
    "imports",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`import tensorflow as tf` to `import estimator2strategy.tf1 as tf`",
    why="A file that is written for TF 1.x gets the names of TF 1.15 from this package, as under "
    "`e2s run`. All imports of a file change together; deep ones become attributes. A program "
    "with Sessions of its own asks for the graph mode that TF 1.x started in. Files written for "
    "TF 2.0 to 2.15 keep their TensorFlow: see estimator-names.",
    proof="The facade is what `e2s run` gives the program: the same modules. Whole programs give "
    "the same losses (tests/tools/migrate/test_parity.py).",
)
def find(module):
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
        imports = ()
        if needs_tf and not node.col_offset and not any(line < node.lineno for line in roots):
            if not _roots(node):
                lines.insert(0, f"import {_FACADE} as {tf}")
        elif needs_tf and not roots:
            imports = ((_FACADE, None, tf),)
        yield module.replace_statement(node, "\n".join(lines), imports)


def _rewritten(node, module):
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


def _legacy(module):
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


def _below(tf, name):
    return tf + name.removeprefix("tf")


def _from_contrib(name, bound):
    parts = name.split(".")
    if parts[:2] == ["tf", "contrib"] and len(parts) == 3:
        return _from(f"{_FACADE}.contrib", parts[2], bound)
    return None


def _from(module, name, bound):
    return f"from {module} import {name}" + (f" as {bound}" if bound != name else "")


def _joined(lines):
    """Neighbouring imports from one module as one statement."""
    found = []
    for line in lines:
        head, _, names = line.partition(" import ")
        if line.startswith("from ") and found and found[-1].startswith(f"{head} import "):
            found[-1] += f", {names}"
        else:
            found.append(line)
    return found


def _is_there(line, node, module):
    """True if an earlier `import tensorflow` binds the same name as this one will."""
    if not line.startswith("import "):
        return False
    bound = line.rpartition(" ")[2]
    earlier = [n for n in imports_of_tensorflow(module.source) if n.lineno < node.lineno]
    return node.col_offset == 0 and any(_roots(n) == bound for n in earlier)


def _roots(node):
    """The name that an import at the top of a file binds to TensorFlow itself."""
    if node.col_offset or not isinstance(node, ast.Import):
        return None
    for alias in node.names:
        if alias.name in _ROOTS and (alias.asname or alias.name == "tensorflow"):
            return alias.asname or "tensorflow"
    return None


def _is_fallback(node):
    """True if it is the other branch of a `try` that imports this package."""
    return any(
        isinstance(outer, ast.Try) and "estimator2strategy" in ast.unparse(outer)
        for outer in parents(node)
    )


def _asks_for_graph_mode(module):
    modes = ("tf.disable_eager_execution", "tf.disable_v2_behavior", "tf.enable_eager_execution")
    if not module.facts.has_sessions or not is_program(module.source):
        return False
    return not any(module.calls(*modes, "tf.enable_v2_behavior"))


def _missing(node):
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


def _is_known(name):
    if name == "tf" or name.startswith(("tf.compat.v2", "tf.core.")) or name == "tf.compat.v1":
        return True
    if ".python" in name and not name.startswith("tf.contrib"):
        return tables.served(name) is not None or not tables.private_is_gone(name)
    modules = facade.names().keys() | tables.contrib().modules
    return name in modules or tables.served(name) is not None
