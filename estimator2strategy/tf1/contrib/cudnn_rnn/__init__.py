"""`tf.contrib.cudnn_rnn` of TF 1.15: its layers and cells as plain ops (`plain_layers.py`).

Their weights are in one buffer, as cuDNN has them, or by cell (`weight_buffers.py`).
Nothing calls cuDNN.

Refused: the saveables and the converters of formats; a layer has its own in `.saveable`.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("cudnn_rnn", globals())
