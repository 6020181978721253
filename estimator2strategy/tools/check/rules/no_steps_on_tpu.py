"""Runs on a TPU without a number of steps."""

from estimator2strategy.tools.check import branches
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import runs
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S213",
    "tpu-run-without-steps",
    Severity.WARNING,
    title="train or evaluate of a TPUEstimator without a number of steps",
    why="On a TPU the loop runs on the device, and its number of steps must be known beforehand: "
    "'Evaluate `steps` must be set on TPU', and for training steps or max_steps. With "
    "use_tpu=False the run ends with its input.",
    fix="evaluate(input_fn, steps=number_of_examples // eval_batch_size); train(..., max_steps=n)",
    bad="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=8, eval_batch_size=8)
estimator.evaluate(input_fn=lambda params: None)
""",
    good="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, use_tpu=True, train_batch_size=8, eval_batch_size=8)
estimator.evaluate(input_fn=lambda params: None, steps=100)
""",
)
def find(source, context):
    for call, made in runs(source):
        if call.last == "predict" or call.is_open or not is_tf(made.name, "TPUEstimator"):
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate":
            if made.value("eval_on_tpu") is False:
                continue
            given = [call.argument("steps", 1)]
        else:
            given = [call.argument("steps", 2), call.argument("max_steps", 3)]
        if all(steps is None or source.constant(steps, call.scope) is None for steps in given):
            yield Hit(call.node, f"{call.last} on a TPU needs a number of steps")
