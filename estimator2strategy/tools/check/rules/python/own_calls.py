"""Calls of the program's own functions: their arguments, and the values that they return."""

import ast
import os
from collections.abc import Iterator
from typing import TypeGuard

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.estimator_programs import function_of, length_of, own_nodes
from estimator2strategy.tools.reader.own_code import (
    heirs,
    is_plain,
    last_name,
    methods_of,
    overridden,
    scope_around,
    stored,
)
from estimator2strategy.tools.reader.project import Definition, Project
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, kept, parents, walk

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
# A function, and whether its first argument is given.
_Found = tuple[Definition, bool]


def own_arguments(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if call.is_open:
            continue
        found = called_function(call, source, context.project)
        definition: Definition | None
        if found is not None:
            definition, bound = found
            problem = _problem(call.node, function_of(definition).args, bound)
        else:
            definition, problem = _refused_by_subclass(call, context.project)
        if definition is None or problem is None or not unguarded(call.node):
            continue
        if not unreached.is_tried(call.node, unreached.ANY | {"TypeError"}):
            called = _shown(definition, call.last, of_subclass=found is None)
            yield Hit(call.node, f"{called} ({place_of(definition)}) {problem}")


def _shown(definition: Definition, called: str, of_subclass: bool) -> str:
    """The name of what a call runs, and of what was called if that is another one."""
    name = definition.node.name
    outer = last_name(scope_around(definition.scope))
    if of_subclass:
        return f"{called}, by {outer}.{name}"
    if name == "__init__":
        name = outer
    # The initializer of a base has another name than the class that is called.
    return name if called in (name, "__init__") else f"{called}, by {name}"


def place_of(definition: Definition) -> str:
    """The place of a definition, as a message names it: `model.py:12`."""
    return f"{os.path.basename(definition.source.path)}:{definition.node.lineno}"


def called_function(call: Call, source: Source, project: Project) -> _Found | None:
    """The function that a call runs; None if it is not known."""
    function = call.node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
        return _of_super(function.value, function.attr, call.scope, source, project)
    if getattr(function, "id", None) in ("self", "cls"):
        return None  # what `__call__` gives, or a class below
    found = project.definition(source.resolve(function, call.scope))
    if found is None:
        return _of_object(function, call.scope, source, project)
    if isinstance(found.node, ast.ClassDef):
        return _initializer(found, project)
    if isinstance(function, ast.Name) and scope_around(found.scope).is_class:
        return None  # `name = self.method` has the object, `name = Class.method` has none
    on_object = _is_on_object(function) or _is_on_alias(function, call.scope)
    return _bound(found, on_object, project)


def _of_super(
    asked: ast.Call, name: str, scope: LexicalScope, source: Source, project: Project
) -> _Found | None:
    """The method of the one known base that `super().method(...)` runs."""
    if getattr(asked.func, "id", None) != "super":
        return None
    inner = next((each for each in scope.ancestors() if each.is_class), None)
    of = inner.node if inner is not None else None
    if inner is None or not isinstance(of, ast.ClassDef) or len(of.bases) != 1:
        return None
    given = [getattr(value, "id", None) for value in asked.args]
    if given and given != [of.name, "self"]:
        return None
    # Where classes inherit from several, the next one may be another than the base.
    if any(len(getattr(heir.node, "bases", ())) > 1 for heir in heirs(project, of.name)):
        return None
    base = project.definition(source.resolve(of.bases[0], scope_around(inner)))
    if base is None or not is_plain(project, base):
        return None
    found = methods_of(project, base, name)
    if found is None or found.node.decorator_list:
        return None
    return found, True


def _refused_by_subclass(
    call: Call, project: Project
) -> tuple[Definition, str] | tuple[None, None]:
    """(a method that refuses `self.method(...)` on objects of a subclass, why); or two None.

    The subclass replaces the method, and inherits the one that calls it.
    """
    function = call.node.func
    caller = call.scope.function
    if caller is None or not _is_on_object(function):
        return None, None
    inside = scope_around(next(s for s in call.scope.ancestors() if s.node is caller))
    if not inside.is_class or function.attr in stored(project):
        return None, None
    for heir in heirs(project, last_name(inside)):
        if not is_plain(project, heir):
            continue
        calls = methods_of(project, heir, caller.name)
        runs = methods_of(project, heir, function.attr)
        if calls is None or runs is None or calls.node is not caller:
            continue
        if scope_around(runs.scope) is inside or runs.node.decorator_list:
            continue
        problem = _problem(call.node, function_of(runs).args, True)
        if problem is not None and caller.name in _called_on(project, heir):
            return runs, problem
    return None, None


@kept
def _called_on(project: Project, heir: Definition) -> set[str]:
    """The methods that are called on objects of a class, in the files that make some."""
    made = _calls_of_last(project).get(heir.node.name, ())
    makers = {call.source: None for call in made if _makes(call, heir, project)}
    calls = (call.node.func for source in makers for call in source.calls)
    todo = ["__init__"] if makers else []
    todo += [f.attr for f in calls if isinstance(f, ast.Attribute) and not _is_on_object(f)]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        method = methods_of(project, heir, name) if name not in found else None
        found.add(name)
        todo += [
            node.func.attr
            for node in walk(method.node if method is not None else ast.Pass())
            if isinstance(node, ast.Call) and _is_on_object(node.func)
        ]
    return found


@kept
def _calls_of_last(project: Project) -> dict[str, list[Call]]:
    """The last part of what is called -> the calls."""
    found: dict[str, list[Call]] = {}
    for source in project.sources:
        for call in source.calls:
            found.setdefault(call.last, []).append(call)
    return found


def _makes(call: Call, of: Definition, project: Project) -> bool:
    made = project.definition(call.source.resolve(call.node.func, call.scope))
    return made is not None and made.node is of.node


def _is_on_object(function: ast.expr) -> TypeGuard[ast.Attribute]:
    """True for a method of `self` or `cls`."""
    return isinstance(function, ast.Attribute) and _is_self(function.value)


def _is_self(value: object) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _is_on_alias(function: ast.expr, scope: LexicalScope) -> bool:
    """True for a method of a name that `self` or `cls` has been given."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    where = scope.find(function.value.id)
    return where is not None and any(map(_is_self, where.bindings[function.value.id]))


def _bound(found: Definition, on_object: bool, project: Project) -> _Found | None:
    """The same with what a decorator and an override mean; None if that is not known."""
    node = found.node
    outer = scope_around(found.scope)
    if not isinstance(node, _DEFINED) or len(outer.bindings.get(node.name, ())) != 1:
        return None
    decorators = [getattr(d, "id", None) for d in node.decorator_list]
    if outer.is_class:
        if decorators == ["staticmethod"]:
            return (found, False) if not overridden(project, found) else None
        if decorators == ["classmethod"]:
            return (found, True) if not overridden(project, found) else None
    if decorators:
        return None
    if not outer.is_class:
        return found, False
    return None if overridden(project, found) else (found, on_object)


def _of_object(
    function: ast.expr, scope: LexicalScope, source: Source, project: Project
) -> _Found | None:
    """The method of an object that was made by one class for certain."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return None
    made = source.call(function.value, scope)
    if made is None:
        return None
    where = scope.find(function.value.id)
    if where is not scope:
        return None
    of = project.definition(source.resolve(made.node.func, made.scope))
    if of is None or not isinstance(of.node, ast.ClassDef) or not is_plain(project, of):
        return None
    methods = methods_of(project, of, function.attr)
    return _bound(methods, True, project) if methods is not None else None


def _initializer(of: Definition, project: Project) -> _Found | None:
    """The `__init__` of a class, if its construction is nothing but that."""
    node = of.node
    if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords:
        return None
    if any(isinstance(base, ast.Call) for base in node.bases):
        return None
    if len(scope_around(of.scope).bindings.get(of.node.name, ())) != 1:
        return None
    own = of.scope.bindings.get("__init__", ())
    if "__new__" in of.scope.bindings or "__metaclass__" in of.scope.bindings:
        return None
    if len(own) == 1 and isinstance(own[0], _DEFINED) and not own[0].decorator_list:
        return Definition(own[0], of.source), True
    if own or not is_plain(project, of):
        return None
    inherited = methods_of(project, of, "__init__")
    if inherited is None or inherited.node.decorator_list:
        return None  # without one, Python's own says nothing of missing arguments
    return inherited, True


def _problem(call: ast.Call, takes: ast.arguments, bound: bool) -> str | None:
    """The sentence's end that says why a call is refused; None if it is not."""
    places = [a.arg for a in (*takes.posonlyargs, *takes.args)]
    needed = places[: len(places) - len(takes.defaults)]
    if bound:
        if not places:
            return None if takes.vararg else "takes no argument, not even the object"
        places, needed = places[1:], needed[1:]
    by_name = [*places, *(a.arg for a in takes.kwonlyargs)]
    only = [a.arg for a, d in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if d is None]
    given = [k.arg for k in call.keywords]
    if len(call.args) > len(places) and not takes.vararg:
        takes_most = f"{len(places)} argument{'s' * (len(places) != 1)}"
        return f"takes {takes_most} by position, not {len(call.args)}"
    for name in given:
        if name not in by_name and not takes.kwarg:
            return f"has no argument {name!r}"
        if name in places[: len(call.args)]:
            return f"gets {name!r} twice"
    missing = [name for name in (*needed[len(call.args) :], *only) if name not in given]
    return f"needs {', '.join(missing)}, too" if missing else None


def unpacked_values(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        taken = _taken(call.node)
        found = called_function(call, source, context.project) if taken else None
        if found is None or not unguarded(call.node):
            continue
        function = found[0]
        returned = _returned(function.node)
        if not returned or taken in returned:
            continue
        if not unreached.is_tried(call.node, unreached.ANY | {"ValueError"}):
            counts = " or ".join(map(str, sorted(returned)))
            called = f"{function.node.name} ({place_of(function)})"
            message = f"{called} returns {counts} values, not {taken}"
            yield Hit(call.node, message)


def _taken(call: ast.Call) -> int:
    """The number of targets that the values of a call are assigned to; 0 if it is not known."""
    assign = next(parents(call), None)
    if not isinstance(assign, ast.Assign) or assign.value is not call:
        return 0
    counts = {length_of(target) for target in assign.targets if not isinstance(target, ast.Name)}
    return (counts.pop() or 0) if len(counts) == 1 else 0


def _returned(function: ast.AST) -> set[int]:
    """The numbers of values that a function may return; none if one of them is not known."""
    nodes = list(own_nodes(function)) if isinstance(function, ast.FunctionDef) else []
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return set()
    counts = {length_of(node.value) for node in nodes if isinstance(node, ast.Return)}
    known = {count for count in counts if count is not None}
    return known if len(known) == len(counts) else set()
