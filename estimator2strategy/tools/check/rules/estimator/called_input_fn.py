"""`train(input_fn())`."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import RUNS, given_input, returned, runs
from estimator2strategy.tools.reader.project import Definition, is_tf
from estimator2strategy.tools.reader.source import Import


def find(source, context):
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
                for value in returned(called.node)
            ]
        elif isinstance(given, ast.Lambda):
            functions = [Definition(given, source)]
        else:
            function = project.function(given, call.scope, source)
            functions = [function or _lambda_of(given, call.scope, source, project)]
        for function in filter(None, functions):
            if name := _captured(function, project):
                yield Hit(given, f"{name} is made outside of the function that uses it")


def _inputs(source):
    """(the call, what it is given for input_fn) of all that run an Estimator."""
    found = {call: given_input(call) for call, _ in runs(source)}
    for call in source.calls:
        # Of all that is called `train`, an Estimator's alone has an argument of this name.
        if call.last in RUNS or is_tf(call.name, "TrainSpec", "EvalSpec"):
            found.setdefault(call, call.argument("input_fn"))
    return [(call, given) for call, given in found.items() if given is not None]


def _lambda_of(node, scope, source, project):
    """The lambda that a name was assigned, here or in the file that it is imported from."""
    where = scope.find(node.id) if isinstance(node, ast.Name) else None
    values = where.bindings[node.id] if where else ()
    if len(values) == 1 and isinstance(values[0], Import) and values[0].name:
        path = project.imported_file(source, values[0])
        source = project.load(path) if path else None
        values = source.scope.bindings.get(values[0].name, ()) if source else ()
    is_lambda = len(values) == 1 and isinstance(values[0], ast.Lambda)
    return Definition(values[0], source) if is_lambda else None


def _captured(function, project):
    """The name of a dataset that an input_fn reads, and that was made around it."""
    source, inner = function.source, function.scope
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        where = inner.find(node.id)
        if where not in (None, inner) and _is_dataset(node, where, source, project, set()):
            return node.id
    return None


def _is_dataset(node, scope, source, project, seen):
    """True if all that a name or call may be is made by tf.data."""
    calls = source.calls_behind(node, scope)
    return bool(calls) and all(_makes_dataset(call, project, seen) for call in calls)


def _makes_dataset(call, project, seen):
    """True if a chain of calls starts in tf.data: `tf.data.TFRecordDataset(f).map(g).batch(8)`."""
    if call.node in seen:
        return True  # of itself: `data = data.map(f)`
    seen.add(call.node)
    if (call.name or "").startswith(("tf.data.", "tf.contrib.data.")):
        return ".Dataset." in call.name or call.last.lower().endswith("dataset")
    function = call.node.func
    called = project.definition(call.source.resolve(function, call.scope))
    if called is not None:
        is_function = not isinstance(called.node, ast.ClassDef)
        return is_function and _returns_dataset(called, project, seen)
    is_method = isinstance(function, ast.Attribute)
    return is_method and _is_dataset(function.value, call.scope, call.source, project, seen)


def _returns_dataset(definition, project, seen):
    values = returned(definition.node)
    source, scope = definition.source, definition.scope
    return bool(values) and all(_is_dataset(v, scope, source, project, seen) for v in values)
