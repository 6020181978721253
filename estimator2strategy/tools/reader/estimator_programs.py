"""Patterns of Estimator programs: calls that make an estimator, functions that are input_fns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.reader.project import (
    Definition,
    Project,
    is_tensorflow,
    is_tf,
)
from estimator2strategy.tools.reader.source import (
    Call,
    Function,
    LexicalScope,
    Source,
    arguments_of,
    kept,
    parents,
    walk,
)

RUNS = ("train", "evaluate", "predict")


def function_of(definition: Definition) -> Function:
    """The node of a definition that is no class."""
    assert not isinstance(definition.node, ast.ClassDef)
    return definition.node


def estimator_of(call: Call) -> Call | None:
    """The call that made the estimator of `estimator.train(...)`; None if that cannot be told."""
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in RUNS:
        return None
    made = call.source.call(function.value, call.scope)
    return made if made is not None and is_tf(made.name, "Estimator", "TPUEstimator") else None


def runs(source: Source) -> Iterator[tuple[Call, Call]]:
    """Each `estimator.train(...)`, `evaluate` and `predict`, with what made the estimator."""
    for call in source.calls:
        made = estimator_of(call)
        if made is not None:
            yield call, made


def is_optimizer_step(call: Call, *, of_project: bool) -> bool:
    """True if it is a method of an optimizer of TF1, or (`of_project`) one of the project's."""
    homes = ("@", *_OPTIMIZERS) if of_project else _OPTIMIZERS
    owner = getattr(call.node.func, "value", None)
    made = call.source.calls_behind(owner, call.scope) if owner is not None else []
    return bool(made) and all(
        maker.last.endswith("Optimizer") and (maker.name or "").startswith(homes) for maker in made
    )


_OPTIMIZERS = ("tf.train.", "tf.tpu.", "tf.contrib.", "tf.estimator.tpu.")


def given_input(call: Call) -> ast.expr | None:
    """The input_fn that `train`, `evaluate` or `predict` is given."""
    return call.argument("input_fn", 0)


def is_input_function(function: Function) -> bool:
    """True if a `def` is named as an input_fn, and not as the test of one."""
    name = function.name.strip("_")
    return name.endswith("input_fn") and not name.startswith("test_")


def input_functions(source: Source, project: Project) -> list[Definition]:
    """The input functions in a file: by their name, or because an estimator is given them."""
    found = {f: Definition(f, source) for f, _ in source.functions if is_input_function(f)}
    for call, _ in runs(source):
        given = given_input(call)
        definition = project.function(given, call.scope, source) if given is not None else None
        if definition is not None and definition.source is source:
            found[definition.node] = definition  # type: ignore[index]
    return list(found.values())


@kept
def in_input_functions(project: Project) -> set[ast.AST]:
    """The functions that the input functions of all files call, in whatever file they are."""
    starts = [d for source in project.sources for d in input_functions(source, project)]
    return {definition.node for definition in project.reachable(starts)}


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, those of functions and classes inside it left out."""
    todo: list[ast.AST] = list(function.body)  # type: ignore[attr-defined]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(node))


def length_of(node: ast.AST | None) -> int | None:
    """The number of elements that a list or tuple in the source has; None if it is not known."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)


def returned(function: Function) -> list[ast.expr]:
    """The expressions in a function's own return statements."""
    return [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value]


def captured_tensors(
    function: Function | ast.Lambda, model: Function, source: Source
) -> dict[str, ast.Name]:
    """Names in an inner function that model_fn assigns a tensor, with their first use.

    Only what certainly is a tensor counts: the result of a function of TensorFlow, and model_fn's
    own features and labels.
    """
    outer = source.scopes[model]
    found: dict[str, ast.Name] = {}
    for node in walk(function):
        if not isinstance(node, ast.Name) or node.id in found:
            continue
        where = _scope_at(node, source)
        if where is outer or where.find(node.id) is not outer:  # a default is model_fn's own
            continue
        if node.id in ("features", "labels") and node.id in arguments_of(model):
            if outer.bindings[node.id] == [None]:
                found[node.id] = node
            continue
        values = [v for v in outer.bindings[node.id] if isinstance(v, ast.expr)]
        known = values and len(values) == len(outer.bindings[node.id])
        if known and all(_is_tensor(value, outer, source) for value in values):
            found[node.id] = node
    return found


def _scope_at(node: ast.AST, source: Source) -> LexicalScope:
    """The scope that a node is in, which may be a lambda's; defaults are of the scope around it."""
    inner = node
    for outer in parents(node):
        if outer in source.scopes and inner in _body(outer):
            return source.scopes[outer]
        inner = outer
    return source.scope


def _body(block: Any) -> list[ast.AST]:
    return block.body if isinstance(block.body, list) else [block.body]


# Functions of TensorFlow whose result is no tensor that a TPU computes.
_NO_TENSOR = {
    "get_variable",
    "Variable",
    "get_or_create_global_step",
    "get_global_step",
    "create_global_step",
    "trainable_variables",
    "global_variables",
    "get_collection",
    "list_variables",
    "Summary",
    "no_regularizer",
    "constant",
    "shape",
}
_OPS = {
    "abs", "add", "add_n", "argmax", "argmin", "cast", "clip_by_value", "concat", "cumsum",
    "divide", "equal", "exp", "expand_dims", "gather", "greater", "identity", "less", "log",
    "logical_and", "matmul", "maximum", "minimum", "multiply", "norm", "not_equal", "one_hot",
    "reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "reshape", "round", "sigmoid", "sign", "split", "sqrt", "square", "squeeze",
    "stack", "subtract", "tanh", "tile", "to_float", "to_int32", "transpose", "truediv", "unstack",
    "where",
}  # fmt: skip
_TENSOR_MODULES = ("tf.nn.", "tf.losses.", "tf.layers.", "tf.math.", "tf.image.")


def _is_tensor(value: ast.expr, scope: LexicalScope, source: Source) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = source.name(value.func, scope)
    if not is_tensorflow(name) or name is None:
        return False
    last = name.rpartition(".")[2]
    if last in _NO_TENSOR or last[:1].isupper():
        return False
    return last in _OPS or name.startswith(_TENSOR_MODULES)
