"""Batches that cores cannot share."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S216",
    "uneven-batch",
    Severity.WARNING,
    title="A batch size of a TPUEstimator that eight cores cannot share",
    why="The sizes are global. They must be divisible by the number of cores, and the smallest "
    "TPU that is rented has eight (v2-8, v3-8): ValueError '... must be divisible by number "
    "of replicas'.",
    fix="Choose a multiple of the number of cores.",
    bad="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=100)
""",
    good="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=128)
""",
)
def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator") or call.value("use_tpu", 4) is False:
            continue
        for name, position in (("train_batch_size", 5), ("eval_batch_size", 6)):
            size = call.value(name, position)
            if isinstance(size, int) and not isinstance(size, bool) and size % 8:
                yield Hit(call.argument(name, position), f"{name}={size} is no multiple of 8")
