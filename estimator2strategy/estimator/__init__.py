"""Drop-in for `tf.estimator`: `from estimator2strategy import estimator`."""

from estimator2strategy.estimator import export, tpu
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.mode_keys import ModeKeys
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.runtime.devices import emulate_tpu_if_asked

__all__ = ["Estimator", "EstimatorSpec", "ModeKeys", "RunConfig", "export", "tpu"]

emulate_tpu_if_asked()
