"""Gives installed libraries that were written for Estimators the `tensorflow` that they expect.

    install()     # `import tensorflow_ranking` then gets TensorFlow 2.15's names

When a package is imported for the first time, it is looked up in the table. A package that the
table does not know is read, and never run: if it needs names that TensorFlow has dropped, it is
served too. A line on stderr says so. `E2S_MODERN_MODULES=NAME,NAME` leaves packages alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

from estimator2strategy.engine import legacy_code, patches
from estimator2strategy.engine.libraries import table

VARIABLE = "E2S_MODERN_MODULES"

# Not read: these run on the TensorFlow that is installed, or do not use it, and are large.
_MODERN = frozenset(
    {
        "IPython",
        "PIL",
        "absl",
        "apache_beam",
        "cv2",
        "fontTools",
        "google",
        "grpc",
        "h5py",
        "jax",
        "jaxlib",
        "keras",
        "matplotlib",
        "mypy",
        "nltk",
        "notebook",
        "pandas",
        "pip",
        "pyarrow",
        "pytest",
        "scipy",
        "setuptools",
        "sklearn",
        "sympy",
        "tensorboard",
        "tensorflow_data_validation",
        "tensorflow_datasets",
        "tensorflow_estimator",
        "tensorflow_model_analysis",
        "tensorflow_probability",
        "tensorflow_transform",
        "tf_keras",
        "tf_slim",
        "tfx",
        "tfx_bsl",
        "torch",
        "transformers",
    }
)


class LibraryFinder(importlib.abc.MetaPathFinder):
    """Stands first in `sys.meta_path`, and answers for the packages that are served."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if path is not None or not _may_be_served(fullname):
            return None
        scope = _scope_of(fullname)
        if scope is None:
            return None
        # The rest of the package; it imports this module, and is needed for such libraries only.
        importing = importlib.import_module("estimator2strategy.legacy.importing")
        importing.install(scope)
        found: importlib.machinery.ModuleSpec | None = importing.find_spec(fullname, path, target)
        return found


def install() -> None:
    """From now on libraries that are imported for the first time are served."""
    others = [finder for finder in sys.meta_path if not isinstance(finder, LibraryFinder)]
    patches.noted("library imports")
    sys.meta_path[:] = [LibraryFinder(), *others]


def _may_be_served(module: str) -> bool:
    if module in _MODERN or not legacy_code.may_be_legacy(module):
        return False
    known = legacy_code.scope()
    switched_off = (*known.modern, *filter(None, os.environ.get(VARIABLE, "").split(",")))
    return module not in known.legacy and not any(fnmatchcase(module, p) for p in switched_off)


@functools.cache
def _scope_of(module: str) -> legacy_code.Scope | None:
    """The scope that serves an installed package; None if it is left alone."""
    spec = importlib.machinery.PathFinder.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    if not legacy_code.is_installed_file(spec.origin):
        return None
    path = Path(spec.origin)
    path = path.parent if spec.submodule_search_locations else path
    if rows := table.known(module):
        release = table.installed(rows[0].distribution, path.parent)
        row = table.find(module, release)
        return _announced(module, release, row.world) if row else None
    from estimator2strategy.engine.libraries import reading

    read = reading.read(module, path)
    if read.need is not reading.Need.NEEDS_OLD:
        return None
    return _announced(module, "", read.world)


def _announced(module: str, release: str, world: str) -> legacy_code.Scope:
    program = legacy_code.scope()
    is_tf2 = world == "2.15" or (not world and (program.tf2 or not program.whole_program))
    name = f"{module} {release}".strip()
    sys.stderr.write(
        f"e2s: {name} was written for Estimators and gets the names of TensorFlow "
        f"{'2.15' if is_tf2 else '1.15'}; {VARIABLE}={module} switches this off\n"
    )
    return legacy_code.Scope(legacy=frozenset({module}), tf2=is_tf2)
