"""Weights of a metric that were made for one row of a batch."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_METRICS = ("precision", "recall", "f1", "fbeta")
_FLAGS = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.", "absl.flags.FLAGS.")


@rule(
    "E2S235",
    "weights-of-one-row",
    Severity.WARNING,
    title="Weights of a metric that are those of one row",
    why="`tf.sequence_mask(max_seq_length)` of one number has `max_seq_length` values, and the "
    "metrics of `tf_metrics` count every token of a batch. TensorFlow 1.15 read beyond the "
    "weights, so that the metric was whatever was in memory. TensorFlow 2 refuses: `Dimensions "
    "[0,1) of indices must match dimensions [0,1) of updates`.",
    fix="Give the length of each row: tf.sequence_mask(lengths, max_seq_length).",
    bad="""\
import tensorflow as tf
import tf_metrics

tf.flags.DEFINE_integer("max_seq_length", 128, "Tokens of a row.")
FLAGS = tf.flags.FLAGS

def metric_fn(label_ids, pred_ids):
    weight = tf.sequence_mask(FLAGS.max_seq_length)
    return {"precision": tf_metrics.precision(label_ids, pred_ids, 11, [2, 3], weight)}
""",
    good="""\
import tensorflow as tf
import tf_metrics

tf.flags.DEFINE_integer("max_seq_length", 128, "Tokens of a row.")
FLAGS = tf.flags.FLAGS

def metric_fn(label_ids, pred_ids, lengths):
    weight = tf.sequence_mask(lengths, FLAGS.max_seq_length)
    return {"precision": tf_metrics.precision(label_ids, pred_ids, 11, [2, 3], weight)}
""",
)
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
