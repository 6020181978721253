"""Sessions inside of model_fn or input_fn."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import input_functions
from estimator2strategy.tools.reader.project import is_tf


def find(source, context):
    project = context.project
    functions = [m.definition for m in project.model_functions if m.source is source]
    for definition in (*functions, *input_functions(source, project)):
        for call in project.calls_of(definition):
            if is_tf(call.name, "Session", "InteractiveSession") and call.name.count(".") == 1:
                yield Hit(call.node, f"a Session in {definition.node.name}")
