"""Records a TPUEstimator's program on the cores of a strategy.

Each batch is dealt out to the cores. What they compute reaches the host by outfeed: host calls,
metrics and predictions are recorded in terms of all cores' results.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.embedding import Embedding
from estimator2strategy.engine.record.feeding import Fed, check_no_strings, check_static
from estimator2strategy.engine.record.input_fn import refuse_queue_runners
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement, Recording
from estimator2strategy.engine.record.replicated import RecordedReplicas, one_shard_of
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime.hooks import InfeedSleepHook
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop
from estimator2strategy.estimator.calling import call_tpu_model_fn
from estimator2strategy.estimator.checks import checked_predictions
from estimator2strategy.estimator.core_refusals import check_core
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.estimator.tpu_checks import (
    check_predictions,
    check_training_spec,
    checked_tpu_spec,
)
from estimator2strategy.estimator.tpu_config import TPUConfig
from estimator2strategy.estimator.tpu_context import Deployment
from estimator2strategy.estimator.tpu_embedding import embedding_for, input_for_cores
from estimator2strategy.estimator.tpu_input import call_tpu_input_fn, input_of_replicas
from estimator2strategy.estimator.tpu_outfeed import (
    TrainingLog,
    eval_metrics_of,
    host_call_hooks,
    outfed,
    scaffold_of,
    without_padding,
)
from estimator2strategy.estimator.tpu_partition import check_parts_of_one_size, partition_dims

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class OnTpuCores(Placement):
    """The cores of a TPU, or emulated ones.

    Attributes:
        deployment: How batches are dealt out to the cores, in one mode.
        tpu_config: `RunConfig.tpu_config`.
        iterations: `TPUConfig.iterations_per_loop`.
        log: The hooks of training that log.
        batch_axis: As of TPUEstimator.
        embedding_spec: Its `embedding_config_spec`.
        emulates: True if the cores stand for a TPU's, and so refuse what that would.
    """

    deployment: Deployment
    tpu_config: TPUConfig
    iterations: IterationsPerLoop
    log: TrainingLog
    batch_axis: Sequence[int] | None = None
    embedding_spec: Any = None
    emulates: bool = False

    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]) -> Fed:
        program.create_global_step(tf1.get_default_graph())
        embedding = self._embedding()
        given = (program.params, program.config)
        # Predictions end with a smaller batch, which is padded later.
        size = None if mode == ModeKeys.PREDICT else self.deployment.input_batch_size
        prepared = input_for_cores(self.embedding_spec, embedding, size)

        def call(invocation: int, host: int) -> Any:
            result = call_tpu_input_fn(input_fn, self.deployment, *given, invocation, host)
            refuse_queue_runners(input_fn)
            return prepared(result)

        fed = input_of_replicas(call, self.deployment, self.batch_axis)
        features, labels = (*fed.structure, None)[:2]
        if embedding:
            features = {k: v for k, v in features.items() if k not in embedding.names}
        check_static(features, labels, input_fn)
        check_no_strings(features, labels, input_fn)
        return fed

    def record_model(self, program: ModelProgram, mode: str, inputs: Fed) -> Recording:
        replicas = self._recorded_replicas(program, inputs)
        spec_of = {
            ModeKeys.TRAIN: self._training_spec,
            ModeKeys.EVAL: self._evaluation_spec,
            ModeKeys.PREDICT: self._prediction_spec,
        }[mode]
        spec = spec_of(program, replicas)
        sleep = self.tpu_config.initial_infeed_sleep_secs
        sleeping = (InfeedSleepHook(sleep),) if sleep else ()
        recording = replicas.recording(spec, input_hooks=sleeping, iterations=self.iterations)
        if self.emulates and not is_tpu(self.deployment.strategy):
            # Ids for tables have no fixed number.
            check_core(recording, shapes=not self.embedding_spec)
        return recording

    def _recorded_replicas(self, program: ModelProgram, fed: Fed) -> RecordedReplicas:
        deployment, embedding = self.deployment, self._embedding()
        partitions = self._partitions(fed)

        def spec_of(features: Any, labels: Any) -> Any:
            given = (program.params, copy.deepcopy(program.config))
            return call_tpu_model_fn(program.model_fn, features, labels, deployment, *given)

        def call(features: Any, labels: Any) -> Any:
            if embedding is None:
                return spec_of(features, labels)
            trains = deployment.mode == ModeKeys.TRAIN
            return embedding.call(lambda looked_up: spec_of(looked_up, labels), features, trains)

        tf1.logging.info("Calling model_fn.")
        replicas = RecordedReplicas(
            fed, deployment.strategy, call, inside=one_shard_of, partitions=partitions
        )
        tf1.logging.info("Done calling model_fn.")
        return replicas

    def _embedding(self) -> Embedding | None:
        deployment = self.deployment
        return embedding_for(self.embedding_spec, deployment.mode, deployment.strategy)

    def _partitions(self, fed: Fed) -> tuple[Any, ...]:
        """Returns, for each tensor of a replica's input, the parts that its cores get."""
        dims = self.tpu_config.input_partition_dims
        if dims is None:
            return ()
        cores = self.tpu_config.num_cores_per_replica or 1
        partitions = partition_dims(fed.structure, dims, cores)
        on_tpu = is_tpu(self.deployment.strategy)
        check_parts_of_one_size(fed.structure, partitions, on_tpu)
        return partitions if on_tpu else ()

    # The spec of each mode, in terms of the host graph.

    def _training_spec(self, program: ModelProgram, replicas: RecordedReplicas) -> EstimatorSpec:
        spec, graph = replicas.spec, tf1.get_default_graph()
        check_training_spec(spec, graph, self.deployment.num_replicas, program.model_fn)
        train_op = replicas.runs(spec.train_op)
        loss = replicas.mean(spec.loss)
        host_call = self._host_call(replicas)
        return EstimatorSpec(
            ModeKeys.TRAIN,
            loss=loss,
            train_op=train_op,
            training_hooks=[
                *host_call,
                *self.log.hooks(loss, on_host=False),
                *spec.training_hooks,
            ],
            scaffold=scaffold_of(spec, replicas),
        )

    def _evaluation_spec(self, program: ModelProgram, replicas: RecordedReplicas) -> EstimatorSpec:
        del program
        spec = checked_tpu_spec(replicas.spec, "evaluation")
        replicas.runs(spec.loss)
        loss = replicas.mean(spec.loss)
        host_call = self._host_call(replicas)
        metrics = eval_metrics_of(replicas, self.deployment) if spec.eval_metrics else None
        return EstimatorSpec(
            ModeKeys.EVAL,
            loss=loss,
            eval_metric_ops=metrics,
            evaluation_hooks=[*host_call, *spec.evaluation_hooks],
            scaffold=scaffold_of(spec, replicas),
        )

    def _prediction_spec(self, program: ModelProgram, replicas: RecordedReplicas) -> EstimatorSpec:
        spec = checked_tpu_spec(replicas.spec, "prediction")
        check_predictions(checked_predictions(spec.predictions, program.model_fn))
        predictions = outfed(replicas, spec.predictions, self.deployment)
        host_call = self._host_call(replicas)
        return EstimatorSpec(
            ModeKeys.PREDICT,
            predictions=without_padding(predictions, replicas, self.deployment),
            prediction_hooks=[*host_call, *spec.prediction_hooks],
            scaffold=scaffold_of(spec, replicas),
        )

    def _host_call(self, replicas: RecordedReplicas) -> list[Any]:
        every = self.tpu_config.experimental_host_call_every_n_steps
        return host_call_hooks(replicas, self.deployment, every)
