"""Drop-in for `tf.compat.v1.estimator.tpu` (and for the estimator part of `tf.contrib.tpu`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from estimator2strategy.estimator import embedding_spec as _embedding_spec
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.specs import TPUEstimatorSpec
from estimator2strategy.estimator.tpu_config import InputPipelineConfig, RunConfig, TPUConfig
from estimator2strategy.estimator.tpu_context import TPUContext
from estimator2strategy.estimator.tpu_estimator import TPUEstimator
from estimator2strategy.estimator.tpu_export import (
    BatchConfig,
    ExportSavedModelApiVersion,
    call_computation,
    inference_on_tpu,
    model_fn_inference_on_tpu,
)

__all__ = [
    "BatchConfig",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUContext",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "call_computation",
    "experimental",
    "export_estimator_savedmodel",
    "inference_on_tpu",
    "model_fn_inference_on_tpu",
]

# `tf.compat.v1.estimator.tpu.experimental`, and the parameters that TensorFlow kept in
# `tf.compat.v1.tpu.experimental` until 2.15.
experimental = SimpleNamespace(
    EmbeddingConfigSpec=_embedding_spec.EmbeddingConfigSpec,
    AdagradParameters=_embedding_spec.AdagradParameters,
    AdamParameters=_embedding_spec.AdamParameters,
    FtrlParameters=_embedding_spec.FtrlParameters,
    StochasticGradientDescentParameters=_embedding_spec.StochasticGradientDescentParameters,
)


def export_estimator_savedmodel(
    estimator: Estimator,
    export_dir_base: str | os.PathLike[str],
    serving_input_receiver_fn: Callable[[], Any],
    assets_extra: dict[str, str] | None = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
) -> bytes:
    """Exports what an Estimator trained as a TPUEstimator would, with a graph for TPUs too.

    Args:
        estimator: Its model_fn has an argument `params`.

    The others, what is returned and raised: as for `Estimator.export_saved_model`.

    Source: `tf.contrib.tpu.export_estimator_savedmodel`, TF 1.15.
    """
    on_tpu = TPUEstimator(
        estimator.e2s_parts.program.model_fn,
        config=RunConfig(model_dir=estimator.model_dir),
        params=estimator.params,
        train_batch_size=1,  # Nothing is trained.
    )
    return on_tpu.export_saved_model(
        export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
    )
