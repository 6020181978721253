"""Makes `estimator2strategy.tf1` out of today's TensorFlow.

`symbols.csv` has a row for each name of TF 1.15 that today's `tf.compat.v1` lacks or has changed.
`engine/names/name_table.py` reads it, without TensorFlow.
"""
