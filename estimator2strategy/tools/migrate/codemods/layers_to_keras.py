"""`tf.layers` to `tf.keras.layers`."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.call_text import ArgumentText, CallText
from estimator2strategy.tools.migrate.codemod import Change, SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.source import parents


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """The Keras layer that takes the place of a function of tf.layers.

    Attributes:
        keras: The class of keras.layers.
        arguments: Its arguments after `inputs`, in order.
        has_variables: True if it has any; their names must stay.
        trains: True if it does something else in training.
    """

    keras: str
    arguments: tuple[str, ...]
    has_variables: bool = False
    trains: bool = False


ROWS = {
    row["name"]: LayerRow(
        row["keras"], codemod_tables.words(row["arguments"]), bool(row["has_variables"]),
        bool(row["trains"]),
    )
    for row in codemod_tables.rows("layers")
}  # fmt: skip
# The classes, whose arguments are those of the functions, without the inputs.
_CLASSES = {
    f"tf.layers.{row.keras}": row for function, row in ROWS.items() if function != "flatten"
} | {"tf.layers.Flatten": LayerRow("Flatten", ("data_format",))}
# Losses that a Keras layer keeps to itself; tf.layers put them into the graph's collections.
_LOSSES = ("kernel_regularizer", "bias_regularizer", "activity_regularizer")
_SCOPES = ("tf.variable_scope", "tf.variable_op_scope")


@codemod("layers-to-keras", stage=6, tier=SafetyTier.REVIEW)
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls("tf.layers.batch_normalization"):
        message = (
            "a Keras layer keeps its updates to itself: make it, call it, and run layer.updates "
            "with the train op"
        )
        yield Todo(call.node, message)
    yield from _classes(module)
    for call in module.calls(*(f"tf.layers.{function}" for function in ROWS)):
        row = ROWS[str(module.name(call.node.func, call.scope)).rpartition(".")[2]]
        given = {name: call.argument(name, n) for n, name in enumerate(("inputs", *row.arguments))}
        if call.is_open or given["inputs"] is None:
            continue
        problem = _problem(module, call, given) if row.has_variables else None
        if problem:
            yield Todo(call.node, problem)
        else:
            tier = SafetyTier.REVIEW if row.has_variables or row.trains else SafetyTier.SAFE
            old = CallText(module, call.node)
            text = _layer(old, row, f"{module.tf}.keras.layers.{row.keras}")
            yield Change(*old.span, text, tier=tier)


def _classes(module: Module) -> Iterator[Any]:
    """The same for `tf.layers.Dense(3)(x)`."""
    for call in module.calls(*_CLASSES):
        row = _CLASSES[str(module.name(call.node.func, call.scope))]
        given = {name: call.argument(name, n) for n, name in enumerate(row.arguments)}
        if call.is_open or call.argument("_reuse") is not None:
            continue
        problem = _problem(module, call, given) if row.has_variables else None
        if problem:
            yield Todo(call.node, problem)
            continue
        old = CallText(module, call.node)
        named = [
            argument.named(name) if _is_elsewhere(row, name) else argument
            for name, argument in zip(row.arguments, old.arguments, strict=False)
        ]
        text = old.text(
            f"{module.tf}.keras.layers.{row.keras}", [*named, *old.arguments[len(named) :]]
        )
        tier = SafetyTier.REVIEW if row.has_variables or row.trains else SafetyTier.SAFE
        yield Change(*old.span, text, tier=tier)


def _problem(module: Module, call: Any, given: Any) -> Any:
    """Why a layer with variables cannot be told to keep them; None if it can."""
    if module.facts.restores_by_name:
        return (
            "init_from_checkpoint does not find variables of Keras by name: give it the variables"
        )
    if given.get("reuse") is not None:
        return "these weights are shared: make the layer once, and call it where it is used"
    if any(given[name] is not None for name in _LOSSES):
        return "a Keras layer keeps its losses to itself: add layer.losses to the loss"
    scopes = [_scope_call(module, outer) for outer in parents(call.node)]
    scopes = [scope for scope in scopes if scope is not None]
    if any(scope.argument("reuse") is not None for scope in scopes):
        return "these weights are shared: make the layer once, and call it where it is used"
    if scopes and given["name"] is None:
        return "give it the name that it has in checkpoints (dense, dense_1, ... in each scope)"
    if any(_is_entered_again(module, scope) for scope in scopes):
        return "its variable scope is entered again: Keras would call the second one scope_1"
    return None


def _scope_call(module: Module, node: Any) -> Any:
    """The call in `with tf.variable_scope(...):`."""
    if isinstance(node, ast.With):
        for item in node.items:
            call = module.source.call(item.context_expr, module.source.scope_of(node))
            if call is not None and module.name(call.node.func, call.scope) in _SCOPES:
                return call
    return None


def _is_entered_again(module: Module, scope: Any) -> Any:
    """True if the same scope is entered at another place, or by what is no constant name."""
    name = scope.value("name_or_scope", 0)
    if not isinstance(name, str):
        return True
    others = [call for call in module.calls(*_SCOPES) if call.value("name_or_scope", 0) == name]
    return len(others) > 1


def _layer(old: Any, row: Any, function: Any) -> str:
    """`Layer(arguments)(inputs)` for `layer(inputs, arguments)`."""
    names = ("inputs", *row.arguments)
    given = [(one.name or names[n], one) for n, one in enumerate(old.arguments)]
    table = dict(given)
    kept = [
        argument.named(name) if _is_elsewhere(row, name) else argument
        for name, argument in given
        if name not in ("inputs", "training")
    ]
    inside = table["inputs"].value
    if row.trains:
        training = table.get("training", ArgumentText(None, "False", "", ""))
        inside += f", {training.named('training').text}"
    return f"{old.text(function, kept)}({inside})"


def _is_elsewhere(row: Any, name: Any) -> Any:
    """True if Keras takes an argument at another position."""
    if row.keras.startswith("Conv"):
        # Between them Keras has `groups` (or `output_padding`).
        return row.arguments.index(name) > row.arguments.index("padding")
    return name in ("name", "data_format", "trainable") or row.keras in ("Dropout", "Flatten")
