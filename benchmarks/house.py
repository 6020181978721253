"""Counts the package's folders, imports and longest parts.

    python -m benchmarks.house                      # this checkout
    python -m benchmarks.house ../other/checkout    # another one, to compare with

The rooms and their order are the table in ARCHITECTURE.md. A checkout whose ARCHITECTURE.md has no
such table has no number of climbs.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import imports

_ROOT = Path(__file__).parents[1]
_PACKAGE = "estimator2strategy"
_SESSION = "ReplaySession"


def figures(root: Path = _ROOT) -> dict[str, str]:
    """Each figure by its name, and its value; for the checkout in the folder `root`."""
    folder = root / _PACKAGE
    package = imports.read(folder)
    session = _class(package, _SESSION)
    try:
        rooms = imports.rooms_of((root / "ARCHITECTURE.md").read_text())
    except StopIteration:
        climbing = "-"
    else:
        climbing = str(len(imports.climbs(package, rooms)))
    files = Counter(Path(file).name for file in folder.rglob("*.py"))
    repeated = [name for name, count in files.items() if count > 1 and name != "__init__.py"]
    return {
        "entries at the top of the package": str(len(_entries(folder))),
        f"attributes of {_SESSION}": str(len(attributes(session))),
        f"methods of {_SESSION}": str(sum(isinstance(n, ast.FunctionDef) for n in session.body)),
        "modules that set its state from outside": str(len(_setters(package, session))),
        "names typed `session: Any`": str(sum(_untyped_sessions(package))),
        "circles of imports": str(len(imports.circles(package))),
        "imports that climb": climbing,
        "file names that occur twice or more": str(len(repeated)),
        "longest function": "{1} lines ({0})".format(*_longest_function(package)),
        "longest module": "{1} lines ({0})".format(*_longest_module(folder)),
    }


def attributes(cls: ast.ClassDef) -> set[str]:
    """Names that a class's own methods assign to `self`, or that its body annotates."""
    assigned = {
        target.attr
        for node in ast.walk(cls)
        for target in _targets(node)
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    annotated = {
        node.target.id
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return assigned | annotated


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the figures as a Markdown table."""
    arguments = sys.argv[1:] if argv is None else argv
    rows = figures(Path(arguments[0]) if arguments else _ROOT)
    width = max(map(len, rows))
    print(f"| {'figure':{width}} | value |")
    print(f"| {'-' * width} | --- |")
    for name, value in rows.items():
        print(f"| {name:{width}} | {value} |")


def _entries(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name != "__pycache__"]


def _class(package: imports.Package, name: str) -> ast.ClassDef:
    return next(
        node
        for tree in package.trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == name
    )


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that a statement assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Attribute):
                yield part


def _setters(package: imports.Package, session: ast.ClassDef) -> list[str]:
    """The modules that assign to an attribute of a variable called session, or of `x.session`."""
    own = attributes(session)
    return [
        module
        for module, tree in package.trees.items()
        if session not in tree.body
        and any(
            target.attr in own and ast.unparse(target.value).endswith("session")
            for node in ast.walk(tree)
            for target in _targets(node)
        )
    ]


def _untyped_sessions(package: imports.Package) -> Iterator[bool]:
    """For each annotation of a parameter or an attribute called session: True if it is Any."""
    for tree in package.trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.annotation is not None:
                name = node.arg
            elif isinstance(node, ast.AnnAssign):
                name = ast.unparse(node.target)
            else:
                continue
            if name.endswith("session"):
                yield ast.unparse(node.annotation) == "Any"


def _longest_function(package: imports.Package) -> tuple[str, int]:
    found = [
        (f"{module}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for module, tree in package.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return max(found, key=lambda pair: pair[1])


def _longest_module(folder: Path) -> tuple[str, int]:
    found = [
        (file.relative_to(folder).as_posix(), len(file.read_text().splitlines()))
        for file in folder.rglob("*.py")
    ]
    return max(found, key=lambda pair: pair[1])


if __name__ == "__main__":
    main()
