"""`tf.contrib.training` of TF 1.15: `HParams`, and the variables of parameter servers.

`HParams` has named hyperparameters, each of one type. `ps_strategy` of
`tf.train.replica_device_setter` says which server gets a variable; its source is
tensorflow/contrib/training/python/training/device_setter.py.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import tensorflow as tf

# name=value, name[0]=value or name=[value,value]
_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"((?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])($|,\s*)"
)
_BOOLS = {"true": True, "True": True, "false": False, "False": False}


class HParams:
    """Hyperparameters, as attributes; a new value must be of the type of the first one.

    A hyperparameter is an int, a float, a bool, a string or a list of those.

    Args:
        hparam_def: Not supported: the protocol buffer left TensorFlow with tf.contrib.
        model_structure: Kept for `get_model_structure`.
        **kwargs: Names and values.
    """

    def __init__(self, hparam_def: None = None, model_structure: Any = None, **kwargs: Any):
        if hparam_def is not None:
            _no_proto()
        # Name -> (type of the value or of its elements, whether it is a list)
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Raises:
            ValueError: The name is taken, or the list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Gives an existing hyperparameter another value.

        Raises:
            KeyError: There is no such hyperparameter.
            ValueError: The value has another type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, v) for v in value])
        elif is_list:
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        else:
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Sets hyperparameters from "name=value,other=[1,2]"; see `parse_values`."""
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets existing hyperparameters; returns itself. Raises what `set_hparam` raises."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The older name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def parse_json(self, values_json: str) -> HParams:
        """Sets existing hyperparameters from a JSON object; returns itself."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(
        self, indent: int | None = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        """All hyperparameters as a JSON object."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """All hyperparameters by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default` where there is no such hyperparameter.

        Raises:
            ValueError: There is one, and `default` could not be its value.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            described = f"list<{kind}>" if is_list else str(kind)
            message = f"Hparam '{key}' of type '{described}' is incompatible with default={default}"
            if is_list != isinstance(default, list):
                raise ValueError(message)
            try:
                for value in default if is_list else [default]:
                    _cast(key, kind, value)
            except ValueError as error:
                raise ValueError(f"{message}. {error}") from error
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps `model_structure`."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The model structure that `set_model_structure` kept."""
        return self._model_structure

    def to_proto(self, export_scope: str | None = None) -> NoReturn:
        """Not supported: the protocol buffer left TensorFlow with tf.contrib."""
        _no_proto()

    @staticmethod
    def from_proto(hparam_def: Any, import_scope: str | None = None) -> NoReturn:
        """Not supported: the protocol buffer left TensorFlow with tf.contrib."""
        _no_proto()

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Values by name from "a=1,b=[x,y],c[1]=0.5"; `c` becomes `{1: 0.5}`.

    Args:
        values: Assignments. A bool is true, false or a number; a string has no commas, spaces and
            brackets.
        type_map: The type of each name, for a list that of its elements.
        ignore_unknown: True if names that are not in `type_map` are left out.

    Raises:
        ValueError: It cannot be parsed, or a name is unknown or assigned twice.
    """
    values_by_name: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if not match:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name, index = match["name"], match["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        is_list = match["value"] is None
        if is_list and index is not None:
            raise ValueError("Assignment of a list to a list index.")
        text = match["values"] if is_list else match["value"]
        parse = _parser(type_map[name])
        try:
            parts = filter(None, re.split("[ ,]", text))
            value = [parse(part) for part in parts] if is_list else parse(text)
        except ValueError as error:
            raise ValueError(
                f"Could not parse hparam '{name}' of type '{type_map[name].__name__}' "
                f"with value '{text}' in {values}"
            ) from error
        place: Any  # of values
        key: Any  # there: a name, or a place in a list
        if index is None:
            taken, place, key = name in values_by_name, values_by_name, name
        else:
            place, key = values_by_name.setdefault(name, {}), int(index)
            taken = not isinstance(place, dict) or key in place
        if taken:
            what = name if index is None or not isinstance(place, dict) else f"{name}[{index}]"
            raise ValueError(f"Multiple assignments to variable '{what}' in {values}")
        place[key] = value
    return values_by_name


def _parser(kind: type) -> Callable[[str], Any]:
    """A function that makes a `kind` of text, or raises ValueError."""
    if kind is not bool:
        return kind
    return lambda text: _BOOLS[text] if text in _BOOLS else bool(int(text))


def _cast(name: str, kind: Any, value: Any) -> Any:
    """`value` as a `kind`, where nothing is lost by it."""
    if type(value) is kind or issubclass(kind, type(None)):
        return value
    fits = issubclass(kind, bool) == isinstance(value, bool) and all(
        isinstance(value, family)
        for family in ((str, bytes), numbers.Integral, numbers.Number)
        if issubclass(kind, family)
    )
    if not fits:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


def _no_proto() -> NoReturn:
    raise NotImplementedError(
        "HParams has no protocol buffer any more: HParamDef left TensorFlow with tf.contrib. "
        "Use to_json and parse_json."
    )


class RandomStrategy:
    """Takes a server by a hash of the variable's name: the same one in every process.

    Args:
        num_ps_tasks: The number of servers.
        seed: Another one gives other places.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0):
        self._num_tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op: tf.Operation) -> int:
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False)
        return int(digest.hexdigest(), 16) % self._num_tasks


class GreedyLoadBalancingStrategy:
    """Takes the server that has the least load so far, the first of several.

    Args:
        num_tasks: The number of servers.
        load_fn: Operation -> its load, a number; `byte_size_load_fn` is one.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[tf.Operation], float]):
        self._load_fn, self._loads = load_fn, [0.0] * num_tasks

    def __call__(self, op: tf.Operation) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: tf.Operation) -> int:
    """The bytes of the variable that an op makes, or of the one output of another op.

    The original counted one byte for the handle of a resource variable; here its values count.

    Raises:
        ValueError: The op has several outputs, or no static shape.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output, attributes = op.outputs[0], op.node_def.attr
    dtype, shape = output.dtype, output.shape
    if dtype == tf.resource and "dtype" in attributes:
        dtype, shape = tf.as_dtype(op.get_attr("dtype")), tf.TensorShape(op.get_attr("shape"))
    elif not shape.is_fully_defined() and "shape" in attributes:
        # Of a scalar variable the output's shape is set after the op was placed.
        shape = tf.TensorShape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    return cast(int, shape.num_elements() * dtype.size)
