"""Features that an input_fn for TPUs returns as it has parsed them."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import features


def text(source, context):
    """String features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.string":
            yield Hit(feature.node, f"the string {feature.key!r} is returned as it was parsed")


def int64(source, context):
    """int64 features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.int64":
            yield Hit(feature.node, f"the int64 {feature.key!r} is returned as it was parsed")


def sparse(source, context):
    """Sparse features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.kind == "VarLenFeature":
            yield Hit(feature.node, f"the sparse {feature.key!r} is returned as it was parsed")
