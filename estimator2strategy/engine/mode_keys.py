"""The three modes in which a `model_fn` is called."""

from __future__ import annotations

from typing import Final


class ModeKeys:
    """Names of the modes: plain strings, since programs compare, print and key dicts by them.

    Source: `tf.estimator.ModeKeys`; PREDICT has always been spelled 'infer'.
    """

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"
