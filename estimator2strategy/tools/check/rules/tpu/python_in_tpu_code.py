"""Python functions in model code for TPUs."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "py_func", "py_function", "numpy_function"):
            yield Hit(call.node, f"{call.name} is called where the TPU computes")
