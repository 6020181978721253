"""The imports of a package, read from its source: who imports whom, circles, and climbs.

    package = read(Path("estimator2strategy"))
    circles(package)                    # [("a.b", "a.c"), ...]: modules that import one another
    rooms = rooms_of(Path("ARCHITECTURE.md").read_text())
    climbs(package, rooms)              # imports of a room that does not stand below the importer's

An import inside a function counts as any other. Packages that Python runs on the way to a module
(`a/__init__.py` for `import a.b`) do not: nobody named them.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Import(NamedTuple):
    """One import of a module of the package by another.

    `importer` and `imported` are paths in the package without suffix: "engine/plan/graph". A
    package is its folder, the top one "__init__". `is_lazy` if it stands inside a function.
    """

    importer: str
    imported: str
    line: int
    is_lazy: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@dataclasses.dataclass(frozen=True)
class Package:
    """The modules of a package, by path without suffix, and what they import of one another."""

    name: str
    trees: Mapping[str, ast.Module]
    imports: tuple[Import, ...]


class Room(NamedTuple):
    """A row of the table of rooms: a folder or module, and the rooms that it imports."""

    name: str
    imports: frozenset[str]


def read(folder: Path) -> Package:
    """Parses all modules in a package's folder."""
    files = sorted(folder.rglob("*.py"))
    trees = {_module(folder, file): ast.parse(file.read_text(), str(file)) for file in files}
    packages = {_module(folder, file) for file in files if file.name == "__init__.py"}
    found = [
        Import(module, imported, node.lineno, is_lazy)
        for module, tree in trees.items()
        for node, is_lazy in _statements(tree)
        for imported in _imported(node, folder.name, module, module in packages, trees)
    ]
    return Package(folder.name, trees, tuple(found))


def rooms_of(text: str) -> tuple[Room, ...]:
    """The rooms in the order of a Markdown table whose columns are room, idea, imports."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\| room +\|", line))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split("|")
        rows.append(Room(cells[0].strip().strip("`"), frozenset(re.findall(r"`(.+?)`", cells[2]))))
    return tuple(rows)


def room_of(module: str, rooms: tuple[Room, ...]) -> str | None:
    """The room that a module is in: the longest of the names that its path starts with."""
    names = [r.name for r in rooms if module == r.name or module.startswith(f"{r.name}/")]
    return max(names, key=len, default=None)


def climbs(package: Package, rooms: tuple[Room, ...]) -> list[Import]:
    """The imports of a room that does not come before the importer's own in the table."""
    place = {room.name: i for i, room in enumerate(rooms)}
    return [
        found
        for found in package.imports
        for here, there in [(room_of(found.importer, rooms), room_of(found.imported, rooms))]
        if here is not None and there is not None and place[there] > place[here]
    ]


def circles(package: Package) -> list[tuple[str, ...]]:
    """The groups of modules of which each leads to all others (Tarjan's components)."""
    targets: dict[str, set[str]] = {module: set() for module in package.trees}
    for found in package.imports:
        if found.imported != found.importer:
            targets[found.importer].add(found.imported)
    reached = {module: _reached(module, targets) for module in targets}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in targets
    }
    return sorted(group for group in groups if len(group) > 1)


def _reached(module: str, targets: Mapping[str, set[str]]) -> set[str]:
    seen = {module}
    waiting = [module]
    while waiting:
        new = targets[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def _module(folder: Path, file: Path) -> str:
    path = file.relative_to(folder).with_suffix("")
    if path.name == "__init__" and path.parent != Path():
        path = path.parent
    return path.as_posix()


def _statements(tree: ast.AST, is_lazy: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, is_lazy
        else:
            yield from _statements(node, is_lazy or isinstance(node, _FUNCTIONS))


def _imported(
    node: ast.stmt, package: str, module: str, is_package: bool, modules: Mapping[str, ast.Module]
) -> list[str]:
    """The modules of the package that one statement imports."""
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    else:
        assert isinstance(node, ast.ImportFrom)
        base = node.module or ""
        if node.level:
            parts = [package, *([] if module == "__init__" else module.split("/"))]
            parts = parts[: len(parts) - node.level + is_package]
            base = ".".join([*parts, *filter(None, [node.module])])
        dotted = [f"{base}.{alias.name}" for alias in node.names]
    ours = [name for name in dotted if name.partition(".")[0] == package]
    return sorted({_nearest(name.split(".")[1:], modules) for name in ours})


def _nearest(parts: list[str], modules: Mapping[str, ast.Module]) -> str:
    """The module that a dotted name leads to: itself, or the one that has it as an attribute."""
    while parts and "/".join(parts) not in modules:
        parts = parts[:-1]
    return "/".join(parts) or "__init__"
