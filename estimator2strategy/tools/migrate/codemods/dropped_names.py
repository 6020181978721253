"""Names that Python, NumPy and scikit-learn have dropped, and that `e2s run` brings back."""

import ast
import dataclasses

from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.symbol_uses import imported_and_used

# TensorFlow 2.16 and 2.17 need NumPy 1, which does not have today's name.
_NEWER = {"numpy.trapz"}
# NumPy 2 has these again, for types of its own.
_BACK = {"numpy.bool", "numpy.long"}


@codemod(
    "dropped-names",
    stage=2,
    tier=SafetyTier.SAFE,
    title="Names that Python and NumPy have dropped (`np.int` to `int`)",
    why="`e2s run` gives a program these names; Python and NumPy have them no longer. An import of "
    "several names, and a name whose place another call has (`inspect.getargspec`, "
    "`np.asscalar`), are marked. A name in a `try`, or behind `hasattr`, stays. To review: "
    "`np.bool` and `np.long`, which NumPy 2 has again, for types of its own.",
    proof="The table is that of `e2s run`: the same objects. tests/tools/migrate/"
    "test_safe_codemods.py runs both.",
)
def find(module):
    if not module.facts.is_legacy:
        return
    for node, name in imported_and_used(module.source):
        if isinstance(node, ast.Name) or unreached.is_expendable(node):
            continue
        if isinstance(node, ast.Attribute):
            node, name = _dropped_part(node, name)
        today = removed_names.todays(name)
        if today is None:
            continue
        change = None
        if removed_names.is_renamed(name) and name not in _NEWER:
            how = _renamed if isinstance(node, ast.Attribute) else _imported
            change = how(module, node, name, today)
        if change and name in _BACK:
            change = dataclasses.replace(change, tier=SafetyTier.REVIEW)
        yield change or Todo(node, f"{name} is gone; today: {today}")


def _dropped_part(node, name):
    """The part of a dotted name that is gone: `np.int` of `np.int.mro`."""
    while isinstance(node.value, ast.Attribute) and removed_names.todays(name) is None:
        node, name = node.value, name.rpartition(".")[0]
    return node, name


def _renamed(module, node, name, today):
    old_home, home = name.rpartition(".")[0], today.rpartition(".")[0]
    last = today.rpartition(".")[2]
    if not home:
        is_bound = any(today in scope.bindings for scope in module.source.scopes.values())
        return None if is_bound else module.replace(node, today)
    written = module.written(node.value)
    if home == old_home or (old_home, home) == ("numpy", "math"):  # np.inf, too
        return module.replace(node, f"{written}.{last}")
    if home.startswith(f"{old_home}."):
        inner = home.removeprefix(old_home)
        return module.replace(node, f"{written}{inner}.{last}", [(home, None, None)])
    bound, needed = module.needed(home, None)
    return module.replace(node, f"{bound}.{last}", [needed])


def _imported(module, node, name, today):
    """The whole statement, where it imports this one name."""
    is_only_one = isinstance(node, ast.ImportFrom) and len(node.names) == 1
    if not is_only_one or not module.is_alone(node):
        return None
    home, _, last = today.rpartition(".")
    alias = node.names[0].asname or node.names[0].name
    renamed = "" if alias == last else f" as {alias}"
    if not home:
        return module.replace_statement(node, f"import {last}{renamed}")
    return module.replace_statement(node, f"from {home} import {last}{renamed}")
