"""Keras metrics that give what `tf.metrics` gave; see migration_guide/metrics.md."""

from estimator2strategy.engine.metrics import *  # noqa: F403
from estimator2strategy.engine.metrics import __all__ as __all__
