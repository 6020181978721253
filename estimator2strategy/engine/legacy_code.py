"""Tells legacy code from other code: by its module's name, by its file, by a frame that runs it.

    add(Scope(legacy=frozenset({"bert"})))      # from now on bert's modules are legacy code
    scope().holds("bert.modeling", "/.../bert/modeling.py")
    is_legacy_frame(sys._getframe(1))

`legacy/importing.py` runs such code with TF 1.15's `tensorflow`; the rest of the package asks here
on whose behalf it works. Nothing here imports TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

# Installed packages that were written for TF 1.x.
LEGACY_PACKAGES = frozenset(
    {"adanet", "bert", "gin", "mesh_tensorflow", "tensor2tensor", "tensorflow_gan"}
)


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
        return origin is not None and not _is_installed(origin) and not is_migrated(origin)


_NEVER = frozenset(sys.stdlib_module_names) | {
    "estimator2strategy",
    "keras",
    "numpy",
    "tensorflow",
    "tf_keras",
}

_in_force = Scope()


def scope() -> Scope:
    """The legacy code of this process."""
    return _in_force


def add(more: Scope) -> None:
    """From now on the modules in `more` are legacy code too."""
    global _in_force
    _in_force |= more


# The key in a frame's builtins that marks legacy code; who derives other builtins from them is
# legacy code too.
MARK = "__legacy__"


def is_legacy_frame(frame: FrameType) -> bool:
    """True if a frame runs code of a legacy module."""
    return MARK in frame.f_builtins


def called_from_tf115() -> bool:
    """True if `tensorflow` is TF 1.15's in the code that called this package."""
    frame = _outside(sys._getframe(1))
    return frame is not None and _speaks_tf115(frame)


def works_for_tf115(frame: FrameType | None) -> bool:
    """True if the code of a program that is nearest to `frame` is TF 1.15's; an installed package
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
        return not _in_force.tf2
    facade = sys.modules.get("estimator2strategy.tf1")
    names = (*frame.f_globals.values(), *frame.f_locals.values())
    return facade is not None and any(value is facade for value in names)


# Which program owns a file.


@functools.cache
def _is_installed(origin: str) -> bool:
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
    return spec is not None and spec.origin is not None and _is_installed(spec.origin)


def is_migrated(origin: str) -> bool:
    """True if a file names this package itself: then its `tensorflow` is TensorFlow 2."""
    if not origin.endswith(".py"):
        return False
    source = Path(origin).read_bytes()
    return re.search(rb"^\s*(import|from)\s+estimator2strategy\b", source, re.MULTILINE) is not None
