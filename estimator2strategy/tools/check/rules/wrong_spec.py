"""A TPUEstimator whose model_fn returns EstimatorSpecs."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S211",
    "estimator-spec-on-tpu",
    Severity.WARNING,
    title="A TPUEstimator whose model_fn makes an EstimatorSpec",
    why="Evaluation on a TPU takes only a TPUEstimatorSpec: RuntimeError 'TPU evaluation must "
    "have type TPUEstimatorSpec'. With use_tpu=False both work.",
    fix="Return tf.estimator.tpu.TPUEstimatorSpec, with eval_metrics=(metric_fn, tensors).",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    return tf.estimator.EstimatorSpec(mode, loss=loss)

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=model_fn, config=tf.estimator.tpu.RunConfig(), train_batch_size=8, eval_batch_size=8)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=model_fn, config=tf.estimator.tpu.RunConfig(), train_batch_size=8, eval_batch_size=8)
""",
)
def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        if call.value("use_tpu", 4) is False or call.value("eval_on_tpu") is False:
            continue
        function = context.project.function(call.argument("model_fn", 0), call.scope, source)
        for model in context.project.model_functions:
            if function is not None and model.node is function.node and not model.is_tpu:
                yield Hit(call.node, f"{model.node.name} returns an EstimatorSpec")
