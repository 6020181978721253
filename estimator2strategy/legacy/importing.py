"""Gives modules of a legacy program TF 1.15's `tensorflow`, and everybody else the real one.

    run_classifier = legacy.import_module("run_classifier")     # and what it imports beside it
    modeling = legacy.import_module("bert.modeling")            # an installed package
    legacy.install()                                            # all that is not installed

The last of these, in a `conftest.py`, lets pytest run the tests of a legacy project; see
`legacy_pytest.py`.

A legacy module is executed with builtins whose `__import__` answers `import tensorflow` with
`estimator2strategy.tf1`. Source, bytecode and `sys.modules["tensorflow"]` stay as they are.
While such a module asks a shape for a dimension it gets a Dimension, as in TF 1.15; everybody else
gets an int.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from estimator2strategy.legacy import python2, removed_names

# Installed packages that were written for TF 1.x.
LEGACY_PACKAGES = frozenset(
    {"adanet", "bert", "gin", "mesh_tensorflow", "tensor2tensor", "tensorflow_gan"}
)


def import_module(name: str, also: Sequence[str] = ()) -> ModuleType:
    """Imports a module that was written for TF 1.x.

    Args:
        name: As for `importlib.import_module`.
        also: Other top-level modules or packages of the same program.
    """
    install(Scope(legacy=frozenset(n.partition(".")[0] for n in (name, *also))))
    return importlib.import_module(name)


@dataclasses.dataclass(frozen=True)
class Scope:
    """Which modules are legacy code.

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
        """Whether a module of this name can be legacy code at all."""
        top = module.partition(".")[0]
        if top in _NEVER or any(fnmatchcase(module, pattern) for pattern in self.modern):
            return False
        return self.whole_program or top in self.legacy

    def holds(self, module: str, origin: str | None) -> bool:
        """Whether the module `module` of the file `origin` is legacy code."""
        if not self.may_hold(module):
            return False
        if module.partition(".")[0] in self.legacy:
            return True
        return origin is not None and not _is_installed(origin) and not is_migrated(origin)


_NEVER = frozenset(sys.stdlib_module_names) | {
    "estimator2strategy",
    "keras",
    "numpy",
    "tensorflow",
    "tf_keras",
}


def install(scope: Scope | None = None) -> None:
    """From now on modules in `scope` (and in earlier ones) are imported as legacy code.

    By default these are all modules that are not installed, in graph mode: a whole program, or the
    tests of one.
    """
    finder = _finder()
    finder.scope |= scope or Scope(whole_program=True, graph_mode=True)


class _LegacyFinder(importlib.abc.MetaPathFinder):
    """Wraps the loader that the other finders choose for a legacy module."""

    def __init__(self) -> None:
        self.scope = Scope()

    def find_spec(self, fullname, path=None, target=None):
        if not self.scope.may_hold(fullname):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            if spec.loader is None or not self.scope.holds(fullname, spec.origin):
                return spec
            if fullname in self.scope.forks:
                spec.loader = _ForkLoader()
            else:
                spec.loader = _LegacyLoader(spec.loader)
                _refuse_fork(fullname, spec.origin)
            return spec
        return None


class _LegacyLoader(importlib.abc.Loader):
    """Executes a module with our builtins; for all else the loader it wraps."""

    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__dict__["__builtins__"] = BUILTINS
        try:
            self._loader.exec_module(module)
        except SyntaxError as error:
            python2.explain(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _ForkLoader(importlib.abc.Loader):
    """Puts the names of this package in the place of those of a forked tpu_estimator.py."""

    def exec_module(self, module):
        from estimator2strategy.tf1.facade import namespace

        ours = namespace.resolve("tf.python.estimator.tpu.tpu_estimator")
        module.__getattr__ = lambda name: getattr(ours, name)


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


def _finder() -> _LegacyFinder:
    for finder in sys.meta_path:
        if isinstance(finder, _LegacyFinder):
            return finder
    finder = _LegacyFinder()
    sys.meta_path.insert(0, finder)
    return finder


# What legacy modules get for `import`.


def _import(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
    top = name.partition(".")[0]
    if level == 0 and top in ("tensorflow", "tensorflow_estimator"):
        return _import_tensorflow(name, fromlist)
    if level == 0 and top == "tf_slim":
        from estimator2strategy.tf1.contrib import _slim

        return _slim._import(name, globals, locals, fromlist)
    try:
        module = builtins.__import__(name, globals, locals, fromlist, level)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == top:
            removed_names.explain(error)
        raise
    if level == 0 and module is sys.modules.get(top):
        if module is importlib:
            return _importlib()
        if removed_names.covers(top):
            return removed_names.module(top)
    return module


def _import_tensorflow(name: str, fromlist: Sequence[str] | None) -> ModuleType:
    """What `import name` or `from name import fromlist` binds."""
    root, module = _walk(name)
    for attribute in fromlist or ():
        if attribute != "*":
            _attribute(module, attribute, name)
    return module if fromlist else root


@functools.cache
def _start() -> None:
    """What is different from the moment on in which legacy code first imports TensorFlow."""
    from estimator2strategy.engine import _tf_switches
    from estimator2strategy.engine.runtime import devices
    from estimator2strategy.legacy import strategies
    from estimator2strategy.tf1.facade import modes

    devices.emulate_tpu_if_asked()
    strategies.prepare()
    scope = _finder().scope
    if not scope.tf2:
        _tf_switches.tensor_shapes_by_caller(is_legacy_frame)
        _tf_switches.tensor_equality_by_caller(is_legacy_frame)
        build_tf115_graphs()
    if scope.graph_mode:
        modes.disable_eager_execution()
        _tf_switches.threads_in_graph_mode(is_legacy_frame)


@functools.cache
def keras_is_there() -> None:
    """What is different from the moment on in which the facade first hands out Keras 2."""
    from estimator2strategy.engine import _tf_switches

    _tf_switches.keras_moments_may_lack_a_mask()
    if not _finder().scope.tf2:
        _tf_switches.keras_dtypes_by_caller(is_legacy_frame)
        _tf_switches.keras_initializers_by_graph()
        _tf_switches.keras_metric_names_by_caller(is_legacy_frame)
        _tf_switches.keras_layer_names_by_caller(is_legacy_frame)


def _walk(name: str) -> tuple[Any, Any]:
    """The first and the last of the modules in `tensorflow.a.b`."""
    from estimator2strategy.tf1.facade import namespace

    _start()
    top, *rest = name.split(".")
    tensorflow = "tf.compat.v2" if _finder().scope.tf2 else "tf"
    module = root = namespace.resolve(tensorflow if top == "tensorflow" else top)
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
def _importlib() -> ModuleType:
    """`importlib` whose `import_module("tensorflow")` is the `import` statement's."""

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.partition(".")[0] in ("tensorflow", "tensorflow_estimator"):
            return _walk(name)[1]
        return importlib.import_module(name, package)

    stand_in = ModuleType("importlib", importlib.__doc__)
    stand_in.__dict__.update(vars(importlib), import_module=import_module)
    stand_in.__getattr__ = lambda name: getattr(importlib, name)  # type: ignore[method-assign]
    return stand_in


# The second key marks them: who derives other builtins from these is legacy code too.
BUILTINS = {**vars(builtins), "__import__": _import, "__legacy__": True}


def is_legacy_frame(frame: FrameType) -> bool:
    """Whether a frame runs code of a legacy module."""
    return "__legacy__" in frame.f_builtins


def called_from_tf115() -> bool:
    """Whether `tensorflow` is TF 1.15's in the code that called this package."""
    frame = _outside(sys._getframe(1))
    return frame is not None and _speaks_tf115(frame)


# What a program has switched on of TF 2's graphs: "resource variables", "control flow v2".
SWITCHED_ON: set[str] = set()


def build_tf115_graphs() -> None:
    """From now on TF 1.15's code gets its reference variables and control flow, in v1 graphs."""
    from estimator2strategy.engine import _tf_switches

    def has_not_switched(switch: str) -> Callable[[FrameType], bool]:
        return lambda frame: switch not in SWITCHED_ON and _works_for_tf115(frame)

    _tf_switches.graphs_by_caller(
        has_not_switched("resource variables"), has_not_switched("control flow v2")
    )


def _works_for_tf115(frame: FrameType | None) -> bool:
    """Whether the code of a program that is nearest to `frame` is TF 1.15's; an installed package
    works for its caller."""
    frame = _outside(frame)
    while frame and not is_legacy_frame(frame) and _is_installed(frame.f_code.co_filename):
        frame = _outside(frame.f_back)
    return frame is not None and _speaks_tf115(frame)


def _outside(frame: FrameType | None) -> FrameType | None:
    """`frame`, or the first one above it that is not this package's."""
    while frame and frame.f_globals.get("__name__", "").startswith("estimator2strategy."):
        frame = frame.f_back
    return frame


def _speaks_tf115(frame: FrameType) -> bool:
    if is_legacy_frame(frame):
        return not _finder().scope.tf2
    facade = sys.modules.get("estimator2strategy.tf1")
    names = (*frame.f_globals.values(), *frame.f_locals.values())
    return facade is not None and any(value is facade for value in names)


def execute(code: CodeType, module: ModuleType) -> None:
    """Runs the code of a legacy module in `module`."""
    module.__dict__["__builtins__"] = BUILTINS
    exec(code, module.__dict__)


# Whose a file is.


@functools.cache
def _is_installed(origin: str) -> bool:
    """Whether a file belongs to an installed package, and not to the program."""
    return any(_is_installation(str(folder)) for folder in Path(origin).parents)


@functools.cache
def _is_installation(folder: str) -> bool:
    path = Path(folder)
    if path.name in ("site-packages", "dist-packages") or path == Path(os.__file__).parent:
        return True
    # `pip install --target` leaves these beside the packages.
    return any(path.glob("*.dist-info"))


def is_installed(module: str) -> bool:
    """Whether a module, found by its name, belongs to an installed package."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    return spec is not None and spec.origin is not None and _is_installed(spec.origin)


def is_migrated(origin: str) -> bool:
    """Whether a file names this package itself: then its `tensorflow` is TensorFlow 2."""
    if not origin.endswith(".py"):
        return False
    source = Path(origin).read_bytes()
    return re.search(rb"^\s*(import|from)\s+estimator2strategy\b", source, re.MULTILINE) is not None
