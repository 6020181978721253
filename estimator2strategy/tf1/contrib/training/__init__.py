"""`tf.contrib.training` of TF 1.15.

tf-slim has its loops of training and evaluation. Written anew are `HParams`
and placement on parameter servers (`hyperparameters.py`), batches of alike examples (`buckets.py`),
and samples with given probabilities (`resampling.py`).

Refused: `batch_sequences_with_states` and its kin, whose queues kept the states of cells.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("training", globals())
