"""Gives modules of a legacy program TF 1.15's `tensorflow`, and everybody else the real one.

    run_classifier = legacy.import_module("run_classifier")     # and what it imports beside it
    modeling = legacy.import_module("bert.modeling")            # an installed package
    legacy.install()                                            # all that is not installed

The last of these, in a `conftest.py`, lets pytest run the tests of a legacy project; see
`legacy_pytest.py`.

A legacy module is executed with its own builtins. Their `__import__` answers `import tensorflow`
with `estimator2strategy.tf1`. Source, bytecode and `sys.modules["tensorflow"]` stay as they are.
A legacy module that asks a shape for a dimension gets a Dimension, as in TF 1.15; other code gets
an int.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from estimator2strategy.engine import legacy_code, patches, quiet_import
from estimator2strategy.engine.legacy_code import Scope
from estimator2strategy.engine.libraries import served
from estimator2strategy.legacy import python2, removed_names


def import_module(name: str, also: Sequence[str] = (), *, tf2: bool = False) -> ModuleType:
    """Imports a module that was written for TF 1.x.

    Args:
        name: As for `importlib.import_module`.
        also: Other top-level modules or packages of the same program.
        tf2: It was written for TF 2.0 to 2.15, which had `tf.estimator` and Keras 2.
    """
    install(Scope(legacy=frozenset(n.partition(".")[0] for n in (name, *also)), tf2=tf2))
    return importlib.import_module(name)


def install(scope: Scope | None = None) -> None:
    """From now on modules in `scope` (and in earlier ones) are imported as legacy code.

    By default these are all modules that are not installed, in graph mode: a whole program, or the
    tests of one.
    """
    legacy_code.add(scope or Scope(whole_program=True, graph_mode=True))
    if not any(isinstance(finder, _LegacyFinder) for finder in sys.meta_path):
        patches.noted("legacy imports")
        sys.meta_path.insert(0, _LegacyFinder())
    served.install()
    _cover_loaders()


def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
    """The spec of a module that `install` has just made legacy code, with our loader."""
    return _LegacyFinder().find_spec(name, path, target)


class _LegacyFinder(importlib.abc.MetaPathFinder):
    """Wraps the loader that the other finders choose for a legacy module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        if not legacy_code.may_hold(fullname):
            return None
        for finder in sys.meta_path:
            if isinstance(finder, (_LegacyFinder, served.LibraryFinder)):
                continue
            if not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            scope = legacy_code.scope_of(fullname, spec.origin)
            if spec.loader is None or scope is None:
                return spec
            if fullname in legacy_code.scope().forks:
                spec.loader = _ForkLoader(scope.tf2)
            else:
                spec.loader = _LegacyLoader(spec.loader, scope.tf2)
                _refuse_fork(fullname, spec.origin)
            return spec
        return None


class _LegacyLoader(importlib.abc.Loader):
    """Executes a module with our builtins; for all else the loader it wraps."""

    def __init__(self, loader: Any, tf2: bool):
        self._loader = loader
        self._tf2 = tf2

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = builtins_of(self._tf2)
        try:
            self._loader.exec_module(module)
        except SyntaxError as error:
            python2.explain(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


@functools.cache
def _cover_loaders() -> None:
    """Gives our builtins to legacy modules that are loaded by their path.

    `importlib.util.spec_from_file_location`, `imp.load_source` and the loader itself ask no finder.
    """
    plain = importlib.machinery.SourceFileLoader.exec_module

    @functools.wraps(plain)
    def exec_module(self: Any, module: ModuleType) -> None:
        if not legacy_code.mark_in(vars(module)):
            scope = legacy_code.scope_of(self.name, self.path)
            if scope is not None:
                module.__dict__["__builtins__"] = builtins_of(scope.tf2)
        plain(self, module)

    loader = importlib.machinery.SourceFileLoader
    patches.put("legacy imports", loader, "exec_module", exec_module)


class _ForkLoader(importlib.abc.Loader):
    """Puts the names of this package in the place of those of a forked tpu_estimator.py."""

    def __init__(self, tf2: bool):
        self._tf2 = tf2

    def exec_module(self, module: ModuleType) -> None:
        from estimator2strategy.tf1.facade import namespace

        ours = namespace.resolve("tf.python.estimator.tpu.tpu_estimator", self._tf2)
        module.__getattr__ = lambda name: getattr(ours, name)  # type: ignore[method-assign]


def _refuse_fork(name: str, origin: str | None) -> None:
    if origin is None or not origin.endswith("tpu_estimator.py"):
        return
    source = Path(origin).read_bytes()
    if re.search(rb"^class TPUEstimator\(", source, re.M) and b"class _InputPipeline(" in source:
        raise ImportError(
            f"{origin} is a copy of TensorFlow's own tpu_estimator.py, and needs what TensorFlow "
            f"no longer has. To use this package's TPUEstimator in its place: "
            f"e2s run --fork={name} ... (in Python: legacy.Scope(forks={{{name!r}}}))",
            name=name,
            path=origin,
        )


# The `__import__` of legacy modules.


def _import_for(
    tf2: bool,
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    top = name.partition(".")[0]
    if level == 0 and top in ("tensorflow", "tensorflow_estimator"):
        return _import_tensorflow(name, fromlist, tf2)
    if level == 0 and top == "tf_slim":
        from estimator2strategy.tf1.facade import slim_copy

        return slim_copy.import_slim(name, globals, locals, fromlist)
    try:
        module = builtins.__import__(name, globals, locals, fromlist, level)
    except ModuleNotFoundError as error:
        moved = removed_names.moved(name) if level == 0 else None
        if moved is not None and fromlist:
            return moved
        if moved is not None and removed_names.covers(top):  # `import sklearn.grid_search`
            return removed_names.module(top)
        if str(error.name).partition(".")[0] == top:
            removed_names.explain(error)
        raise
    if level == 0 and module is sys.modules.get(name if fromlist else top):
        if module is importlib:
            return _importlib(tf2)
        if removed_names.covers(module.__name__):
            return removed_names.module(module.__name__)
    return module


def _import_tensorflow(name: str, fromlist: Sequence[str] | None, tf2: bool) -> ModuleType:
    """The object that `import name` or `from name import fromlist` binds."""
    root, module = _walk(name, tf2)
    for attribute in fromlist or ():
        if attribute != "*":
            _attribute(module, attribute, name)
    bound: ModuleType = module if fromlist else root
    return bound


@functools.cache
def _announce() -> None:
    """Fills the seconds in which TensorFlow is imported, for somebody who waits."""
    if (
        "tensorflow" not in sys.modules
        and sys.stderr.isatty()
        and legacy_code.scope().whole_program
    ):
        sys.stderr.write("e2s: starting TensorFlow ...\n")


@contextlib.contextmanager
def _random_numbers_kept() -> Iterator[None]:
    """Keeps the state of Python's generator: TensorFlow 1.15 drew no numbers when it was imported.

    A program may seed it before.
    """
    before = random.getstate() if "tensorflow" not in sys.modules else None
    yield
    if before is not None:
        random.setstate(before)


@functools.cache
def _start() -> None:
    """Switches on the behaviour that holds once legacy code has imported TensorFlow."""
    from estimator2strategy.engine import behavior
    from estimator2strategy.engine.runtime import devices, requested_strategy
    from estimator2strategy.tf1.facade import by_caller, modes, namespace

    devices.emulate_tpu_if_asked()
    requested_strategy.prepare()
    behavior.install()
    by_caller.tell_tensors_apart()
    by_caller.tell_keras_apart()
    scope = legacy_code.scope()
    if scope.whole_program:
        by_caller.install()
        removed_names.print_numbers_plainly()
    else:
        by_caller.hold_notices_back()
    if scope.graph_mode:
        modes.start_in_graph_mode()
    if os.environ.get("TF_CONFIG"):
        # Looks after the other processes, before a strategy of the program waits for them.
        namespace.attribute(namespace.resolve("tf.estimator"), "Estimator")


def _walk(name: str, tf2: bool) -> tuple[Any, Any]:
    """The first and the last of the modules in `tensorflow.a.b`."""
    _announce()
    with _random_numbers_kept():
        quiet_import.import_tensorflow()
        from estimator2strategy.tf1.facade import namespace

        _start()
    top, *rest = name.split(".")
    tensorflow = "tf.compat.v2" if tf2 else "tf"
    module = root = namespace.resolve(tensorflow if top == "tensorflow" else top, tf2)
    for part in rest:
        module = _attribute(module, part, name)
    return root, module


def _attribute(module: Any, name: str, imported: str) -> Any:
    from estimator2strategy.tf1.facade import namespace

    try:
        return namespace.attribute(module, name)
    except AttributeError as error:
        raise ModuleNotFoundError(f"{error} (imported from {imported})", name=imported) from None


@functools.cache
def _importlib(tf2: bool) -> ModuleType:
    """`importlib` whose `import_module("tensorflow")` is the `import` statement's."""

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.partition(".")[0] in ("tensorflow", "tensorflow_estimator"):
            module: ModuleType = _walk(name, tf2)[1]
            return module
        return importlib.import_module(name, package)

    stand_in = ModuleType("importlib", importlib.__doc__)
    stand_in.__dict__.update(vars(importlib), import_module=import_module)
    stand_in.__getattr__ = lambda name: getattr(importlib, name)  # type: ignore[method-assign]
    return stand_in


@functools.cache
def builtins_of(tf2: bool) -> dict[str, Any]:
    """The builtins of legacy modules, of TF 2.0 to 2.15 or of TF 1.x."""
    mark = legacy_code.TF2 if tf2 else legacy_code.TF115
    own_import = functools.partial(_import_for, tf2)
    return {**vars(builtins), "__import__": own_import, legacy_code.MARK: mark}


def execute(code: CodeType, module: ModuleType, *, tf2: bool = False) -> None:
    """Runs the code of a legacy module in `module`."""
    module.__dict__["__builtins__"] = builtins_of(tf2)
    exec(code, module.__dict__)
