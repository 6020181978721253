"""`tf.contrib.training` of TF 1.15.

tf-slim has its loops of training and evaluation. Written anew are `HParams`
(`hyperparameters.py`), batches of alike examples (`buckets.py`), samples with given probabilities
(`resampling.py`), and placement on parameter servers (`device_setting.py`).

Refused: `batch_sequences_with_states` and its kin, whose queues kept the states of cells.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("training", globals())
