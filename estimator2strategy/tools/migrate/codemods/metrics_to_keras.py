"""`tf.metrics` to Keras metrics."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module, parent_of
from estimator2strategy.tools.reader.source import parents


@dataclasses.dataclass(frozen=True)
class KerasMetricRow:
    """The Keras metric that takes the place of a function of tf.metrics.

    Attributes:
        keras: The class of keras.metrics.
        tensors: Its arguments that hold values, in order.
        options: Its other arguments, and what Keras calls them.
        tier: The certainty that the number stays, without weights.
        values: The argument of update_state, where that is not the tensors themselves: Keras's own
            classes weigh batches, and not examples, where there is one value each.
    """

    keras: str
    tensors: tuple[str, ...] = ("labels", "predictions")
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    tier: SafetyTier = SafetyTier.REVIEW
    values: str | None = None


_ROWS = {
    row["name"]: KerasMetricRow(
        row["keras"], codemod_tables.words(row["tensors"]),
        dict(codemod_tables.pairs(row["options"])), SafetyTier[row["tier"].upper()],
        row["values"] or None,
    )
    for row in codemod_tables.rows("metrics")
}  # fmt: skip
_LOGICAL = {
    f"tf.{module}{name}"
    for module in ("", "math.")
    for name in (
        "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and",
        "logical_or", "logical_not",
    )
}  # fmt: skip
_BOOLEAN = {"precision", "recall"} | {name for name in _ROWS if name.endswith("tives")}


@codemod("metrics-to-keras", stage=3, tier=SafetyTier.SAFE)
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        if name.startswith("tf.metrics."):
            yield _found(module, call, name.removeprefix("tf.metrics."))


def _found(module: Module, call: Any, function: Any) -> Any:
    row = _ROWS.get(function)
    if row is None:
        where = "see keras_metric_for in migration_guide/metrics.md"
        return Todo(call.node, f"no Keras class computes {function}; {where}")
    given = {name: call.argument(name, number) for number, name in enumerate(row.tensors)}
    weights = call.argument("weights", len(row.tensors) + (function == "mean_iou"))
    known = {*row.tensors, *row.options, "weights", "name"}
    others = {keyword.arg for keyword in call.node.keywords} - known
    positional = len(row.tensors) + 1 + (function == "mean_iou")
    if call.is_open or None in given.values() or others or len(call.node.args) > positional:
        what = ", ".join(sorted(filter(None, others))) or "these arguments"
        return Todo(call.node, f"Keras has nothing for {what} of {function}")
    statement = module.statement(call.node)
    problem = _problem(module, call, statement)
    if problem:
        return Todo(call.node, problem)
    tier = row.tier
    if weights is not None:
        tier = SafetyTier.REVIEW
    elif function in _BOOLEAN and all(_is_logical(module, node) for node in given.values()):
        tier = SafetyTier.SAFE
    if not _is_in_known_function(module, call):
        tier = SafetyTier.REVIEW
    texts = {name: module.written(node) for name, node in given.items()}
    if function in _BOOLEAN:
        # Keras compares scores with 0.5; tf.metrics casts them.
        texts |= {
            name: f"{module.tf}.cast({texts[name]}, {module.tf}.bool)"
            for name, node in given.items()
            if not _is_logical(module, node)
        }
    options = _options(module, call, row, function)
    change = _statements(module, call, row, texts, weights, options)
    return dataclasses.replace(change, tier=tier)


def _is_in_known_function(module: Module, call: Any) -> Any:
    """True if the function is a model_fn, or is one that a spec gets as its metric_fn."""
    function = call.scope.function
    if function is None:
        return False
    if any(model.node is function for model in module.project.model_functions):
        return True
    name = function.name
    return name.endswith(("metric_fn", "metrics_fn")) or any(
        isinstance(node, ast.Tuple) and node.elts and getattr(node.elts[0], "id", None) == name
        for node in ast.walk(module.source.tree)
    )


def _problem(module: Module, call: Any, statement: Any) -> Any:
    """Why the call cannot be taken out of its statement; None if it can."""
    if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
        return "move this out of the statement that it is in"
    if not module.is_alone(statement):
        return "write this statement on a line of its own"
    for outer in parents(call.node):
        if outer is statement:
            break
        if isinstance(outer, (ast.Lambda, ast.IfExp, ast.BoolOp, ast.comprehension, ast.DictComp)):
            return "write this as a function of several lines: a Keras metric is made, then updated"
    taken_apart = "the pair is taken apart; a Keras metric has result()"
    parent = call.node.parent
    if isinstance(parent, ast.Dict):
        return None if _is_handed_to_spec(module, parent, call.scope) else taken_apart
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        if isinstance(target, ast.Subscript):
            owner = target.value
            named = isinstance(owner, ast.Name) and _is_name_handed_on(module, owner.id, call.scope)
            return None if named else taken_apart
        if isinstance(target, ast.Name) and _is_only_handed_on(module, target.id, call.scope):
            return None
    return taken_apart


def _is_handed_to_spec(module: Module, node: Any, scope: Any) -> Any:
    """True if a dict, or what is made of it, goes to a spec or to the caller, and nowhere else."""
    parent = node.parent
    if isinstance(parent, ast.keyword):
        return parent.arg == "eval_metric_ops" or _is_spec(parent_of(parent))
    if isinstance(parent, (ast.Return, ast.Tuple)):
        return True
    if isinstance(parent, ast.Call):
        return _is_spec(parent)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        return isinstance(target, ast.Name) and _is_name_handed_on(module, target.id, scope)
    return False


def _is_spec(node: Any) -> Any:
    name = getattr(getattr(node, "func", None), "attr", None) or getattr(
        getattr(node, "func", None), "id", ""
    )
    return str(name).endswith("EstimatorSpec")


def _is_name_handed_on(module: Module, name: Any, scope: Any) -> bool:
    """The same for a variable: it may be given entries, but is not read otherwise."""
    for node, where in module.source.chains:
        if where.find(name) is not scope or _root(node) != name:
            continue
        parent = parent_of(node)
        if not isinstance(node, ast.Name):
            return False
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
            continue
        if isinstance(parent, ast.Return):
            continue
        spec = parent_of(parent) if isinstance(parent, ast.keyword) else parent
        if not _is_spec(spec):
            return False
    return True


def _is_only_handed_on(module: Module, name: Any, scope: Any) -> bool:
    """True if a variable is assigned once, and read only as the value of a dict's entry."""
    if len(scope.bindings.get(name, ())) != 1:
        return False
    reads = [
        node
        for node, where in module.source.chains
        if where.find(name) is scope and _root(node) == name
    ]
    return bool(reads) and all(
        isinstance(node, ast.Name) and _is_entry(module, node, scope) for node in reads
    )


def _is_entry(module: Module, node: Any, scope: Any) -> Any:
    """True if it is the value of an entry of a dict that is handed to a spec."""
    parent = node.parent
    if isinstance(parent, ast.Dict):
        return node in parent.values and _is_handed_to_spec(module, parent, scope)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Subscript):
        return False
    owner = parent.targets[0].value
    return isinstance(owner, ast.Name) and _is_name_handed_on(module, owner.id, scope)


def _root(node: Any) -> Any:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _options(module: Module, call: Any, row: Any, function: Any) -> Any:
    """The constructor's arguments, each as it is written there."""
    written = []
    for legacy, keras in row.options.items():
        position = 2 if function == "mean_iou" else None
        value = call.argument(legacy, position)
        if value is not None:
            written.append(f"{keras}={module.written(value)}")
    name = call.argument("name")
    key = _key(call.node)
    if name is not None:
        written.append(f"name={module.written(name)}")
    elif isinstance(key, ast.Constant) and isinstance(key.value, str):
        written.append(f"name={module.written(key)}")
    elif isinstance(call.node.parent, ast.Assign) and isinstance(
        call.node.parent.targets[0], ast.Name
    ):
        written.append(f"name='{call.node.parent.targets[0].id}'")
    return written


def _key(node: Any) -> Any:
    """The key of the dict's entry that a node is."""
    parent = node.parent
    if isinstance(parent, ast.Dict):
        return parent.keys[parent.values.index(node)]
    target = parent.targets[0]
    return target.slice if isinstance(target, ast.Subscript) else None


def _statements(module: Module, call: Any, row: Any, texts: Any, weights: Any, options: Any) -> Any:
    """The metric is made, updated, and put in the place of the call."""
    tf = module.tf
    statement: Any = module.statement(call.node)
    target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else None
    direct = isinstance(target, ast.Name) and statement.value is call.node
    bound = target.id if direct else _variable(call)
    values = row.values.format(tf=tf, **texts) if row.values else ", ".join(texts.values())
    if weights is not None:
        values += f", sample_weight={module.written(weights)}"
    lines = [
        f"{bound} = {tf}.keras.metrics.{row.keras}({', '.join(options)})",
        f"{bound}.update_state({values})",
    ]
    if not direct:
        lines.append(module.written_with(statement, {call.node: bound}))
    return module.replace_statement(statement, "\n".join(lines))


def _variable(call: Any) -> Any:
    """A name for the metric that the function has not."""
    key = _key(call.node)
    text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
    name = "".join(c if c.isalnum() else "_" for c in text).strip("_").lower() or call.last
    name = f"{name}_metric" if not name[0].isdigit() else f"metric_{name}"
    while call.scope.find(name) is not None:
        name += "_"
    return name


def _is_logical(module: Module, node: Any) -> Any:
    return isinstance(node, ast.Call) and module.name(node.func) in _LOGICAL
