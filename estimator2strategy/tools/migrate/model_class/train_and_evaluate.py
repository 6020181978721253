"""`train_and_evaluate`: the specs that it is given, and the calls that take its place."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments

_TRAIN = ("input_fn", "max_steps", "callbacks")
_EVAL = ("input_fn", "steps", "name", "callbacks", "exporters", "start_delay_secs", "throttle_secs")
_STEPS = ast.Constant(100)  # of an EvalSpec that says none


class Specs:
    """The specs of a call of `train_and_evaluate`.

    Args:
        module: The file.
        call: The call.

    Attributes:
        train, evaluation: The arguments of the specs, by name.
        statements: The statements that make the specs.
    """

    def __init__(self, module, call):
        self._module, self._call = module, call
        given = arguments(call.node, ("train_spec", "eval_spec"))
        self.statements = []
        self.train = self._spec(given["train_spec"], _TRAIN)
        self.evaluation = self._spec(given["eval_spec"], _EVAL)
        self.evaluation.setdefault("steps", _STEPS)
        if "exporters" in self.evaluation:
            raise StaysError(call.node, "take the exporters out: export the model after training")

    def _spec(self, node, names):
        if isinstance(node, ast.Name):
            values = self._call.scope.bindings.get(node.id, ())
            value = values[0] if len(values) == 1 else None
            if not isinstance(value, ast.Call):
                raise StaysError(self._call.node, f"make {node.id} in one statement here")
            self.statements.append(value.parent)
            node = value
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("Spec"):
            raise StaysError(self._call.node, "make its specs in statements here")
        return arguments(node, names)

    def is_endless(self):
        """True if the evaluation ends with its data."""
        steps = self.evaluation["steps"]
        return isinstance(steps, ast.Constant) and steps.value is None
