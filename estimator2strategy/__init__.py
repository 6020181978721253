"""Runs programs written for TensorFlow's Estimator and TPUEstimator on today's TensorFlow.

    from estimator2strategy import estimator          # in place of tf.estimator
    import estimator2strategy.tf1 as tf               # in place of TF 1.15's tensorflow

    estimator2strategy.emulate_tpu(num_cores=8)       # TPU behaviour without a TPU

Importing this package does not import TensorFlow; using one of its names does.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that has it; imported at first use.
_HOMES = {
    "BestExporter": "estimator2strategy.estimator",
    "Estimator": "estimator2strategy.estimator",
    "EstimatorSpec": "estimator2strategy.estimator",
    "EvalSpec": "estimator2strategy.estimator",
    "Exporter": "estimator2strategy.estimator",
    "FinalExporter": "estimator2strategy.estimator",
    "LatestExporter": "estimator2strategy.estimator",
    "ModeKeys": "estimator2strategy.estimator",
    "RunConfig": "estimator2strategy.estimator",
    "TrainSpec": "estimator2strategy.estimator",
    "TrainingOptions": "estimator2strategy.estimator",
    "Runtime": "estimator2strategy.estimator",
    "Precision": "estimator2strategy.estimator",
    "train_and_evaluate": "estimator2strategy.estimator",
    "InputPipelineConfig": "estimator2strategy.estimator.tpu",
    "TPUConfig": "estimator2strategy.estimator.tpu",
    "TPUEstimator": "estimator2strategy.estimator.tpu",
    "TPUEstimatorSpec": "estimator2strategy.estimator.tpu",
    "export_step": "estimator2strategy.tools.artifact.step_export",
    "emulate_tpu": "estimator2strategy.engine.runtime.devices",
    "adapt": "estimator2strategy.keras_model.adapting",
    "KerasLoop": "estimator2strategy.keras_model.keras_loop",
    "LegacyModel": "estimator2strategy.keras_model.legacy_model",
    "keras_metrics": "estimator2strategy.keras_model.metrics_of_fn",
    "keras_updates": "estimator2strategy.keras_model.inside",
    "transfer_weights": "estimator2strategy.keras_model.transfer",
}

# Public modules, imported at first use too: `import estimator2strategy as e2s; e2s.estimator`.
_MODULES = ("errors", "estimator", "legacy", "metrics", "tf1")

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOMES or name == "estimator":
        importlib.import_module(f"{__name__}.engine.quiet_import").import_tensorflow()
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
