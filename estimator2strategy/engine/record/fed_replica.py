"""Records one replica of a step that the caller makes, as Keras's `fit` does, and feeds."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.input_fn import refuse_queue_runners
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.placement import Placement
from estimator2strategy.engine.record.recording import Recording

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class FedReplica(Placement):
    """One replica of several, whose batch is fed; input_fn says only of what kind.

    input_fn returns (features, labels), or (features,): nested tensors or TensorSpecs of the batch
    of one replica. model_fn gets placeholders, which are the recording's `feeds`.

    Attributes:
        num_replicas: The number of replicas of the caller's step.
        inside: `inside(num_replicas)`: the context in which model_fn is called.
    """

    num_replicas: int = 1
    inside: Callable[[int], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext

    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]) -> Any:
        program.create_global_step(tf1.get_default_graph())
        batch = program.call_input_fn(input_fn, mode)
        refuse_queue_runners(input_fn)
        flat = tf.nest.flatten(batch, expand_composites=True)
        feeds = [tf1.placeholder(part.dtype, part.shape, name="batch") for part in flat]
        return tf.nest.pack_sequence_as(batch, feeds, expand_composites=True)

    def record_model(self, program: ModelProgram, mode: str, inputs: Any) -> Recording:
        features, labels = (*inputs, None)[:2]
        with self.inside(self.num_replicas):
            spec = program.call_model_fn(features, labels, mode)
        feeds = tuple(tf.nest.flatten(inputs, expand_composites=True))
        return Recording(tf1.get_default_graph(), spec, feeds=feeds)
