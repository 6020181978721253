"""The files of a program together. It follows imports, and finds functions by their purpose.

    project = Project(files)
    project.model_functions             # each def that makes an EstimatorSpec
    project.tpu_code                    # the calls that the TPU would execute

Modules that the program imports are read when a name leads there, if they lie near its files. They
help to resolve names; rules do not report on them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from estimator2strategy.engine.names import tables
from estimator2strategy.tools.reader import branches
from estimator2strategy.tools.reader.import_graph import ImportGraph, Stars
from estimator2strategy.tools.reader.python_files import UNREADABLE, parse, read_source
from estimator2strategy.tools.reader.source import (
    Call,
    Function,
    Import,
    LexicalScope,
    Source,
    arguments_of,
    kept,
)

# How many folders above a file an absolute import may start at.
_CLIMB = 6
# How many ways of calling a function are told apart by the constants that they give.
_MOST_CONSTANTS = 8
# Functions that are given a function, and do not run it on the device they are on.
_ELSEWHERE = {"py_func", "numpy_function", "py_function", "outside_compilation", "host_call"}


@dataclasses.dataclass(frozen=True)
class Definition:
    """A function or class, and the file it is in."""

    node: Function | ast.ClassDef
    source: Source

    @property
    def scope(self) -> LexicalScope:
        return self.source.scopes[self.node]


class Project:
    """All files that a check reads.

    Args:
        sources: The files to report on.
        most: How many characters of imported modules are read; names of further ones are unknown.
        unread: The texts of files that cannot be parsed.
    """

    def __init__(
        self, sources: Iterable[Source], most: float = math.inf, unread: Sequence[str] = ()
    ):
        self.sources = list(sources)
        self.unread = unread
        self._most = most
        self.by_path: dict[str, Source | None] = {}  # all that was read
        self._modules: dict[tuple[str, str], str | None] = {}
        self._searched: set[tuple[Source, str]] = set()
        self._stars = Stars(self._module, self.load)
        for source in self.sources:
            self.adopt(source)

    def adopt(self, source: Source) -> None:
        """Has a file's names followed to the others."""
        self.by_path[source.path] = source
        source.follow = self._follow
        source.canonical = tables.canonical
        source.member = self._member
        source.given = lambda: self._set_names.get(source, frozenset())
        source.brings = self._stars.bring
        source.searched = self._searched

    @functools.cached_property
    def _by_module(self) -> dict[str, list[Source]]:
        """The checked files by the last part of a module's name: a.py, and the file of a folder."""
        found: dict[str, list[Source]] = {}
        for source in self.sources:
            folder, file = os.path.split(source.path)
            stem = os.path.basename(folder) if file == "__init__.py" else file.removesuffix(".py")
            found.setdefault(stem, []).append(source)
        return found

    def named(self, *parts: str) -> list[Source]:
        """The checked files that `import a.b` of these parts may mean, in whatever folder."""
        path = os.path.join(os.sep, *parts)
        ends = (f"{path}.py", os.path.join(path, "__init__.py"))
        return [s for s in self._by_module.get(parts[-1], ()) if s.path.endswith(ends)]

    # Names.

    @functools.cached_property
    def _set_names(self) -> dict[Source, frozenset[str]]:
        """The names of TensorFlow that a program sets itself (`tf.contrib = contrib`), by file."""
        found: dict[Source, frozenset[str]] = {}
        for source in self.sources:
            raw = [source.resolve(node, scope) for node, scope in source.stores]
            names = {name for name in raw if name and name.startswith("tensorflow.")}
            for reader in self.imports.together(source) if names else ():
                found[reader] = found.get(reader, frozenset()) | names
        return found

    @functools.cached_property
    def set_by_others(self) -> dict[str, set[str]]:
        """The names that files set in other modules, by path: `model.BATCH_SIZE = 32`."""
        found: dict[str, set[str]] = {}
        for source in self.sources:
            for node, scope in source.stores:
                module = source.resolve(node.value, scope) or ""
                found.setdefault(module.removeprefix("@"), set()).add(node.attr)
        return found

    @functools.cached_property
    def imports(self) -> ImportGraph:
        """The imports of the checked files."""
        return ImportGraph(self.sources, self._imported_source)

    def _imported_source(self, source: Source, target: Import) -> Source | None:
        path = self.imported_file(source, target)
        return self.by_path.get(path) if path else None

    def _follow(self, source: Source, target: Import) -> str | None:
        """The target of an import: a library's name, or `@file` or `@file::name` of the project."""
        path = self._module(source, target.module, target.level)
        if path is None:
            if target.level:
                return None
            return f"{target.module}.{target.name}" if target.name else target.module
        return self._member(f"@{path}", target.name) if target.name else f"@{path}"

    def _module(self, source: Source, module: str, level: int) -> str | None:
        """The file or folder of a module, as seen from `source`; None for a library's."""
        if level == 0 and module.partition(".")[0] in _LIBRARIES:
            return None
        folder = os.path.dirname(source.path)
        key = (f"{folder}:{level}", module)
        if key not in self._modules:
            self._modules[key] = _locate(folder, module, level)
        return self._modules[key]

    def _member(self, base: str, name: str) -> str | None:
        """The target of `base.name`."""
        if not base.startswith("@"):
            return f"{base}.{name}"
        path, _, qualified = base[1:].partition("::")
        if qualified:
            return f"{base}.{name}"
        if path not in self.by_path and os.path.isdir(path):
            found = _file_of(os.path.join(path, name))
            init = os.path.join(path, "__init__.py")
            if found is None and os.path.isfile(init):
                return self._member(f"@{init}", name)
            return f"@{found}" if found else None
        source = self.load(path)
        if source is None:
            return None
        if name in source.scope.bindings:
            return source.resolve(ast.Name(name, ast.Load()), source.scope)
        if os.path.basename(path) == "__init__.py":
            found = _file_of(os.path.join(os.path.dirname(path), name))
            if found:
                return f"@{found}"
        return source.from_star(name)

    def load(self, path: str) -> Source | None:
        """The file at `path`, read if it was not yet; None if it cannot be parsed."""
        if path not in self.by_path:
            self.by_path[path] = None
            if self._most <= 0:
                return None
            try:
                text = read_source(path)
                self._most -= len(text)
                self.adopt(parse(path, path, text))
            except (OSError, *UNREADABLE):
                return None
        return self.by_path[path]

    def definition(self, name: str | None) -> Definition | None:
        """The function or class that a resolved name of the project is."""
        if name is None or not name.startswith("@"):
            return None
        path, _, qualified = name[1:].partition("::")
        source = self.by_path.get(path)
        if source is None or not qualified:
            return None
        scope: LexicalScope | None = source.scope
        for part in qualified.split("."):
            values = [
                value
                for value in (scope.bindings.get(part, ()) if scope else ())
                if isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            ]
            if len(values) != 1:
                return None
            scope = source.scopes[values[0]]
        return Definition(scope.node, source) if scope else None  # type: ignore[arg-type]

    def function(
        self, node: ast.AST | None, scope: LexicalScope, source: Source
    ) -> Definition | None:
        """The `def` that an expression is, through `functools.partial` and the like."""
        if node is None:
            return None
        call = source.call(node, scope)
        if call is not None and call.last == "partial" and call.node.args:
            node, scope = call.node.args[0], call.scope
        found = self.definition(source.resolve(node, scope))
        if found and not isinstance(found.node, ast.ClassDef):
            return found
        return None

    # The functions of an Estimator program, by their part in it.

    @functools.cached_property
    def model_functions(self) -> list[ModelFunction]:
        """Each `def` of the checked files that takes features and a mode and makes a spec."""
        found = []
        for source in self.sources:
            specs: dict[Function, list[Call]] = {}
            for call in source.calls:
                if call.last.endswith("EstimatorSpec") and is_tensorflow(call.name):
                    function = call.scope.function
                    if function is not None:
                        specs.setdefault(function, []).append(call)
            for function, calls in specs.items():
                arguments = arguments_of(function)
                if arguments[:1] == ["features"] or "mode" in arguments:
                    found.append(ModelFunction(function, source, tuple(calls)))
        return found

    @functools.cached_property
    def estimator_sources(self) -> set[Source]:
        """Files that make an Estimator, or a spec for one, and those that they import."""
        return self._with_imports(
            source
            for source in self.sources
            if any(
                is_tensorflow(call.name)
                and call.last.endswith(("Estimator", "EstimatorSpec", "Classifier", "Regressor"))
                for call in source.calls
            )
        )

    @functools.cached_property
    def never_on_tpu(self) -> bool:
        """True if the program makes a TPUEstimator, and says `use_tpu=False` each time."""
        calls = [
            call for source in self.sources for call in source.calls if call.last == "TPUEstimator"
        ]
        return bool(calls) and all(call.value("use_tpu", 4) is False for call in calls)

    @functools.cached_property
    def tpu_code(self) -> dict[Source, list[Call]]:
        """The calls in model functions for a TPU, and in the functions that these call, by file."""
        starts = [
            Definition(model.node, model.source)
            for model in self.model_functions
            if self.may_use_tpu(model) and not _says_no_tpu(model)
        ]
        found: dict[Source, list[Call]] = {}
        for definition, calls in self.reached_calls(starts):
            found.setdefault(definition.source, []).extend(calls)
        return found

    def may_use_tpu(self, model: ModelFunction) -> bool:
        """True if a model_fn is one for TPUs, and may be called for them."""
        return model.is_tpu and not self.never_on_tpu

    @kept
    def device_calls(self, definition: Definition) -> list[Call]:
        """The calls in a function that run where it runs, whatever that is."""
        return [
            call
            for call in self.calls_of(definition)
            if not branches.depends_on_tpu(call.node) and not is_input_code(call)
        ]

    @functools.cached_property
    def tpu_sources(self) -> set[Source]:
        """Files that name TPUEstimator or its kin, and those beside them that they import."""
        if self.never_on_tpu:
            return set()
        return self._with_imports(source for source in self.sources if _names_tpu(source))

    def _with_imports(self, sources: Iterable[Source]) -> set[Source]:
        """These files, and those beside them that they import, directly or not."""
        todo = list(sources)
        found = set(todo)
        while todo:
            source = todo.pop()
            for target, _ in source.imports:
                other = self._imported_source(source, target)
                if other is not None and other not in found:
                    found.add(other)
                    todo.append(other)
        return found

    def imported_file(self, source: Source, target: Import) -> str | None:
        """The file of the program that an import reads, or the folder of a package without one."""
        path = self._module(source, target.module, target.level)
        if path is None or not target.name:
            return path
        if os.path.isdir(path):
            return _file_of(os.path.join(path, target.name))
        folder, file = os.path.split(path)
        package = self.load(path) if file == "__init__.py" else None
        if package is None or target.name in package.scope.bindings:
            return path
        return _file_of(os.path.join(folder, target.name)) or path

    def calls_of(self, definition: Definition) -> list[Call]:
        """The calls in a function itself, its lambdas included, its inner functions not."""
        return _calls_by_function(definition.source).get(definition.node, [])

    def reachable(self, starts: Iterable[Definition]) -> list[Definition]:
        """The functions that these call, directly or not, themselves included."""
        return [definition for definition, _ in self.reached_calls(starts)]

    def reached_calls(self, starts: Iterable[Definition]) -> list[tuple[Definition, list[Call]]]:
        """The same functions, each with those of its device calls that its callers come to."""
        return self._reached_calls(*starts)

    @kept
    def _reached_calls(self, *starts: Definition) -> list[tuple[Definition, list[Call]]]:
        todo = [(definition, branches.NONE) for definition in starts]
        found: dict[ast.AST, tuple[Definition, dict[Call, None]]] = {}
        seen: dict[ast.AST, set[branches.Constants]] = {}
        while todo:
            definition, given = todo.pop()
            known = seen.setdefault(definition.node, set())
            if branches.NONE in known or given in known:
                continue
            if len(known) == _MOST_CONSTANTS:
                given = branches.NONE
            known.add(given)
            _, calls = found.setdefault(definition.node, (definition, {}))
            for call in self.device_calls(definition):
                if branches.takes(call.node, definition.node, given):  # type: ignore[arg-type]
                    calls[call] = None
                    todo += [
                        (c, branches.constants(call, c.node, c.scope, given))  # type: ignore[arg-type]
                        if direct
                        else (c, branches.NONE)
                        for c, direct in self._called(call)
                    ]
        return [(definition, list(calls)) for definition, calls in found.values()]

    @kept
    def _called(self, call: Call) -> list[tuple[Definition, bool]]:
        return list(self._called_functions(call))

    def _called_functions(self, call: Call) -> Iterator[tuple[Definition, bool]]:
        """The functions of the program that a call runs; True if it gives them its arguments."""
        source = call.source
        found = self.definition(source.resolve(call.node.func, call.scope))
        if found is None:
            if call.last in _ELSEWHERE or not is_tensorflow(call.name):
                return
            if call.name is not None and ".data." in call.name:
                return  # what a Dataset is given runs on the host
            # tf.cond(p, f, g), tf.while_loop(c, b, v): the functions that it is given.
            for value in (*call.node.args, *(k.value for k in call.node.keywords)):
                if isinstance(value, (ast.Name, ast.Attribute)):
                    given = self.function(value, call.scope, source)
                    if given is not None:
                        yield given, False
        elif isinstance(found.node, ast.ClassDef):
            for method in ("__init__", "build", "call", "__call__"):
                for value in found.scope.bindings.get(method, ()):
                    if isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        yield Definition(value, found.source), method == "__init__"
        else:
            yield found, True


@dataclasses.dataclass(frozen=True, eq=False)
class ModelFunction:
    """A model_fn, and the specs that it makes."""

    node: Function
    source: Source
    specs: tuple[Call, ...]

    @property
    def is_tpu(self) -> bool:
        return any(call.last == "TPUEstimatorSpec" for call in self.specs)

    @property
    def definition(self) -> Definition:
        return Definition(self.node, self.source)


@kept
def _calls_by_function(source: Source) -> dict[ast.AST, list[Call]]:
    found: dict[ast.AST, list[Call]] = {}
    for call in source.calls:
        if call.scope.function is not None:
            found.setdefault(call.scope.function, []).append(call)
    return found


def is_tensorflow(name: str | None) -> TypeGuard[str]:
    """True if a canonical name is TensorFlow's, or the facade's."""
    return name is not None and name.startswith("tf.")


def is_tf(name: str | None, *lasts: str) -> TypeGuard[str]:
    """True if a canonical name is TensorFlow's and ends in one of these, wherever it lives."""
    return name is not None and name.startswith("tf.") and name.rpartition(".")[2] in lasts


# Methods of a Dataset that are given a function, which then runs on the host.
_DATASET_METHODS = {"map", "filter", "flat_map", "interleave", "apply", "from_generator", "reduce"}


def is_input_code(call: Call) -> bool:
    """True if a call stands in a lambda that a Dataset is given."""
    for scope in call.scope.ancestors():
        outer = getattr(scope.node, "parent", None)
        if isinstance(outer, ast.keyword):
            outer = outer.parent  # type: ignore[attr-defined]
        if isinstance(scope.node, ast.Lambda) and isinstance(outer, ast.Call):
            function = outer.func
            if isinstance(function, ast.Attribute) and function.attr in _DATASET_METHODS:
                return True
    return False


def _names_tpu(source: Source) -> bool:
    return any(name in source.text for name in ("TPUEstimator", "TPUConfig", "PER_HOST_V"))


def _says_no_tpu(model: ModelFunction) -> bool:
    return any(call.value("use_tpu") is False for call in model.specs)


# Never looked for among the program's files. Python has loaded those of the second lot when it
# starts, so no file hides them.
_LIBRARIES = set(
    """
    __future__ absl collections estimator2strategy functools json keras math matplotlib numpy pandas
    re scipy six sklearn tensorflow tensorflow_estimator tf_keras tf_slim time

    abc builtins codecs encodings io marshal os posixpath site stat sys zipimport
    """.split()  # noqa: SIM905
)


def _locate(folder: str, module: str, level: int) -> str | None:
    parts = module.split(".") if module else []
    if level:
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        if not parts:
            return folder
        return _file_of(os.path.join(folder, *parts))
    for _ in range(_CLIMB):
        found = _file_of(os.path.join(folder, *parts))
        if found:
            return found
        if os.path.exists(os.path.join(folder, ".git")) or os.path.dirname(folder) == folder:
            return None
        folder = os.path.dirname(folder)
    return None


def _file_of(stem: str) -> str | None:
    """The module or package that a path without its ending is."""
    if os.path.isfile(f"{stem}.py"):
        return f"{stem}.py"
    if os.path.isdir(stem):
        init = os.path.join(stem, "__init__.py")
        if os.path.isfile(init):
            return init
        # A namespace package, if there is Python in it.
        if any(e.endswith(".py") or os.path.isdir(os.path.join(stem, e)) for e in _entries(stem)):
            return stem
    return None


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # without permission to look into it
        return []
