"""`tf.contrib.rnn` of TF 1.15: layers of bidirectional networks, one upon the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

_v1 = tf.compat.v1


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: tf.Tensor,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[tf.Tensor, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional RNNs, each on the concatenated outputs of the one below.

    Returns:
        The last outputs, forward and backward concatenated; the final states of the forward cells;
        those of the backward cells.

    Raises:
        ValueError: The lists are empty or of different lengths.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states: list[tuple[Any, ...]] = []
    with _v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with _v1.variable_scope(f"cell_{i}"):
                outputs, state = _v1.nn.bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
            inputs = tf.concat(outputs, 2)
            states.append(state)
    return inputs, tuple(fw for fw, _ in states), tuple(bw for _, bw in states)


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: list[tf.Tensor],
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[tf.Tensor], tuple[Any, ...], tuple[Any, ...]]:
    """`stack_bidirectional_dynamic_rnn` for a list of steps."""
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states = []
    with _v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with _v1.variable_scope(f"cell_{i}") as cell_scope:
                inputs, *state = _v1.nn.static_bidirectional_rnn(
                    fw,
                    bw,
                    inputs,
                    initial_states_fw[i] if initial_states_fw else None,
                    initial_states_bw[i] if initial_states_bw else None,
                    dtype,
                    sequence_length,
                    cell_scope,
                )
            states.append(state)
    return inputs, tuple(fw for fw, _ in states), tuple(bw for _, bw in states)


def _check_stack(fw: Any, bw: Any, states_fw: Any, states_bw: Any) -> None:
    """Raises ValueError where cells or states do not make a stack."""
    for which, cells, states in (("fw", fw, states_fw), ("bw", bw, states_bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {which} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{which} must be a list of RNNCells (one per layer).")
        if states is not None and (not isinstance(states, list) or len(states) != len(cells)):
            raise ValueError(
                f"initial_states_{which} must be a list of state tensors (one per layer)."
            )
    if len(fw) != len(bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
