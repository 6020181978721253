"""`tf.contrib.learn` of TF 1.15.

| file | what |
| --- | --- |
| `early_estimator.py`, `model_fn_ops.py` | `Estimator`, `ModelFnOps` and their kin |
| `canned_models.py`, `dynamic_rnn.py` | ready models |
| `heads_of_learn.py`, `model_parts.py` | what these are made of |
| `experiment_runs.py`, `exports.py` | what drives them |
| `monitor_bases.py`, `monitor_kinds.py` | monitors, which came before hooks |
| `python_inputs.py`, `record_reading.py`, `word_numbers.py`, `dataset_files.py`, ... | data |

Refused: `ExportMonitor`, `GraphDump`, and what needs the kernels of tensor forests.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("learn", globals())
