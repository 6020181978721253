"""Python functions in the input pipeline of a TPU."""

from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        for call in context.project.calls_of(definition):
            if is_tf(call.name, "py_func", "py_function", "numpy_function", "from_generator"):
                yield Hit(call.node, f"{call.name} runs Python in the process of the program")
