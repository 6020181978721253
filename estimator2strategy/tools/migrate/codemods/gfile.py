"""`tf.gfile` to `tf.io.gfile`."""

import ast

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod

_NAMES = {
    "Copy": "copy",
    "DeleteRecursively": "rmtree",
    "Exists": "exists",
    "FastGFile": "GFile",
    "GFile": "GFile",
    "Glob": "glob",
    "IsDirectory": "isdir",
    "ListDirectory": "listdir",
    "MakeDirs": "makedirs",
    "MkDir": "mkdir",
    "Open": "GFile",
    "Remove": "remove",
    "Rename": "rename",
    "Stat": "stat",
    "Walk": "walk",
}
_ARGUMENTS = {
    "filename": {"Exists": "path", "Remove": "path", "Stat": "path", "Glob": "pattern"},
    "dirname": dict.fromkeys(
        ("DeleteRecursively", "IsDirectory", "ListDirectory", "MakeDirs", "MkDir"), "path"
    ),
    "oldname": {"Rename": "src"},
    "newname": {"Rename": "dst"},
    "oldpath": {"Copy": "src"},
    "newpath": {"Copy": "dst"},
    "in_order": {"Walk": "topdown"},
}


@codemod(
    "gfile",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`tf.gfile` to `tf.io.gfile`",
    why="The functions of tf.gfile have other names there, and some of their arguments too.",
    proof="The old functions call the same code; tests/tools/migrate/test_parity.py runs both.",
)
def find(module):
    if module.tf is None:
        return
    for node, name in module.uses("tf.gfile"):
        last = name.removeprefix("tf.gfile.")
        part = module.part(node, name)
        if last in _NAMES and part is not None:
            yield module.replace(part, f"{module.tf}.io.gfile.{_NAMES[last]}")
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        # `from tensorflow.gfile import Exists` keeps its function, and so its arguments.
        if not name.startswith("tf.gfile.") or _is_imported(module, call.node.func):
            continue
        for keyword in call.node.keywords:
            new = _ARGUMENTS.get(keyword.arg or "", {}).get(name.removeprefix("tf.gfile."))
            if new:
                yield module.rename_keyword(call, keyword.arg, new)


def _is_imported(module, function):
    """True if a function is called by a name that an import statement gives it."""
    return isinstance(function, ast.Name) and any(
        alias.name.rpartition(".")[2] != "gfile" and (alias.asname or alias.name) == function.id
        for target, _ in module.source.imports
        for alias in target.node.names
    )
