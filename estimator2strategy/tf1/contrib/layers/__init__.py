"""`tf.contrib.layers` of TF 1.15.

tf-slim has most of it, and is looked up for it. Here are the layers that it lacks
(`beside_slim.py`), ops on sparse tensors among them, and the old feature columns:

| file | what |
| --- | --- |
| `makers_of_columns.py` | the functions that make columns, with the arguments of TF 1.15 |
| `column_kinds.py` | what a column makes of features |
| `looked_up_columns.py` | the bases of columns, their variables, crosses of features |
| `inputs_of_columns.py` | inputs of networks, linear models |

Refused: what `symbols.csv` says, above all parts that need kernels which TensorFlow has lost.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("layers", globals())
