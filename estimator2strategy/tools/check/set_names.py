"""The names of TensorFlow that a program sets itself, by the files that may then read them.

A file reads such a name (`tf.contrib = contrib`) if the file that sets it may have run before: it
imports that one, or something imports both. Other programs of the same folder do not have the name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from estimator2strategy.tools.check.source import Import, Source

# Functions that import a module which is not known before they run.
_IMPORTERS = {"import_module", "__import__", "load_source", "run_path", "run_module", "exec"}


class SetNames:
    """The set names of a project.

    Args:
        sources: The files of the project.
        imported: Gives the file that an import of a file reads; None for a library's.
    """

    def __init__(
        self, sources: Iterable[Source], imported: Callable[[Source, Import], Source | None]
    ):
        self._sources, self._imported = list(sources), imported
        self._by_path = {source.path: source for source in self._sources}
        set_by = {source: names for source in self._sources if (names := _names(source))}
        self._names: dict[Source, set[str]] = {}
        if set_by:
            below = {source: self._runs(source) for source in self._sources}
            above: dict[Source, set[Source]] = {}
            for source, others in below.items():
                for other in others:
                    above.setdefault(other, set()).add(source)
            for source, names in set_by.items():
                for reader in self._readers(source, below, above):
                    self._names.setdefault(reader, set()).update(names)

    def of(self, source: Source) -> frozenset[str]:
        """The names that a file may find set when it runs."""
        return frozenset(self._names.get(source, ()))

    def _readers(
        self,
        source: Source,
        below: dict[Source, set[Source]],
        above: dict[Source, set[Source]],
    ) -> Iterable[Source]:
        if os.path.basename(source.path) == "conftest.py":
            return self._sources
        readers = _closure(_closure({source}, above), below)
        if any(call.last in _IMPORTERS for reader in readers for call in reader.calls):
            return self._sources
        return readers

    def _runs(self, source: Source) -> set[Source]:
        """The files that run before a file does: its imports, and the files of its packages."""
        found = {self._imported(source, target) for target, _ in source.imports}
        folder = os.path.dirname(source.path)
        while package := self._by_path.get(os.path.join(folder, "__init__.py")):
            found.add(package)
            folder = os.path.dirname(folder)
        return {other for other in found if other is not None and other is not source}


def _names(source: Source) -> set[str]:
    found = {source.resolve(node, scope) for node, scope in source.stores}
    return {name for name in found if name and name.startswith("tensorflow.")}


def _closure(start: set[Source], beside: dict[Source, set[Source]]) -> set[Source]:
    """These files, and those that the table leads to, directly or not."""
    found, todo = set(start), list(start)
    while todo:
        new = beside.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found
