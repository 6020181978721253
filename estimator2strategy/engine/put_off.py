"""Puts off what `import tensorflow` does early, and what a program may never need.

TensorFlow loads Keras at the end of its import, although `tf.keras` loads it at its first use.
Keras imports scikit-learn, pandas and Matplotlib where they are installed. TensorFlow Lite imports
JAX for one of its converters. Together that is half of the seconds.

Nothing is taken away: the next `import keras` or `import jax` is the real one. Collections of
garbage wait, too, because there is none.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from estimator2strategy.engine import patches


@contextlib.contextmanager
def imports_of_tensorflow() -> Iterator[None]:
    """Lets TensorFlow be imported without Keras 3 and JAX, unless they are there already."""
    with without_collections(), _without_libraries():
        yield


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """While this lasts, nothing is looked through for garbage, of which imports leave little."""
    was_enabled = gc.isenabled()
    patches.noted("no collections")
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _without_libraries() -> Iterator[None]:
    finder = _Finder(name for name in _LOADERS if name not in sys.modules)
    patches.noted("imports put off")
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if isinstance(sys.modules.get("jax"), _StandIn):
            del sys.modules["jax"]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what is put off where it is, with another loader; other threads get the real one."""

    def __init__(self, names: Iterator[str]):
        self._names, self._thread = frozenset(names), threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._names or threading.get_ident() != self._thread:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _LOADERS[name]()
        return spec


class _Refusing(importlib.abc.Loader):
    """TensorFlow goes on without Keras if it cannot be imported."""

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(f"{module.__name__} is imported when it is used", name=module.__name__)


class _StandIn(ModuleType):
    """JAX for who imports a function of it, and does not call it now."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(importlib.import_module("jax"), name)(*args, **kwargs)

        return call


class _StandingIn(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


_LOADERS: dict[str, type[importlib.abc.Loader]] = {"keras": _Refusing, "jax": _StandingIn}
