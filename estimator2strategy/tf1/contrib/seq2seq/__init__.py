"""`tf.contrib.seq2seq` of TF 1.15.

| file | what |
| --- | --- |
| `decoding.py` | what runs a cell on its own outputs, and scores the result |
| `step_helpers.py` | helpers, which choose the input of a step |
| `attention_wrapper.py`, `attention_mechanisms.py`, `monotonic_mechanisms.py` | attention |
| `beam_search.py` | beam search, without a kernel |

Nothing of it is refused. TensorFlow Addons had the same names with other arguments.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("seq2seq", globals())
