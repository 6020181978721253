"""`tf.contrib.estimator` of TF 1.15.

`changed_models.py` changes an Estimator or an optimizer, and has `RNNClassifier` and
`RNNEstimator`; `towers.py` copies a model to the devices of a machine.
Heads, hooks and early stopping live on in `tf.estimator` and come from there.

Refused: boosted trees, whose kernels TensorFlow has lost.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("estimator", globals())
