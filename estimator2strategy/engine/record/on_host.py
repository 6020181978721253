"""Records one replica: on one device, or of a step that the caller makes, as Keras's `fit` does.

On one device model_fn gets the very objects of input_fn.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.queues import collecting_optimizer
from estimator2strategy.engine.record.input_fn import (
    Inputs,
    ends,
    features_and_labels,
    iterate,
    refuse_queue_runners,
)
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.queues_apart import with_queues_apart
from estimator2strategy.engine.record.recording import Placement, Recording
from estimator2strategy.engine.record.recording_strategy import all_replicas_of, one_replica_of

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class OnHost(Placement):
    """One device of this process.

    Attributes:
        under_strategy: True if it is that of a strategy, which the functions can see.
    """

    under_strategy: bool = False

    def record_input(
        self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]
    ) -> Inputs:
        with all_replicas_of(1) if self.under_strategy else contextlib.nullcontext():
            result = program.start(input_fn, mode)
        if mode != ModeKeys.PREDICT:
            return features_and_labels(result)
        element, hooks = iterate(result)
        if not ends(tf1.get_default_graph()):
            tf1.logging.warning(
                "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means "
                "predict yields forever. This is probably a mistake."
            )
        features = element[0] if isinstance(element, (list, tuple)) else element
        return Inputs(features, None, hooks)

    def record_model(self, program: ModelProgram, mode: str, inputs: Inputs) -> Recording:
        with one_replica_of(1) if self.under_strategy else contextlib.nullcontext():
            spec = program.call_model_fn(inputs.features, inputs.labels, mode)
        recording = Recording(tf1.get_default_graph(), spec, inputs.hooks)
        in_session = program.in_session or collecting_optimizer(recording.graph)
        return recording if in_session else with_queues_apart(recording)


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
