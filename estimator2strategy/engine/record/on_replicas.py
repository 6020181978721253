"""Records training and evaluation on the replicas of `train_distribute` and `eval_distribute`.

Each replica takes the next batch of input_fn. In training the replicas meet in the optimizer. In
evaluation each one counts its own batches, and the counts are added up at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record import feeding
from estimator2strategy.engine.record.host_call import metric_pairs
from estimator2strategy.engine.record.input_fn import refuse_queue_runners
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement, Recording
from estimator2strategy.engine.record.recording_strategy import (
    all_replicas_of,
    one_replica_of,
    reports_mean_loss,
)
from estimator2strategy.engine.record.replicated import RecordedReplicas
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class OnReplicas(Placement):
    """The replicas of a strategy, each of which takes a batch of its own."""

    strategy: tf.distribute.Strategy

    def record_input(
        self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]
    ) -> feeding.Fed:
        feed = feeding.per_replica_to_the_end if mode == ModeKeys.EVAL else feeding.per_replica
        replicas = self.strategy.num_replicas_in_sync
        with all_replicas_of(replicas):
            result = program.start(input_fn, mode)
        refuse_queue_runners(input_fn)
        return feed(result, replicas)

    def record_model(self, program: ModelProgram, mode: str, inputs: feeding.Fed) -> Recording:
        records = _record_evaluation if mode == ModeKeys.EVAL else _record_training
        return records(program, self.strategy, inputs)


def _record_training(
    program: ModelProgram, strategy: tf.distribute.Strategy, fed: feeding.Fed
) -> Recording:
    """Records training on the replicas of a strategy.

    Source: `Estimator._actual_train_model_distributed`, tensorflow_estimator 2.15.
    """

    def call(features: Any, labels: Any) -> Any:
        return program.call_model_fn(features, labels, ModeKeys.TRAIN)

    graph = tf1.get_default_graph()
    replicas = RecordedReplicas(fed, strategy, call, inside=one_replica_of)
    spec = replicas.spec
    loss = replicas.mean(spec.loss) if reports_mean_loss(graph) else replicas.sum(spec.loss)
    return replicas.recording(spec._replace(loss=loss, train_op=replicas.runs(spec.train_op)))


def _record_evaluation(
    program: ModelProgram, strategy: tf.distribute.Strategy, fed: feeding.Fed
) -> Recording:
    """Records evaluation on the replicas of a strategy.

    The last batches may be fewer than the replicas. Replicas without a batch repeat the first one,
    and their counts of it are taken back.

    Source: `Estimator._call_model_fn_eval_distributed`, tensorflow_estimator 2.15.
    """

    def call(features: Any, labels: Any) -> Any:
        features, real = features
        spec = program.call_model_fn(features, labels, ModeKeys.EVAL)
        pairs = metric_pairs(spec)
        update = tf.group(*(update for _, update in pairs.values()))
        return spec, pairs, _unless(real, update, tf1.local_variables())

    replicas = RecordedReplicas(fed, strategy, call, inside=one_replica_of)
    spec, pairs, counts = replicas.spec
    step = replicas.runs(counts)
    hooks = (*spec.evaluation_hooks, AddUpHook(tf1.local_variables()))
    metrics = {name: (value, step) for name, (value, _) in pairs.items()}
    return replicas.recording(spec._replace(evaluation_hooks=hooks), metrics=metrics)


def _unless(real: tf.Tensor, update: tf.Operation, variables: Sequence[tf.Variable]) -> Any:
    """Runs `update`, and undoes its effect on the variables unless `real` is true."""
    before = [variable.read_value() for variable in variables]
    with tf.control_dependencies([update]):
        kept = [
            variable.assign(tf.where(real, variable.read_value(), value)).op
            for variable, value in zip(variables, before, strict=True)
        ]
    return tf.group(*kept)


class AddUpHook(tf1.train.SessionRunHook):
    """At the end, gives the first replica what all replicas have counted.

    Args:
        variables: Variables of the replicas; those with an aggregation of their own (`tf.metrics`
            and metric objects have SUM) are added up, of the others the first replica's stays.
    """

    def __init__(self, variables: Sequence[tf.Variable]):
        summed = (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN)
        self._variables = [(v.handle.op.name, v.aggregation) for v in variables]
        self._variables = [(name, how) for name, how in self._variables if how in summed]

    def end(self, session: ReplaySession) -> None:
        state = session.state
        with modern_world():
            for node, aggregation in self._variables:
                replicas = range(state.num_replicas)
                total = tf.add_n([state.variable(node, r).read_value() for r in replicas])
                if aggregation == tf.VariableAggregation.MEAN:
                    total /= state.num_replicas
                state.variable(node, 0).assign(total)
