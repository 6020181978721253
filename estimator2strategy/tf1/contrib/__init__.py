"""`tf.contrib` of TF 1.15.

`symbols.csv` has the place of each name today: a module here that has it written anew, or an
installed library; or the name is refused. The first use of a name makes its module and imports its
value. Deep paths (`tf.contrib.tpu.python.tpu.tpu_config`) are modules too.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator2strategy.engine.libraries.table import known
from estimator2strategy.engine.names import name_table
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.legacy import importing
from estimator2strategy.tf1.facade import namespace, slim_copy, stand_ins
from estimator2strategy.tf1.facade.refused import Refused

_LEGACY = "tf.contrib"
# The folders and files beside this one.
_WRITTEN = {path.stem for path in Path(__file__).parent.iterdir()}


@functools.cache
def table() -> name_table.SymbolTable:
    """The rows of `symbols.csv`."""
    return name_table.read("tf1/contrib/symbols.csv", modules="tf1/contrib/modules.txt")


def member(module: str, name: str) -> Any:
    """The value of `name` in a contrib module: a path such as "layers" or "tpu.python.tpu".

    Raises:
        AttributeError: TF 1.15 had no such name.
    """
    path = ".".join(filter(None, (_LEGACY, module, name)))
    symbol = table().find(path)
    is_whole = bool(symbol and symbol.home and ":" not in symbol.home)
    if path in table().modules and not (is_whole and path not in table().parents):
        return _module(path)
    if symbol and symbol.home:
        return _resolve(symbol.home)
    if not symbol and (library := _library(path.rpartition(".")[0])):
        return getattr(_resolve(library), name)
    if symbol:
        left = f"{symbol.left}. " if symbol.left else ""
        return Refused(path, f"{left}{symbol.advice} See migration_guide/contrib.md.")
    if ".python." in f".{module}.":
        # Which private names a file had is not recorded, and most are imported for nothing.
        return Refused(path, "It is not among the names of tf.contrib that are carried over.")
    nearest = table().nearest(path)
    hint = f"Did you mean {nearest}? " if nearest else ""
    error = wrong_argument(
        f"TF 1.15 has no {path}",
        name,
        f"{hint}All names: migration_guide/contrib.md and "
        "https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib",
        AttributeError,
    )
    error.name = name
    raise error


def _library(module: str) -> str:
    """The module that a contrib module is as a whole, except for its own rows; "" if none is."""
    symbol = table().find(module) if module in table().modules else None
    return symbol.home if symbol and ":" not in symbol.home else ""


def all_of(module: str) -> list[str]:
    """The names that `from tensorflow.contrib.MODULE import *` binds: all that can be used.

    Which of them a deep module had is not recorded; it has those of the public module.
    """
    public = f"{_LEGACY}.{module.partition('.python')[0]}."
    known = (*table().symbols, *table().modules)
    names = {name.removeprefix(public) for name in known if name.startswith(public)}
    own = {n for n in names if "." not in n and _is_usable(f"{_LEGACY}.{module}.{n}")}
    return sorted(own | _of_library(f"{_LEGACY}.{module}"))


def _of_library(module: str) -> set[str]:
    """The public names of the module that a contrib module is as a whole."""
    library = _library(module)
    return {n for n in dir(_resolve(library)) if not n.startswith("_")} if library else set()


def _is_usable(path: str) -> bool:
    symbol = table().find(path)
    if symbol:
        return symbol.status != "refused"
    return path in table().modules and not path.endswith(".python")


def names_of(module: str, globals_: dict[str, Any]) -> Callable[[str], Any]:
    """`__getattr__` for a contrib module that is written here: the names that it lacks.

    `globals_` is the dict of its globals, where a name stays once it was looked up.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name == "__all__":
            return all_of(module)
        if name == "__path__":
            return []  # the modules below it are found; see `facade/deep_imports.py`
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        value = member(module, name)
        return globals_.setdefault(name, value)

    return __getattr__


class _Module(types.ModuleType):
    """A contrib module, or a deep one, that has nothing of its own."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return all_of(self.__name__.removeprefix(f"{__name__}."))
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        value = member(self.__name__.removeprefix(f"{__name__}."), name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # framework.python.ops.arg_scope is a file, and the function that its package took from it.
        symbol = table().find(self.__name__.replace(__name__, _LEGACY, 1))
        if symbol is None or not symbol.home:
            raise TypeError(f"{self.__name__!r} is a module, and not callable")
        return _resolve(symbol.home)(*args, **kwargs)

    def __dir__(self) -> list[str]:
        prefix = _LEGACY + self.__name__.removeprefix(__name__) + "."
        names = {n.removeprefix(prefix) for n in table().symbols if n.startswith(prefix)}
        return sorted({n for n in names if "." not in n} | _of_library(prefix[:-1]))


def _module(path: str) -> types.ModuleType:
    """The module for `tf.contrib.a.b`: that which is written here, or an empty one."""
    own = __name__ + path.removeprefix(_LEGACY)
    if own not in sys.modules:
        if _is_here(path):
            return importlib.import_module(own)
        sys.modules[own] = _Module(own, f"`{path}` of TF 1.15.")
        # So that `import` finds what is below.
        sys.modules[own].__path__ = []
    return sys.modules[own]


def _is_here(path: str) -> bool:
    """True if a folder or file of this package is the module `tf.contrib.a`."""
    return path.removeprefix(f"{_LEGACY}.") in _WRITTEN


def module_of(path: str) -> types.ModuleType | None:
    """The module for `tf.contrib.a.b`; None if TF 1.15 had no such module."""
    return _module(path) if path in table().modules else None


def _resolve(home: str) -> Any:
    """The object at `module:attribute`, or that of a legacy `=name`."""
    if home.startswith("="):
        return namespace.resolve(home[1:])
    name, _, attributes = home.partition(":")
    if name.partition(".")[0] == "tf_slim":
        value: Any = slim_copy.module(name)
    else:
        value = _imported(name)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    if isinstance(value, types.FunctionType) and value.__module__.startswith(slim_copy.PREFIX):
        return stand_ins.entering(value)
    return stand_ins.stand_in_for(value)


# Libraries that names live on in -> what to say where they are not installed.
_LIBRARIES = {
    "tensorboard": ", which TensorFlow no longer brings along: pip install tensorboard",
    "tensorflow_gan": ", which is what became of tf.contrib.gan: pip install tensorflow-gan",
}


def _imported(name: str) -> types.ModuleType:
    is_known = bool(known(name.partition(".")[0]))
    try:
        return importing.import_module(name) if is_known else importlib.import_module(name)
    except ModuleNotFoundError as error:
        error.msg += _LIBRARIES.get(str(error.name), "")
        raise


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return member("", name)


def __dir__() -> list[str]:
    return sorted({path.split(".")[2] for path in table().modules})


# `import estimator2strategy.tf1.contrib.data` finds these here.
for _path in table().modules:
    if _path.count(".") == 2 and not _is_here(_path):
        _module(_path)
