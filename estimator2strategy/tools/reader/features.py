"""Features that a function parses from records and returns as they are."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from estimator2strategy.tools.reader.estimator_programs import own_nodes, returned
from estimator2strategy.tools.reader.project import Project, is_tensorflow, is_tf
from estimator2strategy.tools.reader.source import Call, Function, Source, kept, walk

_PARSERS = ("parse_single_example", "parse_example")
_CHANGES = ("cast", "to_int32", "to_float", "pop", "decode_raw")


@dataclasses.dataclass(frozen=True, eq=False)
class Feature:
    """One entry of a parse spec: where it is, its key, its dtype ("tf.int64"), its kind."""

    node: ast.AST
    key: str
    dtype: str
    kind: str


@kept
def parsed_and_returned(source: Source, project: Project) -> tuple[Feature, ...]:
    """The features of dicts that a function for TPUs parses and returns untouched."""
    if source not in project.tpu_sources:
        return ()
    return tuple(
        feature
        for function, _ in source.functions
        for call in source.calls
        if call.scope.function is function and is_tf(call.name, *_PARSERS)
        for feature in _untouched(call, function)
    )


def _untouched(call: Call, function: Function) -> Iterator[Feature]:
    name = _target(call.node)
    if name is None or not any(_is_name(value, name) for value in returned(function)):
        return
    mentioned = [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    calls = {_last(node.func) for node in own_nodes(function) if isinstance(node, ast.Call)}
    changes = [n for n in own_nodes(function) if _changes_entry(n, name)]
    if calls & set(_CHANGES) or changes:
        return  # a loop over the entries may change any of them
    for feature in parse_spec(call):
        if mentioned.count(feature.key) <= 1:
            yield feature


def parse_spec(call: Call) -> Iterator[Feature]:
    """The entries of the spec that `parse_single_example` is given, if it is a dict."""
    spec = call.argument("features", 1)
    if spec is None:
        return
    found = call.source.assigned(spec, call.scope)
    value, scope = found or (spec, call.scope)
    if not isinstance(value, ast.Dict):
        return
    for key, entry in zip(value.keys, value.values, strict=True):
        if not isinstance(entry, ast.Call) or not isinstance(key, ast.Constant):
            continue
        kind = call.source.name(entry.func, scope)
        made = Call(entry, scope, call.source)
        given = made.argument("dtype", 0 if kind and kind.endswith("VarLenFeature") else 1)
        dtype = call.source.name(given, scope) if given is not None else None
        if is_tensorflow(kind) and dtype and isinstance(key.value, str):
            yield Feature(key, key.value, dtype, str(kind).rpartition(".")[2])


def _target(node: ast.AST) -> str | None:
    parent = getattr(node, "parent", None)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _is_name(node: ast.expr, name: str) -> bool:
    first = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node
    return isinstance(first, ast.Name) and first.id == name


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _changes_entry(node: ast.AST, name: str) -> bool:
    """`name[key] = ...` or `del name[key]`, or the name bound anew."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return isinstance(node.value, ast.Name) and node.value.id == name
    return False
