"""float64 on TPUs."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit

_FLOAT64 = ("float64", "double", "complex128")


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
