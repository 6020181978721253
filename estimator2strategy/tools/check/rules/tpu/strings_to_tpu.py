"""String features that reach the TPU."""

from estimator2strategy.tools.check import features
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.string":
            yield Hit(feature.node, f"the string {feature.key!r} is returned as it was parsed")
