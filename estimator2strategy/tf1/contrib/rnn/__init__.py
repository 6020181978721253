"""`tf.contrib.rnn` of TF 1.15.

Most of its names live on in `tf.compat.v1.nn.rnn_cell`. Written anew are fused cells and blocks
(`fused_cells.py`), kinds of LSTMs and a block of a GRU (`lstm_kinds.py`), cells that look back or
whose units are apart (`attentive_cells.py`, `vector_cells.py`), and what goes around a cell or
makes bidirectional stacks (`around_cells.py`).

Refused: cells that nobody was seen to use; `symbols.csv` names each with its way out.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("rnn", globals())
