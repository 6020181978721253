"""Names that live elsewhere now, or that a program has to do without."""

from __future__ import annotations

import ast
import csv
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.check.rules.tensorflow.changed_calls import differences
from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.era import Era, era
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.source import parents
from estimator2strategy.tools.reader.symbol_uses import imported_and_used


@functools.cache
def renames() -> dict[str, str]:
    """Legacy name -> name in TensorFlow 2; made by tests/tools/migrate/renames.py."""
    path = Path(__file__).resolve().parents[1] / "renames.csv"
    with open(path, newline="", encoding="utf-8") as file:
        return {row["name"]: row["now"] for row in csv.DictReader(file)}


@codemod("renames", stage=2, tier=SafetyTier.SAFE)
def find_renames(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for node, name in module.uses():
        for legacy in _spellings(name):
            part = module.part(node, legacy)
            if part is not None:
                yield module.replace(part, module.tf + renames()[legacy].removeprefix("tf"))
                break


def _spellings(name: Any) -> Any:
    """The names of the table that a dotted name is, or is below."""
    parts = name.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return [prefix for prefix in prefixes if prefix in renames()]


@codemod("compat-v1", stage=8, tier=SafetyTier.SAFE)
def find_compat_v1(module: Module) -> Iterator[Any]:
    if module.tf is None or module.bound("estimator2strategy.tf1") != module.tf:
        return
    called = {call.node.func: call for call in module.calls()}
    for node, name in module.uses():
        symbol = tables.public(name)
        part = module.part(node, symbol)
        if part is None or not _is_only_in_v1(symbol, called.get(part)):
            continue
        if not module.written(part).startswith(f"{module.tf}.compat."):
            yield module.replace(part, f"{module.tf}.compat.v1.{symbol.removeprefix('tf.')}")


def _is_only_in_v1(name: Any, call: Any) -> bool:
    """True if TensorFlow 2 has a name only there, or would take a call of it for another."""
    row = facade.find(name)
    if row is None or row.home != f"tensorflow.compat.v1:{name.removeprefix('tf.')}":
        return False
    if tables.exists(name, "v2") is False:
        return True
    change = tables.changed(name)
    return change is not None and (call is None or bool(differences(call, change)))


@codemod("estimator-names", stage=2, tier=SafetyTier.SAFE)
def find_estimator_names(module: Module) -> Iterator[Any]:
    bound, imported = module.needed("estimator2strategy", "estimator", "tf_estimator")
    for node, name in module.uses("tf.estimator"):
        part = module.part(node, "tf.estimator")
        if part is None or _is_guarded(node):
            continue
        canned = ".".join(name.split(".")[:3])
        now = canned.replace("tf.estimator", bound)
        is_of_tf2 = _means_tf2(module, part) if f"{canned}V2" in _canned_of_tf2() else False
        if is_of_tf2 is None:
            yield Todo(node, f"{now} is the class of TF 1.x, {now}V2 that of TF 2; losses differ")
        elif is_of_tf2:
            yield module.replace(module.part(node, canned) or node, f"{now}V2", [imported])
        else:
            yield module.replace(part, bound, [imported])


@functools.cache
def _canned_of_tf2() -> frozenset[str]:
    """The classes of TF 2 that have a namesake in TF 1: "tf.estimator.DNNClassifierV2"."""
    homes = [row.home for name, row in facade.rows().items() if name.startswith("tf.compat.v2.")]
    ours = "estimator2strategy.estimator:"
    return frozenset(home.replace(ours, "tf.estimator.") for home in homes if ours in home)


def _means_tf2(module: Module, estimator: ast.expr) -> bool | None:
    """True if `tf.estimator` is that of TF 2 where it is written; None if nothing tells."""
    written = module.written(estimator)
    is_facade = any(t.module == "estimator2strategy.tf1" for t, _ in module.source.imports)
    if is_facade or ".compat.v1." in written:
        return False
    how = era(module.source)
    if how is Era.UNKNOWN:
        return False if module.facts.is_legacy else None
    return how is Era.TF2


def _is_guarded(node: Any) -> bool:
    return any(
        isinstance(outer, (ast.If, ast.IfExp)) and "hasattr" in ast.unparse(outer.test)
        for outer in parents(node)
    )


# Modules that hold what a legacy name is, and how a program says them.
_HOMES = {
    "tensorflow.compat.v1": "tf",
    "estimator2strategy.tf1": "tf",
    "estimator2strategy.estimator": "tf.estimator",
    "estimator2strategy.estimator.tpu": "tf.estimator.tpu",
    "estimator2strategy.estimator.experimental": "tf.estimator.experimental",
}
# Written differently, and equal (tests/tools/migrate/test_proofs.py).
_EQUAL = {
    "tf.contrib.layers.xavier_initializer": "tf.glorot_uniform_initializer",
    "tf.contrib.layers.xavier_initializer_conv2d": "tf.glorot_uniform_initializer",
}


@codemod("contrib", stage=2, tier=SafetyTier.SAFE)
def find_contrib(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    called = {call.node.func: call for call in module.calls()}
    for node, name in module.uses("tf.contrib"):
        row = tables.contrib().find(name)
        part = module.part(node, row.name if row else name)
        if row is None or part is None:
            continue
        if row.status == "refused":
            message = f"{name} is gone. {row.advice}"
            yield Todo(node, message)
        now = _EQUAL.get(row.name) if _is_plain(called.get(part)) else None
        now = now or contrib_home(row)
        if now is not None:
            yield module.replace(part, module.tf + now.removeprefix("tf"))


@functools.cache
def _by_home() -> Any:
    """Names of the facade's own table outside of contrib, by what they are."""
    return {row.home: name for name, row in facade.rows().items() if ":" in row.home}


def contrib_home(row: Any) -> Any:
    """The name outside of contrib that is the same object; None if there is none."""
    module, _, attribute = row.home.partition(":")
    if module not in _HOMES or not attribute:
        return _by_home().get(row.home)
    name = f"{_HOMES[module]}.{attribute}"
    known = facade.find(name)
    if known is None or known.status == "refused":
        return None
    same = known.home == row.home or module.startswith("estimator2strategy")
    return name if same else None


def _is_plain(call: Any) -> bool:
    """True if an initializer is made as the one that it stands for would be."""
    if call is None or call.node.args:
        return False
    return all(
        keyword.arg in ("seed", "dtype")
        or (keyword.arg == "uniform" and ast.unparse(keyword.value) == "True")
        for keyword in call.node.keywords
    ) and not any(keyword.arg == "uniform" for keyword in call.node.keywords)


# TensorFlow 2.16 and 2.17 need NumPy 1, which does not have today's name.
_NEWER = {"numpy.trapz"}
# NumPy 2 has these again, for types of its own.
_BACK = {"numpy.bool", "numpy.long"}


@codemod("dropped-names", stage=2, tier=SafetyTier.SAFE)
def find_dropped_names(module: Module) -> Iterator[Any]:
    if not module.facts.is_legacy:
        return
    for node, name in imported_and_used(module.source):
        if isinstance(node, ast.Name) or unreached.is_expendable(node):
            continue
        if isinstance(node, ast.Attribute):
            node, name = _dropped_part(node, name)
        today = removed_names.todays(name)
        if today is None:
            continue
        change = None
        if removed_names.is_renamed(name) and name not in _NEWER:
            how = _renamed if isinstance(node, ast.Attribute) else _imported
            change = how(module, node, name, today)
        if change and name in _BACK:
            change = dataclasses.replace(change, tier=SafetyTier.REVIEW)
        yield change or Todo(node, f"{name} is gone; today: {today}")


def _dropped_part(node: Any, name: Any) -> Any:
    """The part of a dotted name that is gone: `np.int` of `np.int.mro`."""
    while isinstance(node.value, ast.Attribute) and removed_names.todays(name) is None:
        node, name = node.value, name.rpartition(".")[0]
    return node, name


def _renamed(module: Module, node: Any, name: Any, today: Any) -> Any:
    old_home, home = name.rpartition(".")[0], today.rpartition(".")[0]
    last = today.rpartition(".")[2]
    if not home:
        is_bound = any(today in scope.bindings for scope in module.source.scopes.values())
        return None if is_bound else module.replace(node, today)
    written = module.written(node.value)
    if home == old_home or (old_home, home) == ("numpy", "math"):  # np.inf, too
        return module.replace(node, f"{written}.{last}")
    if home.startswith(f"{old_home}."):
        inner = home.removeprefix(old_home)
        return module.replace(node, f"{written}{inner}.{last}", [(home, None, None)])
    bound, needed = module.needed(home, None)
    return module.replace(node, f"{bound}.{last}", [needed])


def _imported(module: Module, node: Any, name: Any, today: Any) -> Any:
    """The whole statement, where it imports this one name."""
    is_only_one = isinstance(node, ast.ImportFrom) and len(node.names) == 1
    if not is_only_one or not module.is_alone(node):
        return None
    home, _, last = today.rpartition(".")
    alias = node.names[0].asname or node.names[0].name
    renamed = "" if alias == last else f" as {alias}"
    if not home:
        return module.replace_statement(node, f"import {last}{renamed}")
    return module.replace_statement(node, f"from {home} import {last}{renamed}")


# Class of Keras 3 -> what it does, and the class of examples/tf1_optimizers.py.
_OPTIMIZERS = {row["keras"]: (row["what"], row["equal"]) for row in codemod_tables.rows("lookups")}
_MODULES = ("keras.optimizers.", "tf.keras.optimizers.", "tf.optimizers.")


@codemod("keras-3-lookups", stage=8, tier=SafetyTier.SAFE)
def find_keras3_lookups(module: Module) -> Iterator[Any]:
    if not module.facts.looks_up_rows or module.facts.of_specs:
        return
    for call in module.source.calls:
        name = call.name or ""
        if not name.startswith(_MODULES) or call.last not in _OPTIMIZERS:
            continue
        momentum = call.argument("momentum", 1)
        if call.last == "SGD" and (momentum is None or call.value("momentum", 1) == 0):
            continue
        what, written = _OPTIMIZERS[call.last]
        yield Todo(
            call.node,
            f"{call.last} is Keras 3's: {what}. {written} of examples/tf1_optimizers.py does not",
        )
