"""The weights of `tf.contrib.cudnn_rnn`'s layers: in one buffer, as cuDNN has them, and by cell.

A checkpoint of TF 1.15 has both. The canonical weights are those of the compatible cells, with
their names, so that graphs for CPUs read them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.engine._tf_private import SaveableObject, SaveSpec


class Blocks(NamedTuple):
    """The weights of one layer in one direction, its gates one below the other, in cuDNN's order.

    Attributes:
        of_input: [gates * units, size of the input]
        of_state: [gates * units, units]
        input_bias, state_bias: [gates * units]
    """

    of_input: tf.Tensor
    of_state: tf.Tensor
    input_bias: tf.Tensor
    state_bias: tf.Tensor

    @property
    def units(self) -> int:
        return cast(int, self.of_state.shape.as_list()[1])


class OneKernel(NamedTuple):
    """The weights of a cell with one kernel: the sum of both biases, gates in another order.

    Attributes:
        cell: The cell's name.
        order: For each gate of the cell, which one of cuDNN's it is.
    """

    cell: str
    order: tuple[int, ...]
    weights: tuple[str, ...] = ("kernel",)
    biases: tuple[str, ...] = ("bias",)

    @property
    def gates(self) -> int:
        return len(self.order)

    def weights_and_biases(self, blocks: Blocks) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        kernel = self._ordered(tf.concat([blocks.of_input, blocks.of_state], 1), self.order)
        bias = self._ordered(blocks.input_bias + blocks.state_bias, self.order)
        return [tf.transpose(kernel)], [bias]

    def blocks(self, weights: Sequence[tf.Tensor], biases: Sequence[tf.Tensor]) -> Blocks:
        back = tuple(self.order.index(gate) for gate in range(len(self.order)))
        kernel = self._ordered(tf.transpose(weights[0]), back)
        half = self._ordered(biases[0], back) / 2
        units = biases[0].shape.as_list()[0] // len(self.order)
        return Blocks(kernel[:, :-units], kernel[:, -units:], half, half)

    @staticmethod
    def _ordered(rows: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
        gates = tf.split(rows, len(order), 0)
        return tf.concat([gates[gate] for gate in order], 0)


class GruKernels(NamedTuple):
    """The weights of a GRU's cell: the candidate's two kernels and biases are apart."""

    cell: str
    gates: int = 3
    weights: tuple[str, ...] = (
        "gates/kernel",
        "candidate/input_projection/kernel",
        "candidate/hidden_projection/kernel",
    )
    biases: tuple[str, ...] = (
        "gates/bias",
        "candidate/input_projection/bias",
        "candidate/hidden_projection/bias",
    )

    def weights_and_biases(self, blocks: Blocks) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        units = blocks.units
        gates = tf.concat([blocks.of_input, blocks.of_state], 1)[: 2 * units]
        of_input, of_state = blocks.of_input[2 * units :], blocks.of_state[2 * units :]
        both = (blocks.input_bias + blocks.state_bias)[: 2 * units]
        return (
            [tf.transpose(matrix) for matrix in (gates, of_input, of_state)],
            [both, blocks.input_bias[2 * units :], blocks.state_bias[2 * units :]],
        )

    def blocks(self, weights: Sequence[tf.Tensor], biases: Sequence[tf.Tensor]) -> Blocks:
        gates, of_input, of_state = (tf.transpose(matrix) for matrix in weights)
        both, input_bias, state_bias = biases
        units = input_bias.shape.as_list()[0]
        return Blocks(
            tf.concat([gates[:, :-units], of_input], 0),
            tf.concat([gates[:, -units:], of_state], 0),
            tf.concat([both / 2, input_bias], 0),
            tf.concat([both / 2, state_bias], 0),
        )


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where cuDNN has which weights in its buffer: those of all layers, then all biases.

    Attributes:
        form: Of a cell with the weights of one layer and direction.
        layers: How many there are.
        directions: 1 or 2.
        units: Size of a state.
        input_size: Columns of the input.
    """

    form: OneKernel | GruKernels
    layers: int
    directions: int
    units: int
    input_size: int

    @property
    def weight_shapes(self) -> list[tuple[int, int]]:
        """Of all matrices: of a layer and direction those of the input, then those of the state."""
        shapes = []
        for layer in range(self.layers):
            columns = self.units * self.directions if layer else self.input_size
            of_input, of_state = (self.units, columns), (self.units, self.units)
            each = [of_input] * self.form.gates + [of_state] * self.form.gates
            shapes += each * self.directions
        return shapes

    @property
    def bias_shapes(self) -> list[list[int]]:
        return [[self.units]] * len(self.weight_shapes)

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in [*self.weight_shapes, *self.bias_shapes])

    def split(self, buffer: tf.Tensor) -> list[Blocks]:
        """The weights of each layer, forward before backward."""
        gates = self.form.gates
        matrices = self.weight_shapes[::gates]
        rows = gates * self.units
        shapes = [(rows, columns) for _, columns in matrices] + [(rows,)] * len(matrices)
        parts = tf.split(buffer, [math.prod(shape) for shape in shapes])
        blocks = [tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]
        weights, biases = blocks[: len(matrices)], blocks[len(matrices) :]
        return [Blocks(*weights[i : i + 2], *biases[i : i + 2]) for i in range(0, len(weights), 2)]

    def join(self, blocks: Sequence[Blocks]) -> tf.Tensor:
        """The buffer that `split` took apart."""
        weights = [matrix for each in blocks for matrix in (each.of_input, each.of_state)]
        biases = [bias for each in blocks for bias in (each.input_bias, each.state_bias)]
        return tf.concat([tf.reshape(part, [-1]) for part in [*weights, *biases]], 0)

    @property
    def prefixes(self) -> list[str]:
        """Of each layer and direction: the scope of the cell that has the same weights."""
        if self.directions == 1:
            return [f"rnn/multi_rnn_cell/cell_{i}/{self.form.cell}/" for i in range(self.layers)]
        return [
            f"stack_bidirectional_rnn/cell_{i}/bidirectional_rnn/{way}/{self.form.cell}/"
            for i in range(self.layers)
            for way in ("fw", "bw")
        ]


class CanonicalWeights(SaveableObject):
    """The weights of a layer as checkpoints have them beside its buffer: by cell, and transposed.

    A saver restores it after all variables, so these are what counts, as in TF 1.15.

    Args:
        kernel: The variable.
        layout: Of its buffer.
        scope: The variable scope of the equal cells.
        name: Of this object.
    """

    def __init__(self, kernel: tf.Variable, layout: Layout, scope: str, name: str):
        self._kernel, self._layout = kernel, layout
        form = layout.form
        pairs = [form.weights_and_biases(blocks) for blocks in layout.split(kernel)]
        prefix = scope and scope + "/"
        names = [prefix + at + each for at in layout.prefixes for each in form.weights]
        names += [prefix + at + each for at in layout.prefixes for each in form.biases]
        tensors = [each for weights, _ in pairs for each in weights]
        tensors += [each for _, biases in pairs for each in biases]
        specs = [SaveSpec(tensor, "", key) for tensor, key in zip(tensors, names, strict=True)]
        super().__init__(tf.identity(kernel), specs, name)

    def restore(self, restored_tensors: Sequence[tf.Tensor], restored_shapes: Any) -> tf.Operation:
        form, count = self._layout.form, len(self._layout.prefixes)
        # A checkpoint's tensors have no shapes before it is read.
        for tensor, spec in zip(restored_tensors, self.specs, strict=True):
            tensor.set_shape(spec.tensor.shape)
        step = len(form.weights)
        weights, biases = restored_tensors[: count * step], restored_tensors[count * step :]
        blocks = [
            form.blocks(weights[i : i + step], biases[i : i + step])
            for i in range(0, count * step, step)
        ]
        return self._kernel.assign(self._layout.join(blocks))
