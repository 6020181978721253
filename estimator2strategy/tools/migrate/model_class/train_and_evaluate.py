"""`train_and_evaluate`: the specs that it is given, and the calls that take its place."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments

_TRAIN = ("input_fn", "max_steps", "callbacks")
_EVAL = ("input_fn", "steps", "name", "callbacks", "exporters", "start_delay_secs", "throttle_secs")
_EXPORTERS = {
    "LatestExporter": ("name", "receiver", "assets_extra", "as_text", "exports_to_keep"),
    "FinalExporter": ("name", "receiver", "assets_extra", "as_text"),
    "BestExporter": ("name", "receiver", "event_file_pattern", "compare_fn", "assets_extra"),
}
_OF_EXPORTERS = {"name", "receiver", "exports_to_keep", "event_file_pattern"}
_STEPS = ast.Constant(100)  # of an EvalSpec that says none


class Specs:
    """The specs of a call of `train_and_evaluate`.

    Args:
        module: The file.
        call: The call.

    Attributes:
        train, evaluation: The arguments of the specs, by name.
        exporters: (kind, node of the name or None, node that names the serving function) of each.
        statements: The statements that make the specs and exporters.
    """

    def __init__(self, module, call):
        self._module, self._call = module, call
        given = arguments(call.node, ("train_spec", "eval_spec"))
        self.statements = []
        self.train = self._spec(given["train_spec"], _TRAIN)
        self.evaluation = self._spec(given["eval_spec"], _EVAL)
        self.evaluation.setdefault("steps", _STEPS)
        self.exporters = [self._exporter(one) for one in self._listed()]

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

    def _listed(self):
        """The nodes of the exporters."""
        node = self._value(self.evaluation.get("exporters"))
        if node is None or getattr(node, "value", self) is None:
            return []
        return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]

    def _value(self, node):
        """The value that a name is assigned, whose statement goes; another node as it is."""
        values = self._call.scope.bindings.get(getattr(node, "id", None), ())
        if len(values) != 1 or not isinstance(values[0], ast.expr):
            return node
        if values[0].parent not in self.statements:
            self.statements.append(values[0].parent)
        return values[0]

    def _exporter(self, node):
        call = self._value(node)
        kind = ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if kind not in _EXPORTERS:
            raise StaysError(self._call.node, "make its exporters in statements here")
        given = arguments(call, _EXPORTERS[kind])
        if "serving_input_receiver_fn" in given:
            given["receiver"] = given.pop("serving_input_receiver_fn")
        odd = set(given) - _OF_EXPORTERS
        if odd:
            raise StaysError(call, f"an export of Keras has nothing for {min(odd)}")
        if "receiver" not in given:
            raise StaysError(call, "give this exporter a serving_input_receiver_fn")
        return kind, given.get("name"), given["receiver"]

    def is_endless(self):
        """True if the evaluation ends with its data."""
        steps = self.evaluation["steps"]
        return isinstance(steps, ast.Constant) and steps.value is None
