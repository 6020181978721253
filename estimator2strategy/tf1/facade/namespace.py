"""Modules of the `tf` of TF 1.15: today's modules, with some names replaced."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from estimator2strategy.engine import put_off
from estimator2strategy.engine.names import name_table
from estimator2strategy.engine.names.name_table import Symbol
from estimator2strategy.tf1.facade import stand_ins
from estimator2strategy.tf1.facade.refused import Refused

_FACADE = "estimator2strategy.tf1"


class Namespace(types.ModuleType):
    """The legacy module `path`; each name is looked up at its first use.

    Args:
        path: As in the table: "tf.nn".
        bases: The modules that have what the table has no row for, in order.
        tf2: It is a program's of TF 2.0 to 2.15: what is built by it is as in TF 2.
    """

    def __init__(self, path: str, bases: Sequence[Any] = (), tf2: bool = False):
        super().__init__(path, getattr(bases[0], "__doc__", None) if bases else None)
        self.__dict__.update(_path=path, _bases=tuple(bases), _tf2=tf2)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        if name == "__path__":  # that of a base would have its files imported a second time
            raise AttributeError(f"module {self._path!r} has no attribute {name!r}", name=name)
        value = member(self._path, self._bases, name, self._tf2)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return names_in(self._path, self._bases)

    def __reduce__(self) -> tuple[Any, ...]:
        # Beam sends functions to its workers with the modules that they use, which it names.
        return resolve, (self._path, self._tf2)


class _Flat(Namespace):
    """A module whose deep modules are not kept apart: a name is the same wherever it is said."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattr__(name)
        full = f"{self._path}.{name}"
        if full in name_table.FLAT:
            value: Any = _flat(full, self._tf2)
        elif name_table.existed(full):
            value = _Flat(full, self._bases, self._tf2)
        else:
            row = name_table.flat_row(name_table.flat_roots(self._path), name)
            value = from_row(row, self._tf2) if row else _first(self._bases, name)
            if value is _MISSING:
                value = Refused(
                    full,
                    "It was private to tensorflow_estimator, and nothing here stands for it. "
                    "See migration_guide/unsupported.md.",
                )
            value = value if self._tf2 else stand_ins.stand_in_for(value)
        setattr(self, name, value)
        return value


def resolve(name: str, tf2: bool = False) -> Any:
    """The object that a legacy name stands for: `resolve("tf.nn.rnn_cell.LSTMCell")`.

    Args:
        name: Of the object.
        tf2: It is a program of TF 2.0 to 2.15 that says the name.

    Raises:
        AttributeError: TF 1.15 had no such name.
    """
    top, *rest = name.split(".")
    value = _root(top, tf2)
    for part in rest:
        value = attribute(value, part)
    return value


@functools.cache
def _root(name: str, tf2: bool) -> Any:
    if name != "tf":
        return Namespace(name, tf2=tf2)
    if tf2:
        return Namespace(name, [importlib.import_module("tensorflow.compat.v1")], tf2=True)
    return importlib.import_module(_FACADE)


def attribute(value: Any, name: str) -> Any:
    """`value.name`, where it may be a module that was not imported yet.

    Raises:
        AttributeError: There is no such name.
    """
    member = _first([value], name)
    return getattr(value, name) if member is _MISSING else member


def member(path: str, bases: Sequence[Any], name: str, tf2: bool = False) -> Any:
    """The value of `name` in the legacy module `path`; see Namespace for the arguments.

    Raises:
        AttributeError: TF 1.15 had no such name there.
    """
    value = _member(path, bases, name, tf2)
    return value if tf2 else stand_ins.stand_in_for(value)


def _member(path: str, bases: Sequence[Any], name: str, tf2: bool) -> Any:
    full = f"{path}.{name}"
    row = name_table.rows().get(full)
    if row is not None and row.status == "refused":
        # Refused only until this package has it.
        ours = [base for base in bases if base.__name__.startswith("estimator2strategy.")]
        value = _first(ours, name)
        return from_row(row, tf2) if value is _MISSING else value
    if full in name_table.FLAT:
        return _flat(full, tf2)
    if row is not None:
        return from_row(row, tf2)
    if full in _namespaces() or (full in stand_ins.MODULES and not tf2):
        below = [getattr(base, name, _submodule(base, name)) for base in bases]
        return Namespace(full, [base for base in below if base is not _MISSING], tf2)
    value = _first(bases, name)
    if value is not _MISSING:
        return value
    public = f"{name_table.PASSED_ON.get(path)}.{name}"
    if name_table.existed(public):
        return resolve(public, tf2)
    raise _unknown(full)


@functools.cache
def _namespaces() -> frozenset[str]:
    """The modules of which some names are not where TensorFlow 2 has them."""
    return name_table.parents().union(name_table.PASSED_ON)


def _flat(path: str, tf2: bool) -> _Flat:
    bases = [resolve(base, tf2) for base in name_table.FLAT[path]]
    return _Flat(path, [base for base in bases if not isinstance(base, Refused)], tf2)


def names_in(path: str, bases: Sequence[Any]) -> list[str]:
    """The result of `dir` for the legacy module `path`."""
    own = {n.split(".")[path.count(".") + 1] for n in name_table.rows() if n.startswith(f"{path}.")}
    return sorted(own.union(*(_public(base) for base in bases)))


def from_row(row: Symbol, tf2: bool = False) -> Any:
    """The object that a row of the table describes."""
    if row.status == "refused":
        return Refused(row.name, f"{row.left}. {row.advice}" if row.left else row.advice)
    homes = [
        resolve(home[1:], tf2) if home.startswith("=") else _imported(home)
        for home in row.home.split()
    ]
    if len(homes) > 1 or row.name in name_table.parents():  # of which some names are otherwise
        return Namespace(row.name, homes, tf2)
    return homes[0]


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
    with put_off.without_collections():
        value: Any = importlib.import_module(module)
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
