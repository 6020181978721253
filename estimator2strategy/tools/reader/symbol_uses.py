"""The names of TensorFlow in a file, each once, with its first place and what became of it."""

from __future__ import annotations

import ast
import dataclasses
import enum
import re
from collections.abc import Iterator

from estimator2strategy.engine.names import tables
from estimator2strategy.engine.names.name_table import Symbol
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.python_files import NotChecked
from estimator2strategy.tools.reader.source import Import, LexicalScope, Source, kept


class Flavour(enum.Enum):
    """The module by which a program reaches a name of TensorFlow."""

    PLAIN = "tensorflow"
    V1 = "tensorflow.compat.v1"
    V2 = "tensorflow.compat.v2"
    FACADE = "estimator2strategy.tf1"


@dataclasses.dataclass(frozen=True)
class Use:
    """One name.

    Attributes:
        name: "tf.contrib.layers.conv2d".
        flavour: The module by which it is reached.
        node: Its first use, the import if it is imported.
        count: The number of lines that use it.
        is_import: True if an import statement names it.
        row: The facade's row for it; None if TF 1.15 had no such name.
        in_tensorflow: True if today's TensorFlow has it, reached in this way; None if not known.
        needs_keras_2: True if it is there only beside Keras 2.
    """

    name: str
    flavour: Flavour
    node: ast.AST
    count: int
    is_import: bool
    row: Symbol | None
    in_tensorflow: bool | None
    needs_keras_2: bool


def flavour(raw: str | None) -> Flavour:
    """The module by which a full name is reached."""
    if raw is None or raw.startswith("estimator2strategy"):
        return Flavour.FACADE
    for found in (Flavour.V1, Flavour.V2):
        if raw == found.value or raw.startswith(f"{found.value}."):
            return found
    return Flavour.PLAIN


@kept
def uses(source: Source, on_tensorflow_2: bool | None = None) -> tuple[Use, ...]:
    """The uses of TensorFlow's names in a file, in order.

    Given what the program is to run on, those are left out that it keeps for another TensorFlow.
    """
    if not re.search(r"\btensorflow|estimator2strategy", source.text) and not source.imports:
        return ()
    first: dict[tuple[str, Flavour], ast.AST] = {}
    lines: dict[tuple[str, Flavour], set[int]] = {}
    imported = set()
    for target, _ in source.imports:
        if target.name == "*" or not _counts(target.node, source, on_tensorflow_2):
            continue
        raw = source.follow(source, target)
        if raw is None or raw.startswith("@"):
            continue
        name = source.canonical(raw)
        if name.startswith("tf."):
            key = (tables.public(name), flavour(raw))
            imported.add(key)
            first.setdefault(key, target.node)
            lines.setdefault(key, set()).add(target.node.lineno)
    given = source.given()
    for node, scope in source.chains:
        if isinstance(node, ast.Name) and node.id == "self":
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            node = node.value  # what is set is not read, and may be new
        raw = source.resolve(node, scope)
        if raw is None or raw.startswith(("@", "builtins.")):
            continue
        if given and any(f"{raw}.".startswith(f"{name}.") for name in given):
            continue
        name = source.canonical(raw)
        if not name.startswith("tf.") or not _counts(node, source, on_tensorflow_2):
            continue
        if not all(_counts(i.node, source, on_tensorflow_2) for i in _imports(node, scope, source)):
            continue
        key = (tables.public(name), flavour(raw))
        first.setdefault(key, node)
        lines.setdefault(key, set()).add(node.lineno)
    return tuple(
        _use(name, how, node, len(lines[name, how]), (name, how) in imported)
        for (name, how), node in first.items()
    )


def imported_and_used(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """The names of other modules, as they are imported and as they are used.

    Uses are left out of what may be one thing or another, by the Python that runs it, say.
    """
    for target, _ in source.imports:
        name = source.follow(source, target)
        if name is not None and not name.startswith("@") and not target.level:
            yield target.node, name
    for node, scope in source.chains:
        name = source.resolve(node, scope)
        if name is None or name.startswith(("@", "builtins.")):
            continue
        if _is_one_thing(node, scope, source):
            yield node, name


def _is_one_thing(node: ast.AST, scope: LexicalScope, source: Source) -> bool:
    """True if all that binds the first word of a dotted name binds it to the same."""
    while isinstance(node, ast.Attribute):
        node = node.value
    where = scope.find(node.id) if isinstance(node, ast.Name) else None
    bound = where.bindings[node.id] if where else ()  # type: ignore[attr-defined]
    meant = {source.follow(source, b) if isinstance(b, Import) else b for b in bound}
    return len(meant) <= 1


def _imports(node: ast.AST, scope: LexicalScope, source: Source) -> Iterator[Import]:
    """The imports of names of TensorFlow that the first word of a dotted name may come from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    where = scope.find(node.id) if isinstance(node, ast.Name) else None
    for bound in where.bindings[node.id] if where else ():  # type: ignore[attr-defined]
        raw = source.follow(source, bound) if isinstance(bound, Import) else None
        if raw is not None and source.canonical(raw).startswith("tf."):
            yield bound


def _counts(node: ast.AST, source: Source, on_tensorflow_2: bool | None) -> bool:
    return on_tensorflow_2 is None or (
        not unreached.is_tried(node)
        and unreached.is_reached(node, source, on_tensorflow_2=on_tensorflow_2)
    )


def _use(name: str, how: Flavour, node: ast.AST, count: int, is_import: bool) -> Use:
    row = tables.served(name)
    which = "v1" if how is Flavour.V1 else "v2"
    gone = name == "tf.contrib" or name.startswith(("tf.contrib.", "tf.estimator"))
    if name.startswith(tables.FILES):
        gone = tables.private_is_gone(name)
    in_keras_2 = any(name.startswith(f"{path}.") for path in tables.NEED_KERAS_2)
    return Use(
        name=name,
        flavour=how,
        node=node,
        count=count,
        is_import=is_import,
        row=row,
        in_tensorflow=False if gone else tables.exists(name, which),
        needs_keras_2=how is Flavour.V1 and in_keras_2,
    )


@kept
def is_legacy(source: Source) -> bool:
    """True if a file is written for TF 1.x: it uses a name that TensorFlow 2 does not have."""
    return any(
        use.flavour is Flavour.PLAIN and use.row is not None and use.in_tensorflow is False
        for use in uses(source)
    )


def blind_spots(source: Source) -> Iterator[NotChecked]:
    """Places where the program decides what it uses only when it runs."""
    for call in source.calls:
        if call.name == "builtins.getattr" and len(call.node.args) > 1:
            owner = source.name(call.node.args[0], call.scope)
            named = isinstance(call.node.args[1], ast.Constant)
            if owner is not None and (owner == "tf" or owner.startswith("tf.")) and not named:
                why = f"which name of {owner} this is, is decided when it runs"
                yield NotChecked(source.shown, call.node.lineno, why)
        elif call.name in ("builtins.exec", "builtins.eval"):
            why = f"{call.last} runs code that is made when it runs"
            yield NotChecked(source.shown, call.node.lineno, why)
        elif call.name in ("importlib.import_module", "builtins.__import__"):
            argument = call.node.args[0] if call.node.args else None
            if not isinstance(argument, ast.Constant):
                why = "which module is imported is decided when it runs"
                yield NotChecked(source.shown, call.node.lineno, why)
    for star in source.stars:
        if source.follow(source, dataclasses.replace(star, name=None)) is None:
            why = f"names from `from {'.' * star.level}{star.module} import *` are not known"
            yield NotChecked(source.shown, star.node.lineno, why)
