"""float64 on TPUs."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_FLOAT64 = ("float64", "double", "complex128")


@rule(
    "E2S404",
    "float64-in-tpu-code",
    Severity.WARNING,
    title="float64 in the part of model_fn that the TPU executes",
    why="TPUs have no float64. The compiler emulates it, many times slower, or refuses the op.",
    fix="Use float32; sum in float32 what is kept in bfloat16.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(tf.cast(features, tf.float64))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(tf.cast(features, tf.float32))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
)
def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if not call.name or not call.name.startswith("tf."):
            continue
        if call.name == "tf.to_double":
            yield Hit(call.node, "tf.to_double makes float64 where the TPU computes")
            continue
        given = [*call.node.args, *(k.value for k in call.node.keywords if k.arg == "dtype")]
        for argument in given:
            if is_tf(source.name(argument, call.scope), *_FLOAT64):
                yield Hit(argument, f"{call.name} makes float64 where the TPU computes")
