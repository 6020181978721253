"""Summaries that a TPU drops."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_SUMMARIES = {"scalar", "histogram", "image", "audio", "text", "tensor_summary"}


@rule(
    "E2S226",
    "summary-in-tpu-model",
    Severity.WARNING,
    title="A summary in the part of model_fn that the TPU executes",
    why="Summaries are ops of the host. TPUEstimator leaves them out without a word when it "
    "trains on a TPU, so the curve is missing; with use_tpu=False it is there.",
    fix="Send the values to the host with host_call, and write them there.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    tf.summary.scalar("mean_label", tf.reduce_mean(labels))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    if not params["use_tpu"]:
        tf.summary.scalar("mean_label", tf.reduce_mean(labels))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
)
def find(source, context):
    project = context.project
    for model in project.model_functions:
        # A host_call may well collect them.
        collects = any(spec.argument("host_call") for spec in model.specs)
        if collects or not project.may_use_tpu(model):
            continue
        reached = project.reached_calls([model.definition])
        for calls in (calls for d, calls in reached if d.source is source):
            for call in calls:
                if (call.name or "").startswith("tf.summary.") and call.last in _SUMMARIES:
                    yield Hit(call.node, f"{call.name} is dropped on a TPU")
