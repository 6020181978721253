"""Hands weights of a legacy model, or of its checkpoint, on to Keras layers, one by one.

Example:

    pairs = transfer_weights("/models/old", keras_model, {"features": "conv1"})
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.errors import CheckpointError


class Pair(NamedTuple):
    """A weight that was handed on.

    Attributes:
        legacy: The name of the legacy variable.
        keras: The path of the Keras variable (`conv1/kernel`).
    """

    legacy: str
    keras: str


def transfer_weights(
    source: Any, target: Any, scopes: Mapping[str, str] | None = None
) -> list[Pair]:
    """Gives Keras layers the weights of the legacy scopes that they take the place of.

    In a scope, a weight gets the variable of its own name (`kernel`, `moving_mean`). If there is
    none, the weights of a LegacyModel get the scope's variables in their order, which is that in
    which `tf.layers` made them; a checkpoint has no order, and there their shapes decide. The one
    weight of a layer may also be a variable with the scope's name, as a table of
    `tf.get_variable("words", ...)` is. Nothing is changed unless all fits.

    Args:
        source: A LegacyModel, or the path of a legacy checkpoint or of a folder of them.
        target: A built model or layer of Keras 3 or tf-keras. Layers within layers are looked for.
        scopes: Name of a layer -> its legacy scope; a layer that is not named has its own name for
            a scope.

    Returns:
        A pair for each weight of `target`.

    Raises:
        CheckpointError: A layer's scope is missing, or its shapes differ; the message lists each.
    """
    values = _values(source)
    ordered = hasattr(source, "legacy_variables")
    given: list[tuple[Any, Pair]] = []
    problems: list[str] = []
    for layer in _leaves(target):
        scope = (scopes or {}).get(layer.name, layer.name)
        names = _matched(layer, scope, values, ordered)
        if names is None:
            problems.append(_described(layer, scope, values))
            continue
        for weight, name in zip(layer.weights, names, strict=True):
            given.append((weight, Pair(name, _path(weight))))
    if problems:
        raise CheckpointError(
            "These layers do not fit:\n"
            + "\n".join(problems)
            + "\nGive `scopes`, the scope of each such layer; or pair variable with variable by "
            "`e2s checkpoint convert ... --to keras --model FILE.py:FUNCTION --write-map map.csv`."
        )
    for weight, pair in given:
        weight.assign(values[pair.legacy])
    return [pair for _, pair in given]


def _values(source: Any) -> dict[str, np.ndarray]:
    """Legacy name -> value, in the order in which the variables were made where that is known."""
    if hasattr(source, "legacy_variables"):
        return {name: v.numpy() for name, v in source.legacy_variables.items()}
    reader = tf.train.load_checkpoint(os.fspath(source))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def _leaves(layer: Any) -> Iterator[Any]:
    """The layers that have weights of their own, containers opened."""
    inner = getattr(layer, "layers", None)
    if inner:
        for part in inner:
            yield from _leaves(part)
    elif layer.weights:
        yield layer


def _matched(
    layer: Any, scope: str, values: Mapping[str, np.ndarray], ordered: bool
) -> list[str] | None:
    """The name of a legacy variable for each weight of `layer`; None if they do not fit."""
    by_name = [_in_scope(layer, scope, weight) for weight in layer.weights]
    inside = [n for n in values if n.rpartition("/")[0] == scope and scope not in values]
    others = inside if ordered else _by_shape(layer, inside, values)
    for names in (by_name, [scope], others):
        if len(names) == len(layer.weights) and all(
            name in values and tuple(values[name].shape) == tuple(weight.shape)
            for name, weight in zip(names, layer.weights, strict=True)
        ):
            return names
    return None


def _by_shape(layer: Any, names: list[str], values: Mapping[str, np.ndarray]) -> list[str]:
    """The names in the order of the layer's weights; none if two have the same shape."""
    of_shape = {tuple(values[name].shape): name for name in names}
    if len(of_shape) != len(names):
        return []
    return [of_shape.get(tuple(weight.shape), "") for weight in layer.weights]


def _in_scope(layer: Any, scope: str, weight: Any) -> str:
    """`scope/kernel`, or `scope/query/kernel` where a layer has parts."""
    _, found, inner = f"/{_path(weight)}".rpartition(f"/{layer.name}/")
    return f"{scope}/{inner if found else _path(weight).rpartition('/')[2]}"


def _path(weight: Any) -> str:
    return str(getattr(weight, "path", weight.name)).partition(":")[0]


def _described(layer: Any, scope: str, values: Mapping[str, np.ndarray]) -> str:
    wanted = ", ".join(f"{_path(w).rpartition('/')[2]} {tuple(w.shape)}" for w in layer.weights)
    there = [f"{n} {v.shape}" for n, v in values.items() if f"{n}/".startswith(f"{scope}/")]
    return f"  {layer.name} wants {wanted}; scope {scope!r} has {', '.join(there) or 'nothing'}"
