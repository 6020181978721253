"""The files of a program, for codemods that change several of them together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from estimator2strategy.tools.migrate.module import Facts, Module
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import MOST_TOGETHER, UNREADABLE, parse
from estimator2strategy.tools.reader.source import Function, Source

# The words of an import, also of one in parentheses.
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)\b([^#\n(]*(?:\([^)]*\))?)", re.MULTILINE)


class Texts(Mapping[str, str]):
    """The texts of files by their paths, read when they are asked for.

    Args:
        paths: The files.
        read: Reads one.

    Attributes:
        changed: The texts that are not written yet, which take the place of what is read.
    """

    def __init__(self, paths: Iterable[str], read: Callable[[str], str]):
        self._paths, self._read = dict.fromkeys(paths), read
        self.changed: dict[str, str] = {}
        self._importers: dict[str, list[str]] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        return self.changed[path] if path in self.changed else self._read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def importers(self, word: str) -> list[str]:
        """The files with an import that has this word."""
        if not self._importers:
            for path in self._paths:
                imports = " ".join(_IMPORTS.findall(self[path]))
                for name in set(re.findall(r"\w+", imports)):
                    self._importers.setdefault(name, []).append(path)
        return self._importers.get(word, [])


class ProgramFiles:
    """The files of a program, read when a name leads there.

    Args:
        texts: Path -> text, of the files that may be changed.
        facts: Facts about them together.

    Attributes:
        project: Follows names from file to file, also to files that may not be changed.
    """

    def __init__(self, texts: Texts, facts: Facts):
        self._texts, self._facts = texts, facts
        self.project = _ProjectOfTexts(texts)
        self._modules: dict[ast.AST, Module] = {}

    def module(self, path: str) -> Module:
        """A file.

        Raises:
            SyntaxError, ValueError, RecursionError: It is no Python 3.
        """
        source = self.project.load(path)
        if source is None:
            source = parse(path, path, self._texts[path], again=True)  # says why
        return self._of(source)

    def _of(self, source: Source) -> Module:
        if source.tree not in self._modules:
            for node in ast.walk(source.tree):
                for child in ast.iter_child_nodes(node):
                    if hasattr(child, "lineno"):
                        child.parent = node  # type: ignore[attr-defined]  # of constants, too
            self._modules[source.tree] = Module(source, self._facts, self)
        return self._modules[source.tree]

    def module_of(self, node: ast.AST) -> Module | None:
        """The file that a node is of; None for a node that no file has."""
        while (outer := getattr(node, "parent", None)) is not None:
            node = outer
        return self._modules.get(node)

    def may_change(self, module: Module) -> bool:
        """True if a file is one of those that were given."""
        return module.source.path in self._texts

    def defined(self, node: ast.AST | None) -> Function | ast.ClassDef | None:
        """The function or class of the program that an expression names."""
        module = self.module_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if node is None or module is None:
            return None
        definition = self.project.definition(
            module.source.resolve(node, module.source.scope_of(node))
        )
        if definition is None:
            return None
        self._of(definition.source)
        return definition.node

    def name_of(self, definition: Function | ast.ClassDef) -> str:
        """The name to which names of a function or class resolve."""
        module = self.module_of(definition)
        assert module is not None
        return f"@{module.source.path}::{module.source.scopes[definition].name}"

    def readers(self, definition: Function | ast.ClassDef) -> Iterator[Module]:
        """The files that may name a function or class: its own, and those that import its file."""
        own = self.module_of(definition)
        assert own is not None
        yield own
        parts = own.source.path.removesuffix(".py").replace("\\", "/").split("/")
        stem = parts[-1] if parts[-1] != "__init__" or len(parts) == 1 else parts[-2]
        for path in self._texts.importers(stem):
            source = None
            if path != own.source.path and definition.name in self._texts[path]:
                source = self.project.load(path)
            if source is not None:
                yield self._of(source)

    def reached(self, start: Module) -> list[Module]:
        """A file, and those of the program that it imports, directly or not."""
        bound, todo = {start.source: start}, [start]
        while todo:
            module = todo.pop()
            for target, _ in module.source.imports:
                path = self.project.imported_file(module.source, target)
                source = self.project.load(path) if path and path in self._texts else None
                if source is not None and source not in bound:
                    bound[source] = self._of(source)
                    todo.append(bound[source])
        return list(bound.values())


class _ProjectOfTexts(Project):
    """Follows names through texts that may not be written yet."""

    def __init__(self, texts: Texts):
        super().__init__((), MOST_TOGETHER)
        self._texts = texts

    def load(self, path: str) -> Source | None:
        if path in self._texts and path not in self.by_path:
            self.by_path[path] = None
            try:
                self.adopt(parse(path, path, self._texts[path], again=True))
            except UNREADABLE:
                return None
        return super().load(path)
