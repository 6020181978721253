"""The imports between a program's files: what runs together, and what `import *` reads."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Iterable, Mapping

from estimator2strategy.tools.reader.source import Import, Source, kept

# Functions that import a module which is not known before they run.
_IMPORTERS = {"import_module", "__import__", "load_source", "run_path", "run_module", "exec"}


class ImportGraph:
    """The imports of a project's files.

    Args:
        sources: The files.
        imported: Gives the file that an import of a file reads; None for a library's.
    """

    def __init__(
        self, sources: Iterable[Source], imported: Callable[[Source, Import], Source | None]
    ):
        self._sources, self._imported = list(sources), imported
        self._by_path = {source.path: source for source in self._sources}

    def together(self, source: Source) -> set[Source]:
        """The files that may run in one program with `source`.

        Those are what it imports and what imports it, directly or not, and all that these import.
        pytest runs a conftest.py with any; and so may a program that imports modules by a name
        which it reads.
        """
        if os.path.basename(source.path) == "conftest.py":
            return set(self._sources)
        found = _closure(_closure({source}, self._above), self._below)
        if any(map(_imports_by_name, found)):
            return set(self._sources)
        return found

    @functools.cached_property
    def at_top(self) -> dict[Source, list[tuple[Source, ast.stmt]]]:
        """The files that each file imports in any case, with the statements."""
        found: dict[Source, list[tuple[Source, ast.stmt]]] = {}
        for source in self._sources:
            top = set(source.tree.body)
            for target, _ in source.imports:
                other = self._imported(source, target) if target.node in top else None
                if other is not None and other is not source:
                    found.setdefault(source, []).append((other, target.node))
        return found

    @functools.cached_property
    def _below(self) -> dict[Source, set[Source]]:
        return {source: self._runs(source) for source in self._sources}

    @functools.cached_property
    def _above(self) -> dict[Source, set[Source]]:
        above: dict[Source, set[Source]] = {}
        for source, others in self._below.items():
            for other in others:
                above.setdefault(other, set()).add(source)
        return above

    def _runs(self, source: Source) -> set[Source]:
        """The files that run before a file does: its imports, and the files of its packages."""
        found = {self._imported(source, target) for target, _ in source.imports}
        folder = os.path.dirname(source.path)
        while package := self._by_path.get(os.path.join(folder, "__init__.py")):
            found.add(package)
            folder = os.path.dirname(folder)
        return {other for other in found if other is not None and other is not source}


@kept
def _imports_by_name(source: Source) -> bool:
    return any(call.last in _IMPORTERS for call in source.calls)


def _closure(start: set[Source], beside: Mapping[Source, set[Source]]) -> set[Source]:
    """These files, and those that the table leads to, directly or not."""
    found, todo = set(start), list(start)
    while todo:
        new = beside.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


class Stars:
    """The files behind the stars of a project.

    Args:
        module: Gives the file or folder of a module as seen from a file, by its dots; None for a
            library's.
        load: Gives the file at a path; None if it cannot be parsed.
    """

    def __init__(
        self,
        module: Callable[[Source, str, int], str | None],
        load: Callable[[str], Source | None],
    ):
        self._module, self._load = module, load
        self._behind: dict[str, list[Source]] = {}

    def bring(self, source: Source, star: Import, name: str) -> bool:
        """True if `star`, an import of `source`, brings a name that a file of the program binds."""
        path = self._module(source, star.module, star.level)
        if path is None:
            return False
        if path not in self._behind:
            self._behind[path] = self._reached(path)
        return any(name in module.scope.bindings for module in self._behind[path])

    def _reached(self, path: str) -> list[Source]:
        """The file at `path`, and those that it imports all of, directly or not."""
        found: dict[str, Source] = {}
        todo: list[str | None] = [path]
        while todo:
            at = todo.pop()
            if at is None or at in found or os.path.isdir(at):
                continue
            module = self._load(at)
            if module is not None:
                found[at] = module
                todo += [self._module(module, star.module, star.level) for star in module.stars]
        return list(found.values())
