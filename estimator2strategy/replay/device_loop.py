"""A block of steps as one XLA program: the device loop that TPUEstimator had on TPUs.

    draw:     1 2 3 | 4 5 6 | 7 8 9        the batches of a block are stacked,
    program:          1 2 3 | 4 5 6 | ...  while XLA runs the steps of the block before

Nothing is drawn ahead of the steps that were asked for, so the place in the input that a checkpoint
keeps is that of its step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.plan import random_ops
from estimator2strategy.plan.edges import input_node
from estimator2strategy.plan.xla_kernels import checks
from estimator2strategy.record.functions import user_line
from estimator2strategy.replay.draw import Draw, blank

# A block has at most as many steps, and its batches as many bytes.
_WIDEST = 64
_BYTES = 2**26

# How errors spell the nodes that a GraphImporter has imported.
_NAMED = re.compile(r"\{\{node (?:[^}]*/)?replay(?:_\d+)?/([^}]+)\}\}")


class DeviceLoop:
    """Runs steps in blocks, each one XLA program, on one device.

    Must be made, and called, in the `modern_world`. XLA has compiled the step when it is made.

    Args:
        session: The ReplaySession that runs the steps.
        node: The one node that draws a batch.
        tensors: Names of the tensors to return, of the last step.
        ops: Names of the ops that a step runs.
        healthy: Name of one of the tensors; steps end when it is NaN.

    Raises:
        UnsupportedError: XLA cannot compile the step; the message says why, with the user's line.
    """

    def __init__(
        self,
        session: Any,
        node: str,
        tensors: Sequence[str],
        ops: Sequence[str],
        healthy: str | None,
    ):
        self._session, self._draw, self._healthy = session, Draw(session, node), healthy
        self._tensors, self._ops = tuple(tensors), tuple(ops)
        self._specs = [session.spec(name) for name in tensors]
        self._batch = [session.spec(name) for name in self._draw.outputs]
        check_shapes(session, self._draw.outputs, self._batch)
        bytes_per_batch = sum(s.shape.num_elements() * s.dtype.size for s in self._batch)
        self._width = max(1, min(_WIDEST, _BYTES // max(bytes_per_batch, 1)))
        self._program = self._compiled()
        self.function = self._traced()

    def run(self, steps: int) -> tuple[int, bool, list[tf.Tensor]]:
        """Runs up to `steps` steps: fewer if the input ends, or if the loss is NaN.

        Returns:
            How many it ran, whether the loss is no NaN, and the values that the last one gave.
        """
        done, healthy, *values = self.function(tf.constant(steps))
        return int(done), bool(healthy), values

    def _compiled(self) -> Any:
        """The XLA program: (number of steps, stacked batches) -> (steps done, last values)."""
        blocks = [tf.TensorSpec([self._width, *s.shape], s.dtype) for s in self._batch]
        count = tf.TensorSpec([], tf.int32)

        @tf.function(autograph=False, jit_compile=True, input_signature=[count, *blocks])
        def program(steps, *stacked):
            def one_step(done, *_):
                feeds = {n: b[done] for n, b in zip(self._draw.outputs, stacked, strict=True)}
                values = self._session.trace(self._tensors, self._ops, feeds)
                for value, spec in zip(values, self._specs, strict=True):
                    value.set_shape(spec.shape)
                return done + 1, *values

            start = [tf.constant(0), *map(blank, self._specs)]
            return tf.while_loop(
                lambda done, *v: (done < steps) & self._is_healthy(v), one_step, start
            )

        nothing = [tf.zeros(block.shape, block.dtype) for block in blocks]
        try:
            program = program.get_concrete_function()
            program(tf.constant(0), *nothing)  # compiles, and runs no step
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise not_compiled(self._session.graph, error, "execution") from error
        return program

    def _is_healthy(self, values: Sequence[tf.Tensor]) -> Any:
        if self._healthy is None:
            return True
        return ~is_nan(values[self._tensors.index(self._healthy)])

    def _traced(self) -> Any:
        @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
        def device_loop(steps):
            def more(done, drawn, healthy, *_):
                del done
                return (drawn > 0) & healthy

            def one_block(done, drawn, healthy, *rest):
                del healthy
                batches = rest[: len(self._batch)]
                next_drawn, *next_batches = self._block(steps - done - drawn)
                ran, *values = self._program(drawn, *batches)
                healthy = tf.convert_to_tensor(self._is_healthy(values))
                return done + ran, next_drawn, healthy, *next_batches, *values

            first = self._block(steps)
            start = [tf.constant(0), first[0], tf.constant(True), *first[1:]]
            start += map(blank, self._specs)
            done, _, healthy, *rest = tf.while_loop(more, one_block, start)
            return done, healthy, *rest[len(self._batch) :]

        return device_loop.get_concrete_function()

    def _block(self, steps: tf.Tensor) -> list[tf.Tensor]:
        """Draws up to `steps` batches; returns how many, and the batches, stacked and padded."""
        lists = [
            tf.raw_ops.TensorListReserve(
                element_shape=spec.shape, num_elements=self._width, element_dtype=spec.dtype
            )
            for spec in self._batch
        ]
        wanted = tf.minimum(steps, self._width)

        def draw(count, _, *lists):
            optional = self._draw.optional()
            there = tf.raw_ops.OptionalHasValue(optional=optional)

            def kept():
                values = self._draw.values(optional).values()
                return [
                    tf.raw_ops.TensorListSetItem(input_handle=to, index=count, item=value)
                    for to, value in zip(lists, values, strict=True)
                ]

            kept_lists = tf.cond(there, kept, lambda: list(lists))
            return count + tf.cast(there, tf.int32), there, *kept_lists

        drawn, _, *lists = tf.while_loop(
            lambda count, there, *_: there & (count < wanted),
            draw,
            [tf.constant(0), tf.constant(True), *lists],
        )
        return [
            drawn,
            *(
                tf.raw_ops.TensorListStack(
                    input_handle=of_one,
                    element_shape=spec.shape,
                    element_dtype=spec.dtype,
                    num_elements=self._width,
                )
                for of_one, spec in zip(lists, self._batch, strict=True)
            ),
        ]


def is_nan(loss: tf.Tensor) -> tf.Tensor:
    """Whether a loss is NaN, so that no further step is to run."""
    return tf.reduce_any(tf.math.is_nan(loss))


def not_compiled(graph: tf.Graph, error: Exception, argument: str) -> UnsupportedError:
    """What to raise where XLA could not compile nodes of the recorded `graph`.

    Args:
        argument: Of the estimator, that asked for it.
    """
    operations = {op.name: op for op in graph.get_operations()}
    lines = [
        f"  {op.type} {op.name!r}, made at {user_line(op.traceback)}"
        for name in dict.fromkeys(_NAMED.findall(str(error)))
        if (op := operations.get(name))
    ]
    why = "\n".join(lines) or f"  {str(error)[:500]}"
    return UnsupportedError(
        f"XLA cannot compile the training step:\n{why}\n"
        f"  Move such ops into input_fn's Dataset.map, or leave out {argument}=."
    )


def device_loop_of(session: Any, tensors: Sequence[str], ops: Sequence[str], step: Any) -> Any:
    """The DeviceLoop of such steps.

    Args:
        step: What one step is; a `replay.session.Step`.

    Raises:
        UnsupportedError: There cannot be one, or there may be one but it would be another training:
            XLA draws other random numbers, and leaves out checks.
    """
    if session.splices or session.state.num_replicas > 1:
        raise UnsupportedError("A device loop runs on one device; these steps run on several.")
    recorded = session.recorded
    roots = [*map(input_node, tensors), *ops]
    node = recorded.only_draw(roots)
    if node is None:
        raise UnsupportedError(
            "A device loop takes its batches from one Dataset; return one from input_fn."
        )
    behind = recorded.ancestors(roots, lambda edge: input_node(edge) == node)
    for inner in recorded.with_functions(behind) if step.device_loop == "may" else ():
        if random_ops.draws(inner):
            raise UnsupportedError(f"XLA draws other random numbers ({inner.op} {inner.name!r}).")
        if checks(inner):
            raise UnsupportedError(f"XLA would leave out a check ({inner.op} {inner.name!r}).")
    return DeviceLoop(
        session, node, tensors, ops, step.healthy if step.healthy in tensors else None
    )


def check_shapes(session: Any, names: Sequence[str], specs: Sequence[tf.TensorSpec]) -> None:
    """Args: names, specs: The tensors that an XLA program is given.

    Raises:
        UnsupportedError: The shape of one is not known.
    """
    for name, spec in zip(names, specs, strict=True):
        if not spec.shape.is_fully_defined():
            line = user_line(session.graph.get_tensor_by_name(name).op.traceback)
            raise UnsupportedError(
                f"XLA wants batches of one shape, and there is a {spec.dtype.name} of shape "
                f"{spec.shape} ({line}): say batch(..., drop_remainder=True), or call set_shape."
            )
