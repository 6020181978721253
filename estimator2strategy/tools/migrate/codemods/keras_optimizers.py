"""Optimizers of `tf.train` to Keras."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables, core_sums
from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module, parent_of

_STEPS = ("tf.train.get_global_step", "tf.train.get_or_create_global_step")


@dataclasses.dataclass(frozen=True)
class OptimizerRow:
    """An optimizer of Keras that takes the place of one of TF1.

    Attributes:
        keras: The class of keras.optimizers.
        arguments: Its arguments in order, each with its name in Keras; "" for none.
        fixed: Arguments whose defaults differ, with what tf.train had.
        constant_rate: True if it is the same only while the learning rate does not change.
    """

    keras: str
    arguments: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...] = ()
    constant_rate: bool = False


_ROWS = {
    row["name"]: OptimizerRow(
        row["keras"], codemod_tables.pairs(row["arguments"]), codemod_tables.pairs(row["fixed"]),
        bool(row["constant_rate"]),
    )
    for row in codemod_tables.rows("optimizers") if row["keras"]
}  # fmt: skip
# Optimizers that are another function in Keras, or none: see the table of codemods.md.
_OTHERS = {
    row["name"]: row["why_not"] for row in codemod_tables.rows("optimizers") if row["why_not"]
}
_STAYS = "keep it in a model_fn; for Keras 3 take the one of examples/tf1_optimizers.py"


@codemod("keras-optimizers", stage=5, tier=SafetyTier.REVIEW)
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls(*_OTHERS):
        yield Todo(call.node, f"{_OTHERS[str(module.name(call.node.func, call.scope))]}: {_STAYS}")
    for node, _ in module.source.classes:
        if any(
            module.name(base, module.source.scope) == "tf.train.Optimizer" for base in node.bases
        ):
            yield Todo(
                node, "write it as a keras.optimizers.Optimizer, or take one of Keras' (AdamW)"
            )
    for call in module.calls(*_ROWS):
        row = _ROWS[str(module.name(call.node.func, call.scope))]
        if _is_used_at_once(module, call):
            yield _named(module, call)
            continue
        problem = _problem(module, call, row)
        if problem:
            yield Todo(call.node, problem)
        else:
            yield from _changes(module, call, row)
    yield from core_sums.missing_functions(module)


def _problem(module: Module, call: Any, row: Any) -> Any:
    """Why an optimizer has to stay; None if it can change."""
    statement = module.statement(call.node)
    if call.is_open or len(call.node.args) > len(row.arguments):
        return "write its arguments by name"
    known = {legacy for legacy, _ in row.arguments} | {"name"}
    unknown = [keyword.arg for keyword in call.node.keywords if keyword.arg not in known]
    if unknown:
        return f"Keras has nothing for {', '.join(unknown)}"
    rate = call.argument("learning_rate", 0)
    if row.constant_rate and not isinstance(call.value("learning_rate", 0), float):
        return "Keras' momentum is the same only for a constant learning rate"
    if rate is None and row.keras in ("SGD", "Ftrl"):
        return "write its arguments by name"
    bound = _bound(module, call)
    if bound is None or not module.is_alone(statement):
        return "give it a name, in a statement of its own"
    wrap = core_sums.wrap_of(module, call, bound)
    wrapped_later = wrap is not None and wrap.statement is not None
    if len(call.scope.bindings.get(bound, ())) != 1 + wrapped_later:
        return f"{bound} is one of several optimizers: choose among Keras optimizers"
    if wrap is not None and (wrap.reduction is None or not wrap.can_change(module)):
        return "how CrossShardOptimizer sums cannot be seen here"
    if wrap is None and module.facts.has_strategies:
        return "under a strategy Keras sums gradients where tf.train's optimizers took the mean"
    for use in _uses(module, call, bound):
        if _method(use) is None and not (wrap is not None and wrap.is_around(use)):
            return f"{bound} is used in other ways than to minimize and to apply gradients"
    steps = [step for step in map(_step, _methods(module, call, bound)) if step is not None]
    if not all(_is_global_step(module, step, call.scope) for step in steps):
        return "it counts in another variable than the global step"
    return None


def _is_used_at_once(module: Module, call: Any) -> Any:
    """True if it is `AdamOptimizer(...).minimize(...)`, and `optimizer` is no name here."""
    outer = getattr(call.node.parent, "parent", None)
    return (
        isinstance(call.node.parent, ast.Attribute)
        and isinstance(outer, ast.Call)
        and isinstance(module.statement(outer), (ast.Assign, ast.Return))
        and module.is_alone(module.statement(outer))
        and call.scope.find("optimizer") is None
    )


def _named(module: Module, call: Any) -> Any:
    """The optimizer in a statement of its own, before the one that uses it."""
    statement = module.statement(call.node)
    rest = module.written_with(statement, {call.node: "optimizer"})
    return module.replace_statement(statement, f"optimizer = {module.written(call.node)}\n{rest}")


def _changes(module: Module, call: Any, row: Any) -> Iterator[Any]:
    statement = module.statement(call.node)
    bound = _bound(module, call)
    methods = _methods(module, call, bound)
    wrap = core_sums.wrap_of(module, call, bound)
    function: Any = wrap and wrap.reduction
    # Code between the two calls worked on the gradients of the divided loss.
    divides = function == core_sums.MEAN and any(
        method.func.attr == "compute_gradients" for method in methods
    )
    if divides:
        function = core_sums.SUM
    counts = any(_step(method) is not None for method in methods)
    lines = [f"{bound} = {module.tf}.keras.optimizers.{row.keras}({_arguments(module, call, row)})"]
    if counts:
        lines.append(f"{bound}.iterations = {module.tf}.train.get_or_create_global_step()")
    if wrap is not None and wrap.statement is None:
        lines.append(core_sums.assigned(bound, function))
    yield module.replace_statement(statement, "\n".join(lines))
    if wrap is not None:
        yield from wrap.changes(module, bound, function)
    for method in methods:
        yield module.replace(method, _written(module, method, bound, divides))


def _arguments(module: Module, call: Any, row: Any) -> str:
    """The arguments of the Keras optimizer, as they are written there."""
    names = dict(row.arguments) | {"name": "name"}
    given = {
        names[legacy]: module.written(value)
        for (legacy, _), value in zip(row.arguments, call.node.args, strict=False)
    }
    given |= {names[keyword.arg]: module.written(keyword.value) for keyword in call.node.keywords}
    given |= {name: value for name, value in row.fixed if name not in given}
    return ", ".join(f"{name}={value}" for name, value in given.items() if name)


def _written(module: Module, method: Any, bound: Any, divides: Any) -> str:
    """The code that replaces a call of minimize, compute_gradients or apply_gradients."""
    tf = module.tf
    given = [module.written(node) for node in method.args]
    named = {keyword.arg: module.written(keyword.value) for keyword in method.keywords}
    if method.func.attr == "apply_gradients":
        return f"{bound}.apply_gradients({named.get('grads_and_vars') or given[0]})"
    loss = named.get("loss") or given[0]
    if divides:
        simple = isinstance(ast.parse(loss, mode="eval").body, (ast.Name, ast.Attribute, ast.Call))
        loss = f"{loss if simple else f'({loss})'} / {tf}.tpu.cross_replica_sum(1.0)"
    position = 2 if method.func.attr == "minimize" else 1
    positional = given[position] if len(given) > position else None
    variables = named.get("var_list") or positional or f"{tf}.trainable_variables()"
    pairs = f"zip({tf}.gradients({loss}, {variables}), {variables})"
    if method.func.attr == "minimize":
        return f"{bound}.apply_gradients({pairs})"
    return f"list({pairs})"


def _bound(module: Module, call: Any) -> Any:
    """The name that a statement gives to an optimizer, or to what is summed over cores of it."""
    statement, value = module.statement(call.node), call.node
    if module.source.scope_of(value) is call.scope and isinstance(
        value.parent, (ast.Call, ast.keyword)
    ):
        outer = (
            parent_of(value) if isinstance(parent_of(value), ast.Call) else parent_of(value).parent
        )
        if any(outer is wrapper.node for wrapper in module.calls(*core_sums.WRAPPERS)):
            value = outer
    if isinstance(statement, ast.Assign) and statement.value is value:
        (target, *others) = statement.targets
        if isinstance(target, ast.Name) and not others:
            return target.id
    return None


def _uses(module: Module, call: Any, bound: Any) -> Iterator[Any]:
    for node, scope in module.source.chains:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id == bound and scope.find(bound) is call.scope:
            yield node


def _method(use: Any) -> Any:
    """The call of a method of an optimizer that is understood, by what is read of it."""
    called = use.parent
    known = ("minimize", "compute_gradients", "apply_gradients")
    if not isinstance(use, ast.Attribute) or not isinstance(use.value, ast.Name):
        return None
    if use.attr not in known or not isinstance(called, ast.Call) or called.func is not use:
        return None
    allowed = {"loss", "global_step", "var_list", "grads_and_vars", "name"}
    return called if {k.arg for k in called.keywords} <= allowed else None


def _methods(module: Module, call: Any, bound: Any) -> Any:
    methods = map(_method, _uses(module, call, bound))
    return [method for method in methods if method is not None]


def _step(method: Any) -> Any:
    """The global_step that a method is given."""
    for keyword in method.keywords:
        if keyword.arg == "global_step":
            return keyword.value
    takes = method.func.attr in ("minimize", "apply_gradients")
    return method.args[1] if takes and len(method.args) > 1 else None


def _is_global_step(module: Module, node: Any, scope: Any) -> Any:
    call = module.source.call(node, scope)
    return call is not None and module.name(call.node.func, call.scope) in _STEPS
