"""Records a model_fn for batches of one kind, to be replayed in the steps of a Keras model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.legacy_code import is_of_tf115
from estimator2strategy.engine.metrics.objects import KerasMetric, keras_metric_of
from estimator2strategy.engine.metrics.observe import observe_metric_calls
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.host_call import LOSS, metric_pairs
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement, record
from estimator2strategy.engine.replay import tpu_step
from estimator2strategy.engine.replay.engines import How, Request, Step
from estimator2strategy.engine.replay.failed_op import named_failure
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.replicas import ReplicatedPart
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.shared_state import SharedState
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.replay.xla.target import JaxTarget
from estimator2strategy.engine.runtime import jax_devices
from estimator2strategy.engine.runtime.monitored import leave_out_summaries_of_branches
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class RecordedModel:
    """The result of model_fn for one mode and one kind of batch.

    Attributes:
        mode: A value of ModeKeys.
        graph: The v1 graph.
        spec: The EstimatorSpec that model_fn returned.
        feeds: The placeholders for a batch, flat.
        variables: The global variables, in the order in which they were made.
        scaffold: Initialises them, and has the Saver.
        metrics: Name -> (value, update) of the metrics of an evaluation, the loss left out.
        calls: The `tf.metrics` calls that were observed.
        summaries: Names of the summary ops that an Estimator would run while it trains. Empty in
            the other modes, and on cores, which write none.
    """

    mode: str
    graph: tf.Graph
    spec: Any
    feeds: tuple[tf.Tensor, ...]
    variables: tuple[tf.Variable, ...]
    scaffold: tf1.train.Scaffold
    metrics: Mapping[str, tuple[Any, Any]]
    calls: Sequence[Any]
    summaries: tuple[str, ...] = ()


def record_model(
    program: ModelProgram, placement: Placement, mode: str, batch: Any
) -> RecordedModel:
    """Calls model_fn once.

    Args:
        program: The model_fn.
        placement: A FedReplica, for TensorFlow or under JAX.
        mode: A value of ModeKeys.
        batch: (features, labels), or (features,): nested tensors or TensorSpecs of one batch.
    """
    seed, tf115 = program.config.tf_random_seed, is_of_tf115(program.model_fn)
    with legacy_world(), recording(seed, tf115), observe_metric_calls() as calls:
        made = record(program, placement, mode, lambda: batch)
        spec = made.spec
        metrics = metric_pairs(spec) if mode == ModeKeys.EVAL else {}
        metrics.pop(LOSS, None)
        scaffold = spec.scaffold or tf1.train.Scaffold()
        variables = tuple(tf1.global_variables())
        summaries = _summaries_of(made.graph) if mode == ModeKeys.TRAIN else ()
        scaffold.finalize()
        of_metrics = (metrics, tuple(calls))
        return RecordedModel(
            mode, made.graph, spec, made.feeds, variables, scaffold, *of_metrics, summaries
        )


def _summaries_of(graph: tf.Graph) -> tuple[str, ...]:
    leave_out_summaries_of_branches(graph)
    return tuple(summary.op.name for summary in tf1.get_collection(tf1.GraphKeys.SUMMARIES))


class ReplayedModel:
    """A recorded model on the variables of a Keras model.

    Args:
        recording: The recording of model_fn.
        strategy: Over whose replicas it runs; None: on one device.
        shared: Name -> variable.
        target: The device of JAX that runs it; None: TensorFlow does.

    Attributes:
        recording: As above.
        session: Runs parts of the graph on the same variables: initialisers, the Saver.
        keras_metrics: Name -> the Keras metric that counts in place of the recorded one.
    """

    def __init__(
        self,
        recording: RecordedModel,
        strategy: tf.distribute.Strategy | None,
        shared: Mapping[str, Any],
        target: JaxTarget | None = None,
    ):
        self.recording = recording
        self._recorded = RecordedGraph(recording.graph)
        nodes = [node.name for node in self._recorded.nodes if node.op == "VarHandleOp"]
        values = {name: shared[name].value for name in nodes if name in shared}
        self._state = SharedState(self._recorded, strategy, nodes, values)
        self._device = jax_devices.values_on(target, self._state) if target else None
        replay = Replay(self._recorded, self._state, device=self._device)
        self.session = ReplaySession(recording.graph, Runs(replay))
        self.keras_metrics = self._keras_metrics()
        self._outputs, self._ops = self._wanted()
        self._on_tpu = is_tpu(strategy)
        self._on_one_device = strategy is None
        self._parts: dict[bool, ReplicatedPart] = {}
        self._global_step = shared["global_step"]
        if self._on_tpu:
            roots = [*map(input_node, self._outputs), *self._ops]
            tpu_step.make_variables(self._recorded, self._state, roots)

    def initialise(self, names: Sequence[str]) -> None:
        """Gives the variables `names` their initial values, and whatever is local a value."""
        recording = self.recording
        with legacy_world(), recording.graph.as_default():
            fresh = [v.initializer for v in recording.variables if v.op.name in names]
            if fresh:
                self.session.run(fresh)
            self.session.run(recording.scaffold.local_init_op)
            if fresh and recording.scaffold.init_fn:
                recording.scaffold.init_fn(self.session)

    def named_failure(self, error: Exception) -> Exception:
        """As `error`, with the op and its line, if it is of a step of this model; else `error`."""
        return named_failure(self._recorded, self.recording.graph, error)

    def step(self, batch: Any) -> tuple[tf.Tensor | None, Any]:
        """Traces one step of the replica that calls it, metrics included; under JAX it runs it.

        In training the summaries of model_fn are written where a writer of `tf.summary` is the
        default one, by the tags and at the steps that an Estimator gave them.

        Args:
            batch: As it was recorded.

        Returns:
            The loss (None in prediction), and the predictions (None unless in prediction).

        Raises:
            UnsupportedError: It is traced, and JAX is to run it.
        """
        flat = tf.nest.flatten(batch, expand_composites=True)
        feeds = dict(zip((feed.name for feed in self.recording.feeds), flat, strict=True))
        if self._on_tpu:
            of_step = (self._outputs, self._ops, feeds)
            values = tpu_step.trace_replica(self._recorded, self._state, *of_step)
        elif self._device is not None:
            values = self._on_jax(feeds)
        else:
            values = self._of_replica(feeds)
        if self.recording.mode == ModeKeys.PREDICT:
            predictions = self.recording.spec.predictions
            return None, tf.nest.pack_sequence_as(predictions, values, expand_composites=True)
        loss, *rest = values
        for metric in self.keras_metrics.values():
            count = len(metric.inputs)
            metric.update(rest[:count])
            rest = rest[count:]
        return loss, None

    def _of_replica(self, feeds: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
        """The outputs of a step; its summaries are written."""
        writes = self._may_write_summaries()
        if writes not in self._parts:
            outputs = self._with_summaries(writes)
            self._parts[writes] = ReplicatedPart.of_outputs(self._recorded, outputs, self._ops)
        values = self._parts[writes].replay(self._recorded, self._state, feeds)
        return self._written(values) if writes else values

    def _on_jax(self, feeds: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
        """The same, of a step that is run at once."""
        if not tf.executing_eagerly():
            raise UnsupportedError(
                "A tf.function calls the model, and its steps run under JAX: call it from Python, "
                "or leave out runtime=Runtime.JAX and E2S_RUNTIME."
            )
        writes = self._may_write_summaries()
        request = Request(tuple(self._with_summaries(writes)), tuple(self._ops), tuple(feeds))
        step = Step((*self._ops, *map(input_node, self._outputs))[0], How.ONE_BY_ONE)
        with modern_world():
            given = [
                tf.convert_to_tensor(value, self.session.replay.spec(name).dtype)
                for name, value in feeds.items()
            ]
            values = self.session.runs.run(step, request, 1, given).results
        return self._written(values) if writes else values

    def _with_summaries(self, writes: bool) -> list[str]:
        merged = [self.recording.scaffold.summary_op.name] if writes else []
        return [*self._outputs, *merged]

    def _written(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Writes the last of `values`, a summary; returns the others."""
        *values, summary = values
        tf.summary.experimental.write_raw_pb(summary, step=self._global_step.value)
        return values

    def _may_write_summaries(self) -> bool:
        """False without summaries or a writer. All replicas have to run the same ops."""
        in_training = self.recording.mode == ModeKeys.TRAIN
        if not in_training or self.recording.scaffold.summary_op is None:
            return False
        if not self._on_one_device:
            return True
        return tf.get_static_value(tf.summary.should_record_summaries()) is not False

    def _keras_metrics(self) -> dict[str, KerasMetric]:
        by_name = {}
        for name, (value, update) in self.recording.metrics.items():
            metric = keras_metric_of(name, self._recorded, value, update, self.recording.calls)
            if metric is None:
                tf1.logging.warning(
                    "The metric %s is left out: what it is made of is more than variables of its "
                    "own and the batch. Estimator.evaluate computes it.",
                    name,
                )
            else:
                by_name[name] = metric
        return by_name

    def _wanted(self) -> tuple[list[str], list[str]]:
        """Names of the tensors to return and of the ops to run at each step."""
        spec = self.recording.spec
        if self.recording.mode == ModeKeys.PREDICT:
            flat = tf.nest.flatten(spec.predictions, expand_composites=True)
            return [tensor.name for tensor in flat], []
        inputs = [name for metric in self.keras_metrics.values() for name in metric.inputs]
        train_op = spec.train_op if self.recording.mode == ModeKeys.TRAIN else None
        ops = [] if train_op is None else [getattr(train_op, "op", train_op).name]
        return [spec.loss.name, *inputs], ops
