"""Flags that two modules of one program define."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.source import parents

_HOMES = ("tf.flags.DEFINE", "tf.app.flags.DEFINE", "absl.flags.DEFINE")
# Words of a program that may define a flag again all the same.
_TAKES_AWAY = ("remove_flag_values", "__delattr__", "delattr(", "FlagValues", "del FLAGS")
_OTHERS = {"DEFINE_alias", "DEFINE"}  # a name of another flag; a flag that is made elsewhere


def find(source, context):
    project = context.project
    imported = project.imports.at_top.get(source, ())
    if not imported:
        return
    homes, told = dict.fromkeys(flags_at_top(source), source), set()
    twice: dict = {}
    for top, statement in imported:
        inner = closure(top, project)
        if source in inner:  # each imports the other: who is first depends on the start
            continue
        within: dict = {}
        for module in inner:
            for flag in flags_at_top(module):
                if within.setdefault(flag, module) is not module:
                    told.add(flag)  # a finding of the imported module, or of one below it
                first = homes.setdefault(flag, module)
                if first is not module and flag not in told:
                    told.add(flag)
                    twice.setdefault((first, module, statement), []).append(flag)
    if twice and any(_takes_away(other) for other in project.sources):
        return
    for (first, module, statement), flags in twice.items():
        yield _hit(source, first, module, statement, flags)


def _hit(source, first, module, statement, flags):
    flag, *others = flags
    which = f"the flag {flag!r}" + (f" and {len(others)} more" if others else "")
    where = f"{module.shown}:{flags_at_top(module)[flag].node.lineno}"
    if first is source:
        return Hit(flags_at_top(source)[flag].node, f"{where} defines {which}, too")
    there = f"{first.shown}:{flags_at_top(first)[flag].node.lineno}"
    return Hit(statement, f"{where} and {there} both define {which}")


def _takes_away(source):
    return any(word in source.text for word in _TAKES_AWAY)


def flags_at_top(source):
    """The first definition of each flag at the top of a file."""
    found: dict = {}
    for call in source.calls:
        if not (call.name or "").startswith(_HOMES) or call.is_open or call.last in _OTHERS:
            continue
        statement = next(parents(call.node), None)
        if not isinstance(statement, ast.Expr) or statement not in source.tree.body:
            continue
        if call.argument("allow_override") is None and call.argument("flag_values") is None:
            flag = call.value("name", 0)
            if isinstance(flag, str):
                found.setdefault(flag, call)
    return found


def closure(source, project):
    """A file, those that it imports, and those that they import."""
    found, todo = [], [source]
    while todo:
        module = todo.pop()
        if module not in found:
            found.append(module)
            todo += [other for other, _ in project.imports.at_top.get(module, ())]
    return found
