"""A model_fn becomes a `keras.Model`, and its KerasLoop `compile`, `fit` and an export."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.model_class import loop_calls, values, wrapping
from estimator2strategy.tools.migrate.model_class.helper_functions import Helpers, NewNames
from estimator2strategy.tools.migrate.model_class.model_class import ModelClass
from estimator2strategy.tools.migrate.model_class.model_fn_parts import read
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError
from estimator2strategy.tools.migrate.module import Module, outermost, parent_of

_HOOKS = ("tf.train.SessionRunHook", "tf.estimator.SessionRunHook")
# For strategies by stage 4, for the cores of a TPU by stage 5.
ADDED = ("dataset_fn_of", "mean_over_cores")
_GLOBAL_STEP = "self.model.global_step"
# Names of files that say nothing about a model.
_PLAIN = {"model", "train", "trainer", "main", "task", "program", "estimator", "run"}


@codemod(
    "model-fn-to-keras",
    stage=8,
    tier=SafetyTier.REVIEW,
    settles=("estimator-to-fit",),
    words=("KerasLoop",),
    is_of_program=True,
)
def find(module: Module) -> Iterator[Any]:
    if module.tf is None and "KerasLoop" not in module.text:
        return
    done = set()
    for call in module.source.calls:
        if module.source.name(call.node.func, call.scope) in loop_calls.LOOP:
            try:
                function = _model_fn(module, call)
                if function not in done:
                    done.add(function)
                    yield from _changes(module.program, function)
            except StaysError as stays:
                yield Todo(stays.node, stays.message)


def _changes(program: Any, function: Any) -> Iterator[Any]:
    """The changes for a model_fn, and for all loops of it."""
    home = program.module_of(function)
    loops = list(_loops(program, function))
    new_names = NewNames(program)
    helpers = Helpers(home, function, new_names)
    model = ModelClass(
        home,
        function,
        read(home, function, helpers),
        _class_name(home, function),
        wrapping.line_limit_of(home.source.path),
        helpers,
        is_on_cores=any(loop_calls.uses_tpu(made) for _, made in loops),
    )
    helpers.learn(model)
    texts = {home: [model.text().rstrip()]}
    imports = {home: ["keras"]}
    changes: list[Any] = []
    receivers: dict[Any, Any] = {}
    for module, made in loops:
        calls = loop_calls.LoopCalls(module, made, model, new_names)
        changes += calls.changes()
        receivers |= {program.defined(node): node for node in calls.receivers}
        texts.setdefault(module, []).extend(f"\n\n{one.strip()}" for one in calls.helpers)
        imports.setdefault(module, []).extend(calls.imports)
    for node in receivers.values():
        changes += loop_calls.receiver_changes(program, node)
    new_names.check_reads([function, *helpers.functions()])
    places = {home: function} | {m: outermost(made.node) for m, made in loops if m is not home}
    for module, of_module in texts.items():
        text = "".join(f"{one}\n" for one in dict.fromkeys(of_module))
        needed = [(name, None, None) for name in dict.fromkeys(imports[module])]
        if module is home:
            yield module.replace_statement(function, text, needed)
        else:
            yield module.insert_before(places[module], f"{text.strip()}\n\n\n", needed)
    yield from helpers.changes()
    yield from new_names.changes()
    yield from changes
    yield from _gone(program, model, [module for module, _ in loops])


def _loops(program: Any, function: Any) -> Iterator[Any]:
    """The files and calls that make a loop of a model_fn."""
    for module in program.readers(function):
        for call in module.source.calls:
            is_loop = module.source.name(call.node.func, call.scope) in loop_calls.LOOP
            if is_loop and program.defined(call.argument("model_fn", 0)) is function:
                yield module, call


def _gone(program: Any, model: Any, starts: Any) -> Iterator[Any]:
    """The statements that nothing reads any more, and what stays beside what has changed."""
    converted = [model.function, *model.helpers.functions()]
    changed = {program.module_of(function) for function in converted} | {*starts}
    modules = dict.fromkeys(module for start in starts for module in program.reached(start))
    for module in modules | dict.fromkeys(changed):
        gone = [*_hooks(module, modules), *_functions(module, modules, model)]
        for one in gone:
            yield module.replace_statement(one, "")
        if module in changed:
            yield from _others(module, [*converted, *gone])


def _hooks(module: Module, modules: Any) -> Iterator[Any]:
    """The hooks that have a callback beside them, and that nothing makes any more."""
    for node, _ in module.source.classes:
        bases = {module.name(base, module.source.scope) for base in node.bases}
        has_callback = f"{node.name}Callback" in module.source.scope.bindings
        is_hook = has_callback and bases & set(_HOOKS)
        if is_hook and not any(_reads(other, node) for other in modules):
            yield node


def _functions(module: Module, modules: Any, model: Any) -> Iterator[Any]:
    """The functions that earlier stages added, and metric_fn, if nothing else calls them."""
    of_model = {*ast.walk(model.function)}
    for node, _ in module.source.functions:
        is_known = node.name in ADDED or node is model.eval_metrics.function
        is_known &= isinstance(parent_of(node), ast.Module)
        if is_known and not any(_reads(other, node, of_model) for other in modules):
            yield node


def _reads(module: Module, definition: Any, but: Any = ()) -> Any:
    """True if a file names a function or a class, or one of its name, and not in these nodes."""
    if definition.name not in module.text:
        return False
    names = (node for node, _ in module.source.chains if node not in but)
    is_read = any(definition.name in (getattr(n, "id", ""), getattr(n, "attr", "")) for n in names)
    return is_read or any(target.name == definition.name for target, _ in module.source.imports)


def _others(module: Module, gone: Any) -> Iterator[Any]:
    """Names of tf-keras and of a LegacyModel, in what stays of the file."""
    inside = {inner for statement in gone for inner in ast.walk(statement)}
    for node, name in module.uses("tf.keras"):
        if node not in inside:
            yield module.replace(node, name.removeprefix("tf."))
    making = Rewriter(module, (values.initializer, values.regularizer))
    for call in module.source.calls:
        if call.node not in inside and any(rule(call.node, making) for rule in making.rules):
            yield module.replace(call.node, making.text(call.node))
    for node, _ in module.source.chains:
        written = node not in inside and module.written(node)
        if written == _GLOBAL_STEP:
            yield module.replace(node, "int(self.model.optimizer.iterations)")


def _model_fn(module: Module, made: Any) -> Any:
    program, node = module.program, made.argument("model_fn", 0)
    function = program.defined(node)
    if not isinstance(function, ast.FunctionDef) or not isinstance(parent_of(function), ast.Module):
        raise StaysError(made.node, "make its model_fn a function at the top of a file")
    home = program.module_of(function)
    if not program.may_change(home):
        raise StaysError(made.node, f"migrate {home.source.path} with this file: it has model_fn")
    return function


def _class_name(module: Module, function: Any) -> Any:
    """The name of the model: that of its function, or of the file."""
    base = re.sub(r"_?model_?fn_?", "_", function.name).strip("_")
    if not base:
        stem = Path(module.source.path).stem
        base = "" if stem in _PLAIN or not stem.isidentifier() else stem
    words = [word for word in base.split("_") if word]
    name = "".join(word.capitalize() for word in words) + "Model" if words else "KerasModel"
    return module.free(name, f"{name}OfKeras")
