"""Gives modules of a legacy program TF 1.15's `tensorflow`, and everybody else the real one.

    run_classifier = legacy.import_module("run_classifier")     # and what it imports beside it
    modeling = legacy.import_module("bert.modeling")            # an installed package

A legacy module is executed with builtins whose `__import__` answers `import tensorflow` with
`estimator2strategy.tf1`. Source, bytecode and `sys.modules["tensorflow"]` stay as they are.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_FACADE = "estimator2strategy.tf1"


def import_module(name: str, also: Sequence[str] = ()) -> ModuleType:
    """Imports a module that was written for TF 1.x.

    Args:
        name: As for `importlib.import_module`.
        also: Other top-level modules or packages of the same program.
    """
    _finder().names.update(n.partition(".")[0] for n in (name, *also))
    return importlib.import_module(name)


class _LegacyFinder(importlib.abc.MetaPathFinder):
    """Wraps the loader that the other finders choose for a legacy module."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._asking = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in self.names:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _LegacyLoader(spec.loader)
                return spec
        return None


class _LegacyLoader(importlib.abc.Loader):
    """Executes a module with our builtins; for all else the loader it wraps."""

    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__dict__["__builtins__"] = _BUILTINS
        self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _finder() -> _LegacyFinder:
    for finder in sys.meta_path:
        if isinstance(finder, _LegacyFinder):
            return finder
    finder = _LegacyFinder()
    sys.meta_path.insert(0, finder)
    return finder


def _import(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
    if level or name.partition(".")[0] != "tensorflow":
        return builtins.__import__(name, globals, locals, fromlist, level)
    root = importlib.import_module(_FACADE)
    module = root
    for part in name.split(".")[1:]:
        try:
            module = getattr(module, part)
        except AttributeError:
            return builtins.__import__(name, globals, locals, fromlist, level)
    return module if fromlist else root


_BUILTINS = {**vars(builtins), "__import__": _import}
