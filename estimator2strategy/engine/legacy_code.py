"""Tells legacy code from other code: by its module's name, by its file, by what its module holds.

    add(Scope(legacy=frozenset({"bert"})))      # from now on bert's modules are legacy code
    scope_of("bert.modeling", "/.../bert/modeling.py")
    is_of_tf115(model_fn)

`legacy/importing.py` runs such code with TF 1.15's `tensorflow`; the rest of the package asks here
on whose behalf it works. Nothing here imports TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any


@dataclasses.dataclass(frozen=True)
class Scope:
    """The modules that are legacy code.

    Attributes:
        legacy: Top-level modules and packages that are, wherever they come from.
        modern: Patterns of modules that are not: `helpers.tf2_*`.
        whole_program: All modules are that are not installed (in site-packages or the like), and
            do not import `estimator2strategy` themselves.
        graph_mode: TensorFlow starts in graph mode, as TF 1.15 did.
        tf2: `tensorflow` is that of TF 2.0 to 2.15, which had `tf.estimator` and Keras 2.
        forks: Modules of the program that are copies of TensorFlow's tpu_estimator.py. This
            package's names take their place.
    """

    legacy: frozenset[str] = frozenset()
    modern: tuple[str, ...] = ()
    whole_program: bool = False
    graph_mode: bool = False
    tf2: bool = False
    forks: frozenset[str] = frozenset()

    def __or__(self, other: Scope) -> Scope:
        return Scope(
            self.legacy | other.legacy,
            (*self.modern, *other.modern),
            self.whole_program or other.whole_program,
            self.graph_mode or other.graph_mode,
            self.tf2 or other.tf2,
            self.forks | other.forks,
        )

    def may_hold(self, module: str) -> bool:
        """True if a module of this name can be legacy code at all."""
        top = module.partition(".")[0]
        if top in _NEVER or any(fnmatchcase(module, pattern) for pattern in self.modern):
            return False
        return self.whole_program or top in self.legacy

    def holds(self, module: str, origin: str | None) -> bool:
        """True if the module `module` of the file `origin` is legacy code."""
        if not self.may_hold(module):
            return False
        if module.partition(".")[0] in self.legacy:
            return True
        return origin is not None and not is_installed_file(origin) and not is_migrated(origin)


_NEVER = frozenset(sys.stdlib_module_names) | {
    "estimator2strategy",
    "keras",
    "numpy",
    "tensorflow",
    "tf_keras",
}

_added: tuple[Scope, ...] = ()


def scope() -> Scope:
    """The legacy code of this process: of all its programs together."""
    return functools.reduce(Scope.__or__, _added, Scope())


def scope_of(module: str, origin: str | None) -> Scope | None:
    """The scope that a legacy module is in: of several programs, the one that was added last.

    None if the module is no legacy code.
    """
    return next((scope for scope in reversed(_added) if scope.holds(module, origin)), None)


def may_be_legacy(module: str) -> bool:
    """True if a module of this name is none of Python's, of TensorFlow or of this package."""
    return module.partition(".")[0] not in _NEVER


def may_hold(module: str) -> bool:
    """True if a module of this name is in a scope, as far as its name tells."""
    return any(scope.may_hold(module) for scope in _added)


def add(more: Scope) -> None:
    """From now on the modules in `more` are legacy code too."""
    global _added
    if more not in _added:
        _added = (*_added, more)


# The key in a module's builtins that marks legacy code, and its values: of which TensorFlow its
# program is. Who derives other builtins from them is legacy code too.
MARK = "__legacy__"
TF115, TF2 = "1.15", "2"


def mark_in(names: Mapping[str, Any]) -> str | None:
    """The mark of the module with these globals."""
    own = names.get("__builtins__")
    return own.get(MARK) if isinstance(own, dict) else None


_FACADE = "estimator2strategy.tf1"

# The facade's own functions and classes have this attribute, and it is True.
OF_TF115 = "_of_tf115"


def holds_facade(names: Mapping[str, Any]) -> bool:
    """True if the module with these globals has imported TF 1.15's `tensorflow`, or names of it."""
    values = tuple(names.values())
    if any(map(_is_of_facade, values)):
        return True
    # `import estimator2strategy.tf1` binds the package; TensorFlow's own classes, which the facade
    # hands out as they are, do not tell.
    return _imports_facade(names.get("__file__"))


@functools.cache
def _imports_facade(origin: str | None) -> bool:
    """True if a module does, at its top: elsewhere its names are those of a function."""
    return _has_import(origin, rb"estimator2strategy\.tf1\b", indented=False)


def _is_of_facade(value: Any) -> bool:
    if isinstance(value, ModuleType):
        name = vars(value).get("__name__", "")
        if name == _FACADE or name.startswith(f"{_FACADE}."):
            return not f"{name}.".startswith(f"{_FACADE}.facade.")
        return False
    return isinstance(value, type | FunctionType) and vars(value).get(OF_TF115, False)


def imports_facade(code: CodeType) -> bool:
    """True if a function itself imports TF 1.15's `tensorflow`."""
    names = code.co_names
    return _FACADE in names or ("estimator2strategy" in names and "tf1" in names)


def is_of_tf115(function: Any) -> bool:
    """True if a function (a method, a partial, a callable object) is of a program of TF 1.15."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)  # noqa: B004, the method itself
    if not isinstance(function, FunctionType):
        return False
    mark = mark_in(function.__globals__)
    if mark is not None:
        return mark == TF115
    cells = [cell.cell_contents for cell in function.__closure__ or () if not _is_empty(cell)]
    return (
        holds_facade(function.__globals__)
        or imports_facade(function.__code__)
        or any(map(_is_of_facade, cells))
    )


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


# Which program owns a file.


@functools.cache
def is_installed_file(origin: str) -> bool:
    """True if a file belongs to an installed package, and not to the program."""
    return any(_is_installation(str(folder)) for folder in Path(origin).parents)


@functools.cache
def _is_installation(folder: str) -> bool:
    path = Path(folder)
    if path.name in ("site-packages", "dist-packages") or path == Path(os.__file__).parent:
        return True
    # `pip install --target` leaves these beside the packages.
    return any(path.glob("*.dist-info"))


def is_installed(module: str) -> bool:
    """True if a module, found by its name, belongs to an installed package."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    return spec is not None and spec.origin is not None and is_installed_file(spec.origin)


def is_migrated(origin: str) -> bool:
    """True if a file names this package itself: then its `tensorflow` is TensorFlow 2."""
    return _has_import(origin, rb"estimator2strategy\b")


def _has_import(origin: str | None, module: bytes, *, indented: bool = True) -> bool:
    if origin is None or not origin.endswith(".py") or not os.path.isfile(origin):
        return False
    spaces = rb"\s*" if indented else b""
    source = Path(origin).read_bytes()
    return re.search(rb"^" + spaces + rb"(import|from)\s+" + module, source, re.M) is not None
