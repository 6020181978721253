"""Calls that TensorFlow 2 takes with other names, arguments or forms."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.check.rules.tensorflow.changed_calls import reads
from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.call_text import ArgumentText, CallText
from estimator2strategy.tools.migrate.codemod import Change, SafetyTier, codemod
from estimator2strategy.tools.migrate.module import Module

# Old name -> new name, and the functions of TF 1.15 that take both.
ARGUMENTS = {
    row["old"]: (row["new"], codemod_tables.words(row["functions"]))
    for row in codemod_tables.rows("arguments")
}


@codemod("arguments", stage=2, tier=SafetyTier.SAFE)
def find_arguments(module: Module) -> Iterator[Any]:
    for call in module.calls():
        name = module.name(call.node.func, call.scope)
        for keyword in call.node.keywords:
            new, functions = ARGUMENTS.get(keyword.arg or "", ("", ()))
            if name in functions:
                yield module.rename_keyword(call, str(keyword.arg), new)


_DTYPES = {
    "tf.to_bfloat16": "bfloat16",
    "tf.to_complex128": "complex128",
    "tf.to_complex64": "complex64",
    "tf.to_double": "float64",
    "tf.to_float": "float32",
    "tf.to_int32": "int32",
    "tf.to_int64": "int64",
}


@codemod("casts", stage=2, tier=SafetyTier.SAFE, words=("to_",))
def find_casts(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls(*_DTYPES):
        x = call.argument("x", 0)
        if x is None or call.is_open:
            continue
        old = CallText(module, call.node)
        if old.arguments[0].name not in (None, "x"):
            continue
        dtype = _DTYPES[str(module.name(call.node.func, call.scope))]
        arguments = _with_dtype(old.arguments, f"{module.tf}.{dtype}")
        yield Change(*old.span, old.text(f"{module.tf}.cast", arguments))


def _with_dtype(arguments: Any, dtype: Any) -> Any:
    """The arguments with a dtype as the second one."""
    x, *rest = arguments
    name, between = ("dtype", x.between) if x.name else (None, "")
    given = ArgumentText(name, dtype, between, x.gap)
    if rest:
        rest[0] = rest[0].named("name")
    return [dataclasses.replace(x, gap=", "), given, *rest]


@codemod("dimension-value", stage=2, tier=SafetyTier.SAFE, words=("value",))
def find_dimensions_to_ints(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for node in reads(module.source):
        written = f"{module.tf}.compat.dimension_value({module.written(node.value)})"
        yield module.replace(node, written)


_NAMES = {row["name"]: row["now"] for row in codemod_tables.rows("gfile")}
_RENAMED_ARGUMENTS = {
    row["name"]: dict(codemod_tables.pairs(row["arguments"]))
    for row in codemod_tables.rows("gfile")
}


@codemod("gfile", stage=2, tier=SafetyTier.SAFE)
def find_gfile(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for node, name in module.uses("tf.gfile"):
        last = name.removeprefix("tf.gfile.")
        part = module.part(node, name)
        if last in _NAMES and part is not None:
            yield module.replace(part, f"{module.tf}.io.gfile.{_NAMES[last]}")
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        # `from tensorflow.gfile import Exists` keeps its function, and so its arguments.
        if not name.startswith("tf.gfile.") or _is_imported(module, call.node.func):
            continue
        known = _RENAMED_ARGUMENTS.get(name.removeprefix("tf.gfile."), {})
        for keyword in call.node.keywords:
            new = known.get(keyword.arg or "")
            if new:
                yield module.rename_keyword(call, str(keyword.arg), new)


def _is_imported(module: Module, function: Any) -> bool:
    """True if a function is called by a name that an import statement gives it."""
    return isinstance(function, ast.Name) and any(
        alias.name.rpartition(".")[2] != "gfile" and (alias.asname or alias.name) == function.id
        for target, _ in module.source.imports
        for alias in getattr(target.node, "names", ())
    )


# Function of tf.train -> class of Keras, the function's arguments.
_SCHEDULES = {
    row["name"]: (row["keras"], codemod_tables.words(row["arguments"]))
    for row in codemod_tables.rows("schedules")
}
_STEPS = ("global_step", "x")
_RENAMED = {"learning_rate": "initial_learning_rate"}


@codemod("schedules", stage=5, tier=SafetyTier.SAFE)
def find_schedules(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls(*_SCHEDULES):
        if call.is_open:
            continue
        keras, names = _SCHEDULES[str(module.name(call.node.func, call.scope))]
        old = CallText(module, call.node)
        given = list(zip(names, old.arguments, strict=False))
        given = [(one.name or name, one) for name, one in given]
        given += [(one.name, one) for one in old.arguments[len(given) :] if one.name]
        step = next((argument for name, argument in given if name in _STEPS), None)
        if step is None:
            continue
        # A name, which comes last by position, is dropped with the scope that it made.
        kept = [
            argument.renamed(_RENAMED.get(name, name))
            for name, argument in given
            if name not in (*_STEPS, "name")
        ]
        schedule = old.text(f"{module.tf}.keras.optimizers.schedules.{keras}", kept)
        yield Change(*old.span, f"{schedule}({step.value})")
