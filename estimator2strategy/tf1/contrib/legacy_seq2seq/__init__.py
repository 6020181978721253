"""`tf.contrib.legacy_seq2seq` of TF 1.15: decoders whose graph is as long as their sequences.

`unrolled_decoders.py` has decoders and losses, `unrolled_models.py` the models with embeddings and
attention. Nothing of it is refused.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("legacy_seq2seq", globals())
