"""Canned Estimators: networks that need no model_fn.

Those of TF 1 have the names of `tf.estimator`; those of TF 2, which differed, end in V2.
"""
