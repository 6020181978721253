"""Functions of other libraries that return more or fewer values than in TF 1.15's day."""

import ast
import dataclasses
from collections.abc import Iterator

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import library_objects, unreached
from estimator2strategy.tools.reader.estimator_programs import length_of, own_nodes
from estimator2strategy.tools.reader.own_code import scope_around
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, parents

_ENV = "gym.Env"


@dataclasses.dataclass(frozen=True)
class _Results:
    """How many values a function returned once (1 is no tuple), and today; and how to take them."""

    before: int
    now: int
    today: str


_CHANGED = {
    f"{_ENV}().step": _Results(
        4,
        5,
        "state, reward, terminated, truncated, info = env.step(action), and "
        "done = terminated or truncated",
    ),
    f"{_ENV}().reset": _Results(1, 2, "state, info = env.reset()"),
    "cv2.findContours": _Results(3, 2, "contours, hierarchy = cv2.findContours(...)"),
    "skimage.measure.marching_cubes": _Results(
        2, 4, "vertices, faces, normals, values = marching_cubes(...)"
    ),
}
_LASTS = {name.rpartition(".")[2] for name in _CHANGED}


def find(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if call.last not in _LASTS:
            continue
        known = call.name if call.name in _CHANGED else _of_environment(call, context.project)
        name = known or ""
        results = _CHANGED.get(name)
        if results is None or _taken(call.node, source) != results.before:
            continue
        if not unreached.is_tried(call.node, unreached.ANY | {"ValueError"}):
            message = (
                f"{rows.read_off(name)}: {name} returns {results.now} values, not {results.before}"
            )
            yield Hit(call.node, message, fix=f"Today: {results.today}.")


def _of_environment(call: Call, project: Project) -> str | None:
    """The name of a call of an environment's method; None if the object may be another."""
    base, source = getattr(call.node.func, "value", None), call.source
    if base is None or "gym" not in source.modules:
        return None
    of = library_objects.class_of(base, call.scope, source, project)
    if of is None and (_is_wrapped(base, call.scope, source) or _is_named(base, call, project)):
        of = _ENV
    return f"{_ENV}().{call.last}" if of == _ENV else None


def _is_wrapped(base: ast.expr, scope: LexicalScope, source: Source) -> bool:
    """True for `self.env` in a class that is a wrapper of gym's."""
    if not (isinstance(base, ast.Attribute) and base.attr == "env"):
        return False
    inner = next((each for each in scope.ancestors() if each.is_class), None)
    of = inner.node if inner is not None else None
    if inner is None or not isinstance(of, ast.ClassDef):
        return False
    if getattr(base.value, "id", None) != "self":
        return False
    bases = [source.name(each, scope_around(inner)) or "" for each in of.bases]
    return any(each.startswith("gym.") and each.endswith("Wrapper") for each in bases)


def _is_named(base: ast.expr, call: Call, project: Project) -> bool:
    """True for a parameter `env`, or an attribute, in a program without environments of its own."""
    last = getattr(base, "attr", getattr(base, "id", ""))
    where = call.scope.find(last) if isinstance(base, ast.Name) else None
    if last != "env" or (where is not None and any(where.bindings[last])):
        return False
    return not any(
        function.name == call.last
        for other in project.sources
        for function, scope in other.functions
        if scope_around(scope).is_class
    )


def _taken(call: ast.Call, source: Source) -> int:
    """How many values the program takes from a call; 0 if it is not known."""
    assign = next(parents(call), None)
    if not isinstance(assign, ast.Assign) or assign.value is not call or len(assign.targets) > 1:
        return 0
    (target,) = assign.targets
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return length_of(target) or 0
    return 0 if _is_taken_apart(target, source) else 1


def _is_taken_apart(target: ast.Name | ast.Attribute, source: Source) -> bool:
    """True if the program asks what a value is, takes items of it, or unpacks it."""
    scope = source.scope_of(target)
    same = ast.unparse(target)
    for node in own_nodes(scope.function or source.tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or ast.unparse(node) != same:
            continue
        outer = next(parents(node), None)
        if isinstance(outer, ast.Subscript) and outer.value is node:
            return True
        if isinstance(outer, ast.Call) and getattr(outer.func, "id", "") in ("isinstance", "type"):
            return True
        if isinstance(outer, ast.Assign) and outer.value is node and length_of(outer.targets[0]):
            return True
    return False
