"""Calls of an Estimator, and what they are given: inputs, steps, options; and their results."""

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.engine.names import tables
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.estimator_programs import (
    RUNS,
    function_of,
    given_input,
    in_input_functions,
    input_functions,
    returned,
    runs,
)
from estimator2strategy.tools.reader.project import Definition, Project, is_tf
from estimator2strategy.tools.reader.source import (
    Call,
    Import,
    LexicalScope,
    Source,
    arguments_of,
    parents,
    walk,
)


def called_input_fn(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    for call, given in _inputs(source):
        if isinstance(given, ast.Call):
            called = project.definition(source.resolve(given.func, call.scope))
            if called is None or isinstance(called.node, ast.ClassDef):
                continue
            if _returns_dataset(called, project, set()):
                yield Hit(given, f"{called.node.name} is called here, and returns a dataset")
            functions = [
                project.function(value, called.scope, called.source)
                for value in returned(function_of(called))
            ]
        else:
            functions = [project.function(given, call.scope, source)]
        known = [(function.node, function.source) for function in functions if function]
        for function, home in known or _lambda_of(given, call.scope, source, project):
            if name := _captured(function, home, project):
                yield Hit(given, f"{name} is made outside of the function that uses it")


def _inputs(source: Source) -> list[tuple[Call, ast.expr]]:
    """(the call, what it is given for input_fn) of all that run an Estimator."""
    found = {call: given_input(call) for call, _ in runs(source)}
    for call in source.calls:
        # Of all that is called `train`, an Estimator's alone has an argument of this name.
        if call.last in RUNS or is_tf(call.name, "TrainSpec", "EvalSpec"):
            found.setdefault(call, call.argument("input_fn"))
    return [(call, given) for call, given in found.items() if given is not None]


def _lambda_of(
    node: ast.expr, scope: LexicalScope, source: Source, project: Project
) -> list[tuple[ast.AST, Source]]:
    """The lambda that is given, also by a name, here or in the file that it is imported from."""
    values: list[Any] = [node]
    if isinstance(node, ast.Name):
        where = scope.find(node.id)
        values = where.bindings[node.id] if where else []
    if len(values) == 1 and isinstance(values[0], Import) and values[0].name:
        path = project.imported_file(source, values[0])
        other = project.load(path) if path else None
        if other is None:
            return []
        source, values = other, other.scope.bindings.get(values[0].name, [])
    return [(v, source) for v in values if isinstance(v, ast.Lambda) and len(values) == 1]


def _captured(function: ast.AST, source: Source, project: Project) -> str | None:
    """The name of a dataset that an input_fn reads, and that was made around it."""
    inner = source.scopes[function]
    for node in walk(function):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        where = inner.find(node.id)
        if where is None or where is inner:
            continue
        if _is_dataset(node, where, source, project, set()):
            return node.id
    return None


def _is_dataset(
    node: ast.expr, scope: LexicalScope, source: Source, project: Project, seen: set[ast.Call]
) -> bool:
    """True if all that a name or call may be is made by tf.data."""
    calls = source.calls_behind(node, scope)
    return bool(calls) and all(_makes_dataset(call, project, seen) for call in calls)


def _makes_dataset(call: Call, project: Project, seen: set[ast.Call]) -> bool:
    """True if a chain of calls starts in tf.data: `tf.data.TFRecordDataset(f).map(g).batch(8)`."""
    if call.node in seen:
        return True  # of itself: `data = data.map(f)`
    seen.add(call.node)
    name = call.name or ""
    if name.startswith(("tf.data.", "tf.contrib.data.")):
        return ".Dataset." in name or call.last.lower().endswith("dataset")
    function = call.node.func
    called = project.definition(call.source.resolve(function, call.scope))
    if called is not None:
        is_function = not isinstance(called.node, ast.ClassDef)
        return is_function and _returns_dataset(called, project, seen)
    if not isinstance(function, ast.Attribute):
        return False
    return _is_dataset(function.value, call.scope, call.source, project, seen)


def _returns_dataset(definition: Definition, project: Project, seen: set[ast.Call]) -> bool:
    values = returned(function_of(definition))
    source, scope = definition.source, definition.scope
    return bool(values) and all(_is_dataset(v, scope, source, project, seen) for v in values)


def endless_train(source: Source, context: Context) -> Iterator[Hit]:
    for call, _ in runs(source):
        if call.is_open or _has_end(call) or call.argument("hooks") is not None:
            continue
        function = context.project.function(given_input(call), call.scope, source)
        if function is None or not _repeats(function, context.project):
            continue
        yield Hit(call.node, f".{call.last}() has no number of steps, and its input repeats")


def _has_end(call: Call) -> bool:
    if call.last == "predict":
        return False
    names = {"train": (("steps", 2), ("max_steps", 3)), "evaluate": (("steps", 1),)}[call.last]
    for name, position in names:
        argument = call.argument(name, position)
        if argument is not None and call.source.constant(argument, call.scope) is not None:
            return True
    return False


def _repeats(function: Definition, project: Project) -> bool:
    """True if it surely makes a dataset that repeats without end."""
    for call in project.calls_of(function):
        if call.last == "repeat" and not call.node.args and not call.node.keywords:
            for outer in parents(call.node):
                if outer is function.node:
                    break
                if isinstance(outer, (ast.If, ast.IfExp)):
                    return False
            if _may_return_before(call.node, function.node):
                return False
            return not any(other.last == "take" for other in project.calls_of(function))
    return False


def _may_return_before(node: ast.Call, function: ast.AST) -> bool:
    """True if a function may have returned before it comes to a call."""
    returns = (n for n in walk(function) if isinstance(n, ast.Return))
    return any(end.lineno < node.lineno for end in returns if next(parents(end)) is not function)


def steps_and_max_steps(source: Source, context: Context) -> Iterator[Hit]:
    for call, made in runs(source):
        values = {"steps": call.value("steps", 2 if call.last == "train" else 1)}
        if call.last == "predict":
            continue
        if call.last == "train":
            values["max_steps"] = call.value("max_steps", 3)
            if all(isinstance(value, int) for value in values.values()):
                yield Hit(call.node, "train takes steps or max_steps, not both")
        for name, value in values.items():
            if isinstance(value, (int, float)) and value <= 0:
                yield Hit(call.node, f"{name}={value} is refused: it must be positive")
            elif isinstance(value, float) and made.last == "TPUEstimator":
                yield Hit(call.node, f"{name}={value} is refused: it must be an int")


_HOMES = ("tf.contrib.learn", "tf.estimator", "tf.estimator.tpu")
# Functions of NumPy that refuse what is no number.
_OF_NUMBERS = {
    f"numpy.{name}"
    for name in (
        "abs", "absolute", "add", "ceil", "divide", "exp", "expm1", "floor", "log", "log10",
        "log1p", "log2", "maximum", "mean", "minimum", "multiply", "rint", "round", "sign", "sqrt",
        "square", "subtract", "tanh",
    )
}  # fmt: skip


def indexed_predictions(source: Source, context: Context) -> Iterator[Hit]:
    made = {call.node: call for call in source.calls if _is_predict(call, context.project)}
    if not made:
        return
    named = (
        (name, (source.assigned(name, source.scope_of(name)) or (None,))[0])
        for name in source.all_of(ast.Name)
        if hasattr(name, "parent")
    )
    for used in (*made, *(name for name, value in named if value in made)):
        how = _misuse(used, source)
        if how and not unreached.is_tried(used, unreached.ANY):
            yield Hit(used, f"predict is a generator, which has no {how}")


def _is_predict(call: Call, project: Project) -> bool:
    if call.last != "predict" or not isinstance(call.node.func, ast.Attribute):
        return False
    if call.value("as_iterable") is False:  # of tf.contrib.learn
        return False
    made = call.source.call(call.node.func.value, call.scope)
    return made is not None and all(map(_is_estimator, _makers(made, project)))


def _makers(made: Call, project: Project) -> list[Call | None]:
    """The call that makes an object, or those whose result a function of the program returns."""
    function = project.definition(made.source.resolve(made.node.func, made.scope))
    if function is None or isinstance(function.node, ast.ClassDef):
        return [made]
    values = returned(function_of(function))
    return [function.source.call(value, function.scope) for value in values] or [made]


def _is_estimator(call: Call | None) -> bool:
    home, _, name = ((call and call.name) or "").rpartition(".")
    # The predictions of SKCompat are arrays.
    return home in _HOMES and name[:1].isupper() and name != "SKCompat"


def _misuse(node: ast.AST, source: Source) -> str | None:
    outer = next(parents(node), None)
    if isinstance(outer, ast.Subscript) and outer.value is node:
        return "items"
    if isinstance(outer, ast.BinOp) and not isinstance(outer.op, ast.Mod):
        return "numbers"
    if not isinstance(outer, ast.Call) or node not in outer.args:
        return None
    if getattr(outer.func, "id", None) == "len":
        return "length"
    return "numbers" if source.name(outer.func, source.scope_of(outer)) in _OF_NUMBERS else None


def session_options(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if is_tf(call.name, "RunConfig") and ".learn." not in call.name:
            given = call.argument("session_config")
            if given is not None and source.constant(given, call.scope) is not None:
                yield Hit(
                    given,
                    "only some fields of a session_config have a meaning: there is no Session",
                )


def session_inside(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    functions = [m.definition for m in project.model_functions if m.source is source]
    for definition in (*functions, *input_functions(source, project)):
        for call in project.calls_of(definition):
            if is_tf(call.name, "Session", "InteractiveSession") and call.name.count(".") == 1:
                yield Hit(call.node, f"a Session in {definition.node.name}")


_QUEUES = {
    f"tf.train.{name}"
    for name in (
        "batch",
        "batch_join",
        "input_producer",
        "limit_epochs",
        "maybe_batch",
        "maybe_shuffle_batch",
        "range_input_producer",
        "shuffle_batch",
        "shuffle_batch_join",
        "slice_input_producer",
        "string_input_producer",
        "add_queue_runner",
    )
} | {
    "tf.contrib.training.bucket",
    "tf.contrib.training.bucket_by_sequence_length",
    "tf.contrib.training.rejection_sample",
    "tf.contrib.training.stratified_sample",
    "tf.TFRecordReader",
    "tf.TextLineReader",
    "tf.WholeFileReader",
    "tf.FixedLengthRecordReader",
    "tf.IdentityReader",
    "tf.train.QueueRunner",
}


def queue_runners(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    calls = [call for call in source.calls if _public(call.name) in _QUEUES]
    on_cores = calls and (source in project.tpu_sources or _is_for_replicas(source, project))
    inside: set[ast.AST] = set()
    if on_cores:
        reached = project.reachable(input_functions(source, project))
        inside = {d.node for d in reached} | in_input_functions(project)
    for call in calls:
        function = call.scope.function
        if not on_cores:
            yield Hit(call.node, f"{call.name} feeds from a queue")
        elif function in inside:
            message = f"{call.name} feeds from a queue, which cores and replicas refuse"
            yield Hit(call.node, message, Severity.ERROR)
        else:
            takes_params = function is not None and "params" in arguments_of(function)
            severity = Severity.WARNING if takes_params else Severity.INFO
            yield Hit(call.node, f"{call.name} feeds from a queue", severity)


def _public(name: str | None) -> str | None:
    """The public name behind one of a deep file of tf.contrib; any other name as it is."""
    row = tables.contrib().find(name) if name and name.startswith("tf.contrib.") else None
    return row.name if row else name


def _is_for_replicas(source: Source, project: Project) -> bool:
    """True if the program of a file trains or evaluates on the replicas of a strategy."""
    return any(
        keyword.arg in ("train_distribute", "eval_distribute")
        and getattr(keyword.value, "value", "?") is not None
        for other in project.imports.together(source)
        for call in other.calls
        for keyword in call.node.keywords
    )
