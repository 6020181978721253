"""Heads: from logits to loss, predictions, metrics and signatures."""

from estimator2strategy.engine.wrong_argument import checked_init
from estimator2strategy.estimator.canned_rules import CANNED_RULES
from estimator2strategy.estimator.heads.base import Head
from estimator2strategy.estimator.heads.classification import BinaryClassHead, MultiClassHead
from estimator2strategy.estimator.heads.multi_head import MultiHead
from estimator2strategy.estimator.heads.multi_label import MultiLabelHead
from estimator2strategy.estimator.heads.regression import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)

__all__ = [
    "BinaryClassHead",
    "Head",
    "LogisticRegressionHead",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "PoissonRegressionHead",
    "RegressionHead",
]

for _name in __all__:
    if _name != "Head":  # programs derive theirs from it
        checked_init(CANNED_RULES)(globals()[_name])
