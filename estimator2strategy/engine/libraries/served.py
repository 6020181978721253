"""Gives installed libraries that were written for Estimators the `tensorflow` that they expect.

    install()     # `import tensorflow_ranking` then gets TensorFlow 2.15's names

When a package is imported for the first time, it is looked up in the table. A package that the
table does not know is read, and never run: if it needs names that TensorFlow has dropped, it is
served too. A line on stderr says so. `E2S_MODERN_MODULES=NAME,NAME` leaves packages alone.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from estimator2strategy.engine import legacy_code, patches
from estimator2strategy.engine.libraries import remedies, table

VARIABLE = "E2S_MODERN_MODULES"

# Not read: these run on the TensorFlow that is installed, or do not use it, and are large.
_MODERN = frozenset(
    {
        *("IPython", "PIL", "absl", "apache_beam", "cv2", "fontTools", "google", "grpc", "h5py"),
        *("jax", "jaxlib", "keras", "matplotlib", "mypy", "nltk", "notebook", "pandas", "pip"),
        *("pyarrow", "pytest", "scipy", "setuptools", "sklearn", "sympy", "tensorboard"),
        *("tensorflow_data_validation", "tensorflow_datasets", "tensorflow_estimator"),
        *("tensorflow_probability", "tensorflow_transform"),
        *("tf_keras", "tf_slim", "tfx", "tfx_bsl", "torch", "transformers"),
    }
)


class LibraryFinder(importlib.abc.MetaPathFinder):
    """Stands first in `sys.meta_path`, and answers for libraries that are served or known."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:
            if _is_imported() and (reason := _dropped(fullname)):
                raise ImportError(reason, name=fullname)
            return None
        if _is_switched_off(fullname):
            return None
        spec = _spec_of(fullname, target)
        if spec is None:
            if table.known(fullname) and _is_imported():
                raise ModuleNotFoundError(remedies.missing(fullname), name=fullname)
            return None
        if spec.loader is not None and legacy_code.is_installed_file(spec.origin or ""):
            spec.loader = _TellingLoader(spec.loader)
        return spec


class LackingFinder(importlib.abc.MetaPathFinder):
    """Stands last in `sys.meta_path`, and names the command for what a known library lacks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if path is None and _is_imported() and (reason := _lacking(fullname)):
            raise ModuleNotFoundError(reason, name=fullname)


def _lacking(module: str) -> str | None:
    """The sentence of the library that imports a module, or of the next one that imports that."""
    frame = sys._getframe(2).f_back
    while frame is not None:
        library = str(frame.f_globals.get("__name__")).partition(".")[0]
        if table.known(library) and (
            reason := remedies.lacking(library, release_of(library), module)
        ):
            return reason
        frame = frame.f_back
    return None


class _TellingLoader(importlib.abc.Loader):
    """Imports a library, and says what to do where that fails, or where a name is gone."""

    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        name, release = module.__name__, release_of(module.__name__)
        try:
            self._loader.exec_module(module)
            if printed := remedies.printed(module):
                raise printed
        except Exception as error:
            reason = remedies.failed(name, release, error)
            if reason is None:
                raise
            raise ImportError(reason, name=name) from error
        if not hasattr(module, "__getattr__") and table.lost_names(name, release):
            module.__getattr__ = functools.partial(_attribute, name)


def _attribute(module: str, name: str) -> Any:
    reason = _dropped(f"{module}.{name}")
    raise AttributeError(reason or f"module {module!r} has no attribute {name!r}", name=name)


def _dropped(name: str) -> str | None:
    """The sentence for a name that an installed library of the table has dropped."""
    release = release_of(name.partition(".")[0])
    return remedies.dropped(name, release) if release and name.count(".") == 1 else None


def _is_imported() -> bool:
    """True if an import asks a finder, and not a program that wants to know if a module is there.

    `importlib.util.find_spec` has to answer None for a module that is missing.
    """
    return sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"


def install() -> None:
    """From now on libraries that are imported for the first time are served."""
    ours = (LibraryFinder, LackingFinder)
    others = [finder for finder in sys.meta_path if not isinstance(finder, ours)]
    patches.noted("library imports")
    sys.meta_path[:] = [LibraryFinder(), *others, LackingFinder()]


def _is_switched_off(module: str) -> bool:
    if module in _MODERN or not legacy_code.may_be_legacy(module):
        return True
    modern = legacy_code.scope().modern
    switched_off = (*modern, *filter(None, os.environ.get(VARIABLE, "").split(",")))
    return any(fnmatchcase(module, pattern) for pattern in switched_off)


def _spec_of(module: str, target: Any) -> ModuleSpec | None:
    """The spec of a package that is served, known or compiled; None for others, or if missing."""
    is_legacy = module in legacy_code.scope().legacy
    scope = None if is_legacy else _scope_of(module)
    if is_legacy or scope:
        # The rest of the package; it imports this module, and is needed for such libraries only.
        importing = importlib.import_module("estimator2strategy.legacy.importing")
        if scope:
            importing.install(scope)
        spec: ModuleSpec | None = importing.find_spec(module, None, target)
        return spec
    if not table.known(module) and module not in remedies.COMPILED:
        return None
    others = (finder for finder in sys.meta_path if not isinstance(finder, LibraryFinder))
    specs = (f.find_spec(module, None, target) for f in others if hasattr(f, "find_spec"))
    return next(filter(None, specs), None)


@dataclasses.dataclass(frozen=True)
class Served:
    """A package that is served: its release, if the table knows it, and its world."""

    release: str
    world: str


def of_release(module: str, release: str) -> Served | None:
    """The library of the table that is served at a release; None if that one is left alone."""
    row = table.find(module, release) if release else None
    return Served(release, row.world) if row else None


@functools.cache
def of_installed(module: str) -> Served | None:
    """The installed package that is served; None if it is missing, or left alone."""
    path = None if _is_switched_off(module) else _path_of(module)
    if path is None or not legacy_code.is_installed_file(str(path)):
        return None
    if release := release_of(module):
        return of_release(module, release)
    from estimator2strategy.engine.libraries import reading  # a program may need none of it

    read = reading.read(module, path.parent if path.name == "__init__.py" else path)
    return Served("", read.world) if read.need is reading.Need.NEEDS_OLD else None


@functools.cache
def _scope_of(module: str) -> legacy_code.Scope | None:
    """The scope that serves an installed package; None if it is left alone."""
    spec = of_installed(module)
    return _announced(module, spec.release, spec.world) if spec else None


def _path_of(module: str) -> Path | None:
    """The file that `import module` runs; None if that is none of Python's source."""
    spec = importlib.machinery.PathFinder.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


@functools.cache
def release_of(module: str) -> str:
    """The installed release of a library of the table; "" if it is another one of that name."""
    path, rows = _path_of(module), table.known(module)
    return table.installed(rows[0].distribution, path.parents[1]) if rows and path else ""


def _announced(module: str, release: str, world: str) -> legacy_code.Scope:
    program = legacy_code.scope()
    is_tf2 = world == "2.15" or (not world and (program.tf2 or not program.whole_program))
    name = f"{module} {release}".strip()
    sys.stderr.write(
        f"e2s: {name} was written for Estimators and gets the names of TensorFlow "
        f"{'2.15' if is_tf2 else '1.15'}; {VARIABLE}={module} switches this off\n"
    )
    return legacy_code.Scope(legacy=frozenset({module}), tf2=is_tf2)
