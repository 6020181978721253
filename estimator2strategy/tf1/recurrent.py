"""Keras's recurrent layers with the variables of TF 1.15: `lstm/kernel`.

Keras has put the name of the cell between since: `lstm/lstm_cell/kernel`, which no checkpoint of
TF 1.15 has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.api._v1.keras import layers as _layers

__all__ = ["GRU", "LSTM", "RNN", "ConvLSTM2D", "SimpleRNN", "StackedRNNCells"]


def _in_scope(scope: str, build: Callable[[Any], None]) -> Callable[[Any], None]:
    def built(input_shape: Any) -> None:
        with tf.name_scope(scope):
            build(input_shape)

    return built


@contextlib.contextmanager
def _built_here(cells: list[Any]) -> Iterator[None]:
    """A context in which cells are built in the present name scope, not in one that is entered."""
    scope = tf.compat.v1.get_default_graph().get_name_scope()
    for cell in cells:
        vars(cell)["build"] = _in_scope(f"{scope}/" if scope else "", cell.build)
    try:
        yield
    finally:
        for cell in cells:
            del vars(cell)["build"]


class _Recurrent:
    cell: Any

    def build(self, input_shape: Any) -> None:
        cells = [self.cell] if isinstance(self.cell, _layers.Layer) else []
        with _built_here(cells):
            super().build(input_shape)  # type: ignore[misc]


class StackedRNNCells(_layers.StackedRNNCells):
    def build(self, input_shape: Any) -> None:
        cells = [cell for cell in self.cells if isinstance(cell, _layers.Layer)]
        with _built_here(cells):
            super().build(input_shape)


class RNN(_Recurrent, _layers.RNN):
    def __init__(self, cell: Any, *args: Any, **kwargs: Any):
        stacked = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        super().__init__(stacked, *args, **kwargs)


class SimpleRNN(_Recurrent, _layers.SimpleRNN):
    pass


class GRU(_Recurrent, _layers.GRU):
    pass


class LSTM(_Recurrent, _layers.LSTM):
    pass


class ConvLSTM2D(_layers.ConvLSTM2D):
    def __init__(self, *args: Any, name: str | None = None, **kwargs: Any):
        if not name:  # TF 1.15 took `M2` for a word
            number = tf_keras.backend.get_uid("conv_lst_m2d") - 1
            name = f"conv_lst_m2d_{number}" if number else "conv_lst_m2d"
        super().__init__(*args, name=name, **kwargs)


for _cls in (StackedRNNCells, RNN, SimpleRNN, GRU, LSTM, ConvLSTM2D):
    _cls.__doc__ = getattr(_layers, _cls.__name__).__doc__
