"""Weights of a metric that were made for one row of a batch."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf

_METRICS = ("precision", "recall", "f1", "fbeta")
_FLAGS = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.", "absl.flags.FLAGS.")


def find(source, context):
    del context
    for call in source.calls:
        if call.last not in _METRICS or "tf_metrics." not in (call.name or ""):
            continue
        weights = source.call(call.argument("weights", 4), call.scope)
        if weights is None or not is_tf(weights.name, "sequence_mask"):
            continue
        if _is_one_number(weights):
            yield Hit(call.node, f"the weights of {call.last} are those of one row of the batch")


def _is_one_number(mask):
    """True if a sequence_mask is made of one length: of a number or a flag."""
    length = mask.argument("lengths", 0)
    if length is None:
        return False
    if isinstance(mask.source.constant(length, mask.scope), int):
        return True
    return (mask.source.name(length, mask.scope) or "").startswith(_FLAGS)
