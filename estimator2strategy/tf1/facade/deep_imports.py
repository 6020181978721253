"""`from estimator2strategy.tf1.contrib.tpu.python.tpu import tpu_config`, and all such imports.

Modules of the facade are made when they are asked for, and few are files. This finder gives the
import statement what attribute access gives, so that only the first word of a program's imports
has to change.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from estimator2strategy.engine import patches
from estimator2strategy.engine.names import name_table
from estimator2strategy.tf1.facade.refused import Refused

_FACADE = "estimator2strategy.tf1"
_PREFIX = f"{_FACADE}."
_CONTRIB = f"{_PREFIX}contrib"
_FACADES_OWN = f"{_PREFIX}facade"


class DeepImports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the facade.

    It stands first in `sys.meta_path`: where the parent is a package of TensorFlow's, the other
    finders would find a file of TensorFlow's in it, and run it a second time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        if not fullname.startswith(_PREFIX):
            return None
        parent, _, name = fullname.rpartition(".")
        if _is_folder(parent):
            spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if spec is not None or parent == _FACADES_OWN:
                return spec
        value = _below(parent, name)
        if value is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.loader_state = value
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Puts the facade's own module in the place of the new one."""
        assert module.__spec__ is not None
        value = module.__spec__.loader_state
        if value.__class__.__module__.startswith(_PREFIX):
            # So that modules below it are asked for; refused modules have neither of them.
            vars(value)["__path__"] = []
            vars(value).setdefault("__spec__", module.__spec__)
        sys.modules[module.__name__] = value


def _is_folder(name: str) -> bool:
    """True if a module of the facade is a folder of this package, and no module made from rows."""
    names = vars(sys.modules[name])
    return names.get("__name__") == name and bool(names.get("__file__"))


def _below(parent: str, name: str) -> Any:
    """The module `name` in the module `parent` of the facade, or None."""
    from estimator2strategy.tf1.facade import namespace

    module: Any = sys.modules[parent]
    if isinstance(module, Refused) or f"{module.__name__}.".startswith(_PREFIX):
        value = getattr(module, name, None)  # these look by themselves for what is below them
    else:
        try:
            value = namespace.attribute(module, name)
        except AttributeError:
            return None
    if isinstance(value, ModuleType | Refused):
        return value
    legacy = f"tf.{parent}.{name}".replace(f"tf.{_FACADE}", "tf", 1)
    if legacy in name_table.names():
        return value
    if parent.startswith(f"{_CONTRIB}."):  # one of which another file is a part
        contrib: Any = importlib.import_module(_CONTRIB)
        return contrib.module_of(legacy)
    return None


def install() -> None:
    """Modules of the facade can be imported from now on."""
    if not any(isinstance(finder, DeepImports) for finder in sys.meta_path):
        patches.noted("facade imports")
        sys.meta_path.insert(0, DeepImports())
