"""TPUEstimator without a batch size."""

from estimator2strategy.tools.check import branches
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import runs
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_SIZES = {
    "train": ("train_batch_size", 5),
    "evaluate": ("eval_batch_size", 6),
    "predict": ("predict_batch_size", 7),
}


@rule(
    "E2S217",
    "no-batch-size",
    Severity.ERROR,
    title="A TPUEstimator that runs without the batch size for it",
    why="On a TPU the size must be known: ValueError '`train_batch_size` cannot be `None`'; "
    "evaluate and predict fail in the same way with theirs.",
    fix="Give the size to TPUEstimator.",
    bad="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=128)
estimator.evaluate(lambda params: None, steps=10)
""",
    good="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=128, eval_batch_size=128)
estimator.evaluate(lambda params: None, steps=10)
""",
)
def find(source, context):
    for call, made in runs(source):
        if not is_tf(made.name, "TPUEstimator") or made.is_open:
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate" and made.value("eval_on_tpu") is False:
            continue
        name, position = _SIZES[call.last]
        if made.argument(name, position) is None:
            yield Hit(call.node, f".{call.last}() on a TPU, and TPUEstimator has no {name}")
