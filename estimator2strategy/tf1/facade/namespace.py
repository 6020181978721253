"""Modules of the `tf` of TF 1.15: today's modules, with some names replaced."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from estimator2strategy.tf1.facade import by_caller, name_table
from estimator2strategy.tf1.facade.refused import Refused
from estimator2strategy.tf1.facade.symbols import Symbol

_FACADE = "estimator2strategy.tf1"


class Namespace(types.ModuleType):
    """The legacy module `path`; each name is looked up at its first use.

    Args:
        path: As in the table: "tf.nn".
        bases: The modules that have what the table has no row for, in order.
    """

    def __init__(self, path: str, bases: Sequence[Any] = ()):
        super().__init__(path, getattr(bases[0], "__doc__", None) if bases else None)
        self.__dict__.update(_path=path, _bases=tuple(bases))

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        value = member(self._path, self._bases, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return names_in(self._path, self._bases)


class _Flat(Namespace):
    """A module whose deep modules are not kept apart: a name is the same wherever it is said."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattr__(name)
        full = f"{self._path}.{name}"
        if full in name_table.FLAT:
            value: Any = _flat(full)
        elif name_table.existed(full):
            value = _Flat(full, self._bases)
        else:
            row = name_table.flat_row(name_table.flat_roots(self._path), name)
            value = from_row(row) if row else _first(self._bases, name)
            if value is _MISSING:
                value = Refused(
                    full,
                    "It was private to tensorflow_estimator, and nothing here stands for it. "
                    "See migration_guide/unsupported.md.",
                )
        setattr(self, name, value)
        return value


def resolve(name: str) -> Any:
    """The object that a legacy name stands for: `resolve("tf.nn.rnn_cell.LSTMCell")`.

    Raises:
        AttributeError: TF 1.15 had no such name.
    """
    top, *rest = name.split(".")
    value: Any = importlib.import_module(_FACADE) if top == "tf" else Namespace(top)
    for part in rest:
        value = attribute(value, part)
    return value


def attribute(value: Any, name: str) -> Any:
    """`value.name`, where it may be a module that was not imported yet.

    Raises:
        AttributeError: There is no such name.
    """
    found = _first([value], name)
    return getattr(value, name) if found is _MISSING else found


def member(path: str, bases: Sequence[Any], name: str) -> Any:
    """The value of `name` in the legacy module `path`.

    Raises:
        AttributeError: TF 1.15 had no such name there.
    """
    full = f"{path}.{name}"
    row = name_table.rows().get(full)
    if row is not None and row.status == "refused":
        # Refused only until this package has it.
        ours = [base for base in bases if base.__name__.startswith("estimator2strategy.")]
        value = _first(ours, name)
        return from_row(row) if value is _MISSING else value
    if full in name_table.FLAT:
        return _flat(full)
    if row is not None:
        return from_row(row)
    if full in name_table.parents():
        below = [getattr(base, name, _submodule(base, name)) for base in bases]
        return Namespace(full, [base for base in below if base is not _MISSING])
    value = _first(bases, name)
    if value is _MISSING:
        raise _unknown(full)
    return value


def _flat(path: str) -> _Flat:
    bases = [resolve(base) for base in name_table.FLAT[path]]
    return _Flat(path, [base for base in bases if not isinstance(base, Refused)])


def names_in(path: str, bases: Sequence[Any]) -> list[str]:
    """The result of `dir` for the legacy module `path`."""
    own = {n.split(".")[path.count(".") + 1] for n in name_table.rows() if n.startswith(f"{path}.")}
    return sorted(own.union(*(_public(base) for base in bases)))


def from_row(row: Symbol) -> Any:
    """The object that a row of the table describes."""
    if row.status == "refused":
        return Refused(row.name, row.advice)
    if row.home.startswith("="):
        value = resolve(row.home[1:])
        # An alias of which some names are otherwise.
        return Namespace(row.name, [value]) if row.name in name_table.parents() else value
    homes = row.home.split()
    if len(homes) > 1 or row.name in name_table.parents():
        return Namespace(row.name, [_imported(home) for home in homes])
    return _imported(row.home)


_MISSING: Any = object()


def _first(bases: Sequence[Any], name: str) -> Any:
    for base in bases:
        value = getattr(base, name, _MISSING)
        if value is _MISSING:
            value = _submodule(base, name)
        if value is not _MISSING:
            return value
    return _MISSING


def _submodule(base: Any, name: str) -> Any:
    """The module `name` in the package `base`, which may not have been imported yet."""
    if not hasattr(base, "__path__") or isinstance(base, Namespace) or name.startswith("__"):
        return _MISSING
    full = f"{base.__name__}.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name == full:
            return _MISSING
        raise


def _imported(home: str) -> Any:
    """The object at `module:attribute`, or the module."""
    module, _, attributes = home.partition(":")
    value: Any = importlib.import_module(module)
    if "tf_keras" in sys.modules:
        by_caller.keras_is_there()
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def _public(base: Any) -> list[str]:
    try:
        return [name for name in dir(base) if not name.startswith("_")]
    except ImportError:  # one of TensorFlow's lazy modules for what Keras 3 lacks
        return []


def _unknown(name: str) -> AttributeError:
    text = f"TF 1.15 had no {name}"
    if name_table.existed(name):
        text = f"{name} of TF 1.15 is not in TensorFlow {sys.modules['tensorflow'].__version__}"
    nearest = name_table.nearest(name)
    hint = f" Did you mean {nearest}?" if nearest and nearest != name else ""
    last = name.rpartition(".")[2]
    return AttributeError(
        f"{text}.{hint} See {name_table.page(name)} and migration_guide/symbols.md.", name=last
    )
