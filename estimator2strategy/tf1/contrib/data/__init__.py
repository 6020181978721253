"""`tf.contrib.data` of TF 1.2 to 1.15.

`beside_experimental.py` has names that `tf.data.experimental` lacks, `datasets_of_1_4.py` the
arguments of TF 1.2 to 1.5 that `tf.data` never had. All else lives on in `tf.data`.

Refused: `LMDBDataset`, `CheckpointInputPipelineHook`, and a few functions for which `tf.data` has
another.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("data", globals())
