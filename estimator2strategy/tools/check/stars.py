"""The files of a program that `from x import *` reads."""

from __future__ import annotations

import os
from collections.abc import Callable

from estimator2strategy.tools.check.source import Import, Source


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
