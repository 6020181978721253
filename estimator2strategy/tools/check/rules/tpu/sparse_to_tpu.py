"""Sparse features that reach the TPU."""

from estimator2strategy.tools.check import features
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for feature in features.parsed_and_returned(source, context.project):
        if feature.kind == "VarLenFeature":
            yield Hit(feature.node, f"the sparse {feature.key!r} is returned as it was parsed")
