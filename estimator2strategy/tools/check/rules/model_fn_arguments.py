"""model_fn with arguments that Estimator does not know."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_KNOWN = {"features", "labels", "mode", "params", "config", "embedding_lookup", "self"}


@rule(
    "E2S224",
    "model-fn-arguments",
    Severity.ERROR,
    title="A model_fn with arguments that Estimator does not give",
    why="Estimator gives arguments by name: features, labels, mode, params, config. Another one "
    "without a default is a ValueError when the Estimator is made; so is a model_fn without "
    "features.",
    fix="Use these names; bind others with functools.partial.",
    bad="""\
import tensorflow as tf

def model_fn(x, y, mode):
    return tf.estimator.EstimatorSpec(mode, loss=tf.losses.mean_squared_error(y, x))

estimator = tf.estimator.Estimator(model_fn)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.losses.mean_squared_error(labels, features))

estimator = tf.estimator.Estimator(model_fn)
""",
)
def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "Estimator", "TPUEstimator") or ".learn." in call.name:
            continue
        given = call.argument("model_fn", 0)
        made = source.call(given, call.scope)
        if made is not None:
            continue  # functools.partial, or a builder
        function = context.project.function(given, call.scope, source)
        if function is None or function.node.args.kwarg or function.node.args.vararg:
            continue
        arguments = function.node.args
        every = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        needed = every[: len(every) - len(arguments.defaults)]
        if every[:1] in (["self"], ["cls"]):
            needed = needed[1:]
        unknown = [name for name in needed if name not in _KNOWN]
        if unknown:
            message = (
                f"{function.node.name} takes {', '.join(unknown)}, which Estimator does not give"
            )
            yield Hit(given, message)
        elif "features" not in every:
            yield Hit(given, f"{function.node.name} does not take features")
