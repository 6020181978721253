"""`tf.contrib.estimator` of TF 1.15.

`model_changes.py` changes an Estimator or an optimizer, `towers.py` and `tower_specs.py` copy a
model to the devices of a machine, and `recurrent_models.py` has `RNNClassifier` and `RNNEstimator`.
Heads, hooks and early stopping live on in `tf.estimator` and come from there.

Refused: boosted trees, whose kernels TensorFlow has lost.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("estimator", globals())
