"""Names of TensorFlow as TF 1.15 has them, whatever module a program reaches them by."""

from __future__ import annotations

# How a module is written -> the legacy name, for the longest prefix that fits.
_ALIASES = (
    ("tensorflow.compat.v1.compat.v1", "tf"),
    ("tensorflow.compat.v1", "tf"),
    ("tensorflow.compat.v2", "tf.compat.v2"),
    ("tensorflow", "tf"),
    ("tf", "another_tf"),  # `import tf` is a module of ROS
    ("estimator2strategy.tf1", "tf"),
    ("estimator2strategy.estimator", "tf.estimator"),
    ("tensorflow_estimator.python.estimator", "tf.python.estimator"),
    ("tensorflow_estimator.estimator", "tf.estimator"),
    ("tensorflow_estimator.contrib.estimator", "tf.contrib.estimator"),
)
_FRONT_DOOR = {
    "Estimator": "Estimator",
    "EstimatorSpec": "EstimatorSpec",
    "ModeKeys": "ModeKeys",
    "RunConfig": "RunConfig",
    "InputPipelineConfig": "tpu.InputPipelineConfig",
    "TPUConfig": "tpu.TPUConfig",
    "TPUEstimator": "tpu.TPUEstimator",
    "TPUEstimatorSpec": "tpu.TPUEstimatorSpec",
}


def canonical(raw: str) -> str:
    """The name of TF 1.15 for what is written like this; other names as they are."""
    if raw.startswith("@"):
        return raw
    for prefix, legacy in _ALIASES:
        if raw == prefix or raw.startswith(f"{prefix}."):
            return legacy + raw[len(prefix) :]
    top, _, rest = raw.partition(".")
    if top == "estimator2strategy" and rest in _FRONT_DOOR:
        return f"tf.estimator.{_FRONT_DOOR[rest]}"
    return raw
