"""`tf.contrib.estimator` of TF 1.15: what changes an Estimator or an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.export import PredictOutput

_v1 = tf.compat.v1


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An Estimator whose predictions have some of the features too.

    Args:
        estimator: To be extended; it shares its model_dir and config.
        keys: Names of features; all by default.
        sparse_default_values: Fills up sparse features, by name.

    Raises:
        TypeError: `keys` are no strings.
        ValueError: While predicting: a feature is missing, sparse, or has the name of a prediction.
    """
    chosen = [keys] if isinstance(keys, str) else keys
    if chosen is not None and not isinstance(chosen, (list, tuple)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {type(keys)}")
    for key in chosen or ():
        if not isinstance(key, str):
            raise TypeError(
                "All items in the given keys list should be a string. There exist an item with "
                f"type: {type(key)}"
            )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        if not isinstance(spec.predictions, dict):
            raise ValueError(
                "Predictions should be a dict to be able to forward features. "
                f"Given: {type(spec.predictions)}"
            )
        names = list(features) if chosen is None else chosen
        forwarded = {
            name: _forwarded(name, features, spec.predictions, sparse_default_values or {})
            for name in names
        }
        outputs = {
            name: PredictOutput({**output.outputs, **forwarded})
            if name in ("predict", "serving_default") and isinstance(output, PredictOutput)
            else output
            for name, output in (spec.export_outputs or {}).items()
        }
        return spec._replace(
            predictions={**spec.predictions, **forwarded}, export_outputs=outputs or None
        )

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def _forwarded(name: str, features: Any, predictions: Any, defaults: Mapping[str, Any]) -> Any:
    """A feature as a tensor, or ValueError where it cannot be a prediction."""
    if name not in features:
        raise ValueError(
            f'keys should be exist in features. Key "{name}" is not in features dict. features '
            f"dict has following keys: {list(features)}. Please check arguments of "
            "forward_features."
        )
    if name in predictions:
        raise ValueError(
            f"Cannot forward feature key ({name}). Since it does exist in predictions. Existing "
            f"prediction keys: {list(predictions)}. Please check arguments of forward_features."
        )
    feature = features[name]
    if name in defaults:
        if not isinstance(feature, tf.SparseTensor):
            raise ValueError(f"Feature ({name}) is expected to be a `SparseTensor`.")
        return tf.sparse.to_dense(feature, default_value=defaults[name])
    if isinstance(feature, tf.SparseTensor):
        raise ValueError(
            f"Feature ({name}) should be a Tensor. Please use `keys` argument of forward_features "
            "to filter unwanted features, or add key to argument `sparse_default_values`. "
            f"Type of features[{name}] is {type(feature)}."
        )
    return tf.convert_to_tensor(feature)


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> Any:
    """`optimizer`, which clips all gradients together to the global norm `clip_norm`."""
    return _ClippingOptimizer(optimizer, clip_norm)


class _ClippingOptimizer(_v1.train.Optimizer):
    def __init__(self, optimizer: Any, clip_norm: Any):
        super().__init__(use_locking=False, name="ClipByNorm" + optimizer.get_name())
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = _v1.clip_by_global_norm(gradients, self._clip_norm)
        pairs = list(zip(clipped, variables, strict=True))
        return self._optimizer.apply_gradients(pairs, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)
