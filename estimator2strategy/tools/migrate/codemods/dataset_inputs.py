"""Inputs: datasets without `tf.contrib.data`, as functions for a strategy, without iterators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, cast

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module, legacy_name, parent_of
from estimator2strategy.tools.reader.estimator_programs import input_functions, own_nodes, returned
from estimator2strategy.tools.reader.source import arguments_of

# Each takes the arguments of the method by the same names, at the same places.
METHODS = {
    "tf.contrib.data.batch_and_drop_remainder": "batch",
    "tf.contrib.data.padded_batch_and_drop_remainder": "padded_batch",
}


@codemod("contrib-datasets", stage=2, tier=SafetyTier.SAFE, words=("apply",))
def find_contrib_datasets(module: Module) -> Iterator[Any]:
    for made in module.calls(*METHODS):
        applied = parent_of(made.node)
        if made.is_open or not _is_only_argument_of_apply(made.node, applied):
            continue
        given = module.written(made.node)[len(module.written(made.node.func)) :]
        if "#" in given:  # a comment at the end of the arguments would hide the next one
            continue
        method = METHODS[legacy_name(made.name)]
        called = module.written(applied.func).removesuffix("apply") + method
        arguments = given.strip()[1:-1].rstrip().removesuffix(",") + ", drop_remainder=True"
        written = module.written_with(applied, {applied.func: called, made.node: arguments})
        yield module.replace(applied, written)


def _is_only_argument_of_apply(made: Any, applied: Any) -> Any:
    return (
        isinstance(applied, ast.Call)
        and isinstance(applied.func, ast.Attribute)
        and applied.func.attr == "apply"
        and applied.args == [made]
        and not applied.keywords
    )


_NAME = "dataset_fn_of"
_FUNCTION = '''

def dataset_fn_of(input_fn, params, global_batch_size):
    """For `strategy.distribute_datasets_from_function`: the batches of `input_fn`, per replica."""

    def dataset_fn(input_context):
        batch_size = input_context.get_per_replica_batch_size(global_batch_size)
        dataset = input_fn({**params, "batch_size": batch_size})
        return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    return dataset_fn
'''


@codemod("dataset-functions", stage=4, tier=SafetyTier.REVIEW)
def find_dataset_functions(module: Module) -> Iterator[Any]:
    if module.tf is None or _NAME in module.source.scope.bindings:
        return
    functions = [
        definition.node
        for definition in input_functions(module.source, module.project)
        if definition.source is module.source
        and isinstance(parent_of(definition.node), ast.Module)
        and arguments_of(cast(Any, definition.node))[:1] == ["params"]
        and _returns_dataset(definition)
    ]
    if functions:
        last = max(functions, key=lambda function: function.lineno)
        yield module.append_after(last, _FUNCTION)


def _returns_dataset(definition: Any) -> bool:
    """True if all that a function returns is made by methods of a dataset."""
    values = returned(definition.node)
    return bool(values) and all(_is_dataset(definition, value, 0) for value in values)


def _is_dataset(definition: Any, node: Any, depth: Any) -> Any:
    if depth > 20:
        return False
    if isinstance(node, ast.Name):
        scope = definition.scope.find(node.id)
        values = scope.bindings[node.id] if scope else []
        return bool(values) and all(
            isinstance(v, ast.expr)
            and (_names(v, node.id) or _is_dataset(definition, v, depth + 1))
            for v in values
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = definition.source.name(node.func, definition.scope)
        if name is not None and name.startswith("tf.data."):
            return "make_" not in name
        if name is None:
            return node.func.attr != "get_next" and _is_dataset(
                definition, node.func.value, depth + 1
            )
    return False


def _names(node: Any, name: Any) -> Any:
    """True if a value is made from the variable that it is assigned to: `d = d.batch(8)`."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id == name


_MAKES = ("make_one_shot_iterator", "make_initializable_iterator")


@codemod("one-shot-iterators", stage=4, tier=SafetyTier.REVIEW, words=_MAKES)
def find_one_shot_iterators(module: Module) -> Iterator[Any]:
    for definition in input_functions(module.source, module.project):
        if definition.source is not module.source:
            continue
        function = definition.node
        for node in own_nodes(function):
            if not isinstance(node, ast.Call) or _dataset(module, node) is None:
                continue
            if _is_called_otherwise(module, function):
                todo = "the program calls this itself: take a batch from the dataset there"
                yield Todo(node, todo)
            else:
                yield from _found(module, function, node)


def _is_called_otherwise(module: Module, function: Any) -> bool:
    """True if the file uses what a function returns; `lambda: f(1)`, `return f(1)` hand it on."""
    called = [call.node for call in module.calls() if call.last == getattr(function, "name", None)]
    return any(not isinstance(parent_of(node), (ast.Lambda, ast.Return)) for node in called)


def _found(module: Module, function: Any, made: Any) -> Iterator[Any]:
    """The change of one iterator; `made` is the call that makes it."""
    todo = Todo(made, "do what follows in a dataset.map(...), and return the dataset")
    dataset = module.written(_dataset(module, made))
    statement = module.statement(made)
    gone = []
    taken = _taken_at_once(made)
    if taken is None:
        name = _name(statement, made)
        taken = _only_taking(function, name) if name else None
        if taken is None:
            yield todo
            return
        gone.append(statement)
    statement = module.statement(taken)
    if isinstance(statement, ast.Return) and statement.value is taken:
        last = statement
    elif isinstance(statement, ast.Assign) and statement.value is taken:
        last = _returns_as_taken(function, statement)
        gone.append(statement)
    else:
        last = None
    if last is None or not all(module.is_alone(s) for s in (*gone, last)):
        yield todo
        return
    for line in gone:
        yield module.replace_statement(line, "")
    yield module.replace_statement(last, f"return {dataset}")


def _dataset(module: Module, call: Any) -> Any:
    """The dataset of which a call makes a one-shot iterator; None if it does not."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _MAKES:
        return None
    owner = module.name(function.value) if isinstance(function.value, ast.Attribute) else None
    if owner == "tf.data":
        return call.args[0] if len(call.args) == 1 else None
    return function.value if not call.args and not call.keywords else None


def _taken_at_once(made: Any) -> Any:
    """The call in `dataset.make_one_shot_iterator().get_next()`."""
    attribute = made.parent
    if isinstance(attribute, ast.Attribute) and attribute.attr == "get_next":
        call = parent_of(attribute)
        return call if isinstance(call, ast.Call) and not call.args else None
    return None


def _name(statement: Any, value: Any) -> Any:
    if isinstance(statement, ast.Assign) and statement.value is value:
        (target, *others) = statement.targets
        if isinstance(target, ast.Name) and not others:
            return target.id
    return None


def _only_taking(function: Any, name: Any) -> Any:
    """The call `name.get_next()`, if that is all that the function does with `name`."""
    uses = _uses(function, name)
    if len(uses) != 1:
        return None
    attribute = uses[0].parent
    if isinstance(attribute, ast.Attribute) and attribute.attr == "get_next":
        call = parent_of(attribute)
        return call if isinstance(call, ast.Call) and not call.args else None
    return None


def _uses(function: Any, name: Any) -> Any:
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _returns_as_taken(function: Any, statement: Any) -> Any:
    """The `return` that gives back, untouched, all that a statement has taken."""
    (target, *others) = statement.targets
    names: Any = target.elts if isinstance(target, ast.Tuple) else [target]
    if others or not all(isinstance(name, ast.Name) for name in names):
        return None
    written = [name.id for name in names]
    uses = [use for name in written for use in _uses(function, name)]
    returns = [node for node in own_nodes(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or len(uses) != len(written):
        return None
    value = returns[0].value
    given = value.elts if isinstance(value, ast.Tuple) else [value]
    if isinstance(target, ast.Tuple) != isinstance(value, ast.Tuple):
        return None
    same = [getattr(node, "id", None) for node in given] == written
    return returns[0] if same else None
