"""`tf.contrib.training` of TF 1.15: what tf-slim does not have, and what needs no tf-slim."""

from __future__ import annotations

from estimator2strategy.tf1.contrib import all_of, names_of
from estimator2strategy.tf1.contrib.buckets import bucket, bucket_by_sequence_length
from estimator2strategy.tf1.contrib.device_setter import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)
from estimator2strategy.tf1.contrib.hparam import HParams, parse_values
from estimator2strategy.tf1.contrib.sampling import (
    rejection_sample,
    resample_at_rate,
    stratified_sample,
    weighted_resample,
)

__all__ = [
    "GreedyLoadBalancingStrategy",
    "HParams",
    "RandomStrategy",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "parse_values",
    "rejection_sample",
    "resample_at_rate",
    "stratified_sample",
    "weighted_resample",
]

__getattr__ = names_of("training")
__all__ += all_of("training")
