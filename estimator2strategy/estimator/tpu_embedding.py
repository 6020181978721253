"""The parts of an EmbeddingConfigSpec that a TPUEstimator can run here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record import embedding_input
from estimator2strategy.engine.record.embedding import Embedding
from estimator2strategy.engine.record.embedding_input import SLOTS
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.embedding_spec import EmbeddingConfigSpec, configurations
from estimator2strategy.estimator.tpu_config import InputPipelineConfig

_PIPELINES = (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2)
_ON_THE_HOST = (
    "  With use_tpu=False the same columns are looked up and trained on the host, under the same "
    "names."
)


def check_embedding_spec(spec: Any, tpu_config: Any, use_tpu: bool, eval_on_tpu: bool) -> None:
    """Raises ValueError or TypeError if the spec cannot go with the rest of the configuration."""
    if spec is None:
        return
    if not isinstance(spec, EmbeddingConfigSpec):
        raise TypeError(
            "embedding_config_spec must be an EmbeddingConfigSpec of estimator.tpu.experimental, "
            f"got {type(spec)}."
        )
    if use_tpu and tpu_config.per_host_input_for_training not in _PIPELINES:
        raise ValueError(
            "Only PER_HOST_V1 and PER_HOST_V2 is supported when using TPU Embedding; got "
            f"{tpu_config.per_host_input_for_training}."
        )
    if not (use_tpu and eval_on_tpu) and spec.partition_strategy == "mod":
        raise ValueError("Mod sharding of embedding tables not supported on CPU.")
    if tpu_config.num_shards == 1 and tpu_config.num_cores_per_replica is None:
        raise ValueError(
            "Setting TPUConfig.num_shards==1 is unsupported when embedding_config_spec is not None."
        )


def embedding_for(spec: Any, mode: str, strategy: Any) -> Embedding | None:
    """The tables as cores have them; None: none, but those of model_fn's own columns.

    Raises:
        UnsupportedError: They cannot be had there.
    """
    if spec is None or not (spec.feature_columns or spec.feature_to_config_dict):
        return None
    if mode == ModeKeys.PREDICT:
        raise UnsupportedError(
            "embedding_config_spec: TPUEstimator.predict never looked tables up on cores.\n"
            + _ON_THE_HOST
        )
    tables, features = configurations(spec)
    for parameters in (
        spec.optimization_parameters,
        *(t.optimization_parameters for t in tables.values()),
    ):
        _check_parameters(parameters)
    if is_tpu(strategy):
        _say_that_lookups_are_dense(tables)
    return Embedding(
        tables,
        features,
        spec.optimization_parameters,
        from_columns=spec.feature_columns is not None,
        num_cores=strategy.num_replicas_in_sync,
        gradient_multiplier=spec.experimental_gradient_multiplier_fn,
    )


def _say_that_lookups_are_dense(tables: Mapping[str, Any]) -> None:
    size = sum(t.vocabulary_size * t.dimension for t in tables.values()) * tf.float32.size
    tf.compat.v1.logging.warn(
        f"The {len(tables)} table(s) of embedding_config_spec, {size / 2**20:.1f} MB without their "
        "slots, are on each core of the TPU as dense variables: its embedding hardware is not "
        "used. The step is compiled again for a batch whose examples have another greatest number "
        "of ids; pad them in input_fn."
    )


def input_for_cores(
    spec: Any, embedding: Embedding | None, batch_size: int | None
) -> Callable[[Any], Any]:
    """Returns a function that prepares input_fn's result, so that cores find all tables' ids.

    Args:
        batch_size: The static size of the batches' first axis; None: it has none.
    """
    changes = []
    if embedding is not None:
        changes.append(functools.partial(embedding.densified, batch_size=batch_size))
    columns = spec and spec.tensor_core_feature_columns
    if columns:
        changes.append(
            functools.partial(embedding_input.padded, columns=columns, batch_size=batch_size)
        )

    def changed(result: Any) -> Any:
        for change in changes:
            result = embedding_input.with_features(result, change)
        return result

    return changed


def _check_parameters(parameters: Any) -> None:
    if parameters is None:
        return
    if type(parameters).__name__ not in SLOTS:
        raise UnsupportedError(
            f"embedding_config_spec: {type(parameters).__name__} is not supported on cores."
            f"\n  These are: {', '.join(SLOTS)}.\n" + _ON_THE_HOST
        )
    if parameters.weight_decay_factor:
        raise UnsupportedError(
            "embedding_config_spec: weight_decay_factor is not supported on cores.\n" + _ON_THE_HOST
        )
