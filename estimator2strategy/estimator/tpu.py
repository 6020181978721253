"""Drop-in for `tf.compat.v1.estimator.tpu` (and for the estimator part of `tf.contrib.tpu`)."""

from estimator2strategy.estimator.specs import TPUEstimatorSpec
from estimator2strategy.estimator.tpu_config import InputPipelineConfig, RunConfig, TPUConfig
from estimator2strategy.estimator.tpu_context import TPUContext
from estimator2strategy.estimator.tpu_estimator import TPUEstimator

__all__ = [
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUContext",
    "TPUEstimator",
    "TPUEstimatorSpec",
]
