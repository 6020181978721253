"""The metric_fn of `eval_metrics=(metric_fn, [labels, logits])`, as statements of the model."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError
from estimator2strategy.tools.migrate.module import is_docstring


class EvalMetrics:
    """A metric_fn, and what it is given.

    Args:
        module: The file.
        function: The model_fn.
        node: The argument `eval_metrics`; None for a spec without it.

    Attributes:
        statements: The statements of metric_fn, without its return.
        returned: The dict that it returns; None without eval_metrics.
        given: The nodes that it is given.
        function: Its definition.
    """

    def __init__(self, module, function, node):
        self.statements, self.returned, self.given, self.function = [], None, [], None
        self._names = {}
        if node is None:
            return
        node = _value(function, node)
        pair = node.elts if isinstance(node, ast.Tuple) else ()
        given = _value(function, pair[1]) if len(pair) == 2 else None
        if not isinstance(given, (ast.List, ast.Tuple)) or not isinstance(pair[0], ast.Name):
            raise StaysError(node, "write eval_metrics as (metric_fn, [tensors])")
        scope = module.source.scope_of(pair[0]).find(pair[0].id)
        found = scope.bindings.get(pair[0].id, ()) if scope else ()
        if len(found) != 1 or not isinstance(found[0], ast.FunctionDef):
            raise StaysError(node, f"bring {pair[0].id} into this file first")
        (self.function,) = found
        names = [argument.arg for argument in self.function.args.args]
        if len(names) != len(given.elts):
            raise StaysError(node, f"give {pair[0].id} each argument in the list")
        self.given = given.elts
        self._names = dict(zip(names, given.elts, strict=True))
        *statements, last = [s for s in self.function.body if not is_docstring(s)]
        self.returned = last.value if isinstance(last, ast.Return) else None
        if not isinstance(self.returned, ast.Dict):
            raise StaysError(last, "return the metrics as a dict")
        self.statements = statements

    def rule(self, node, rewriter):
        """The tensor of the model for an argument of metric_fn."""
        given = self._names.get(node.id) if isinstance(node, ast.Name) else None
        if given is None or (isinstance(given, ast.Name) and given.id == node.id):
            return None
        return rewriter.text(given)


def _value(function, node):
    """The value of a name that the function assigns once."""
    if not isinstance(node, ast.Name):
        return node
    found = [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
    ]
    return found[0] if len(found) == 1 else node
