"""A host_call that writes summaries becomes the summaries of the model_fn itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.python_files import comments

_SPECS = ("tf.estimator.tpu.TPUEstimatorSpec", "tf.contrib.tpu.TPUEstimatorSpec")
_MODULES = ("tf.contrib.summary.", "tf.summary.", "tf.compat.v2.summary.")
_KINDS = ("scalar", "histogram", "image", "audio", "text")
_WRITERS = ("as_default", "always_record_summaries", "record_summaries_every_n_global_steps")
_GIVE_BATCHES = ("tf.reshape", "tf.expand_dims")
_STAYS = "write what this host_call does in a callback: fit has no host_call"


@codemod("host-call-to-summaries", stage=7, tier=SafetyTier.REVIEW, words=("host_call",))
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls(*_SPECS):
        if call.argument("host_call") is None:
            continue
        changes = _HostCall(module, call).changes()
        if changes is None:
            yield Todo(call.node, _STAYS)
        else:
            yield from changes


class _HostCall:
    """The host_call of a spec.

    Args:
        module: The file.
        call: The call that makes the spec.
    """

    def __init__(self, module: Module, call: Any):
        self._module, self._call = module, call
        self._given: dict[Any, Any] = {}

    def changes(self) -> Any:
        """The changes that write its summaries in the model_fn; None if it does more."""
        host, statement = self._assigned(self._call.argument("host_call"))
        if statement is None or not isinstance(host, ast.Tuple) or len(host.elts) != 2:
            return None
        function, given = self._function(host.elts[0]), host.elts[1]
        if function is None or not isinstance(given, (ast.List, ast.Tuple)):
            return None
        if len(given.elts) != len(function.args.args):
            return None
        names = (argument.arg for argument in function.args.args)
        self._given = dict(zip(names, map(self._tensor, given.elts), strict=True))
        lines = self._lines(function.body)
        if not lines:
            return None
        module = self._module
        gone = [function, *self._only_for(host, given.elts)]
        return [
            module.replace_statement(
                statement, "\n".join([*self._comments(function), *lines]), is_dedented=True
            ),
            module.replace(self._call.node, self._without_host_call()),
            *(module.replace_statement(one, "") for one in gone),
        ]

    def _comments(self, function: Any) -> Iterator[Any]:
        """The comments of the function, which goes."""
        lines, first = self._module.lines, function.lineno - 1
        first -= len(self._module.comments_above(function))
        for number in sorted(comments(self._module.text)):
            if first < number <= function.end_lineno:
                _, _, text = lines[number - 1].rpartition("# ")
                yield f"# {text.strip()}"

    def _assigned(self, node: Any) -> Any:
        """The value of a name that is assigned once in the function, and the statement."""
        if not isinstance(node, ast.Name):
            return node, None
        values = self._call.scope.bindings.get(node.id, ())
        if len(values) != 1 or not isinstance(getattr(values[0], "parent", None), ast.Assign):
            return node, None
        return values[0], values[0].parent

    def _function(self, node: Any) -> Any:
        """The function that is given, if nothing else uses it."""
        if not isinstance(node, ast.Name):
            return None
        scope = self._call.scope.find(node.id)
        values: Any = scope.bindings.get(node.id, ()) if scope else ()
        chains = self._module.source.chains
        uses = [n for n, _ in chains if isinstance(n, ast.Name) and n.id == node.id]
        is_one = len(values) == 1 and isinstance(values[0], ast.FunctionDef) and len(uses) == 1
        return values[0] if is_one else None

    def _tensor(self, node: Any) -> Any:
        """The tensor of which an argument is: `loss` for `tf.reshape(loss, [1])`."""
        value, _ = self._assigned(node)
        if isinstance(value, ast.Call) and self._name(value) in _GIVE_BATCHES:
            return value.args[0]
        return node

    def _name(self, call: Any) -> Any:
        return self._module.name(call.func) or ""

    def _lines(self, statements: Any) -> Any:
        """The summaries that statements write; None if they do more."""
        written = []
        for one in statements:
            if isinstance(one, ast.With) and all(map(self._is_writer, one.items)):
                inner = self._lines(one.body)
                if inner is None:
                    return None
                written += inner
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                taken = self._taken(one.value)
                if taken is None:
                    return None
                self._given[one.targets[0].id] = taken
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
                line = self._summary(one.value)
                if line is None:
                    return None
                written.append(line)
            elif not isinstance(one, (ast.Return, ast.Expr)):
                return None
        return written

    def _is_writer(self, item: Any) -> Any:
        call = item.context_expr
        function = getattr(call, "func", None)
        return getattr(function, "attr", None) in _WRITERS

    def _summary(self, call: Any) -> Any:
        """`tf.summary.scalar(name, tensor)`, for that of tf.contrib; None for another call."""
        name = self._name(call)
        kind = name.rpartition(".")[2]
        if not name.startswith(_MODULES) or kind not in _KINDS or len(call.args) < 2:
            return None
        tensor = self._taken(call.args[1])
        if tensor is None:
            return None
        module = self._module
        return (
            f"{module.tf}.summary.{kind}({module.written(call.args[0])}, {module.written(tensor)})"
        )

    def _taken(self, node: Any) -> Any:
        """The tensor for an argument, for the first of it, and for its mean over the cores."""
        if isinstance(node, ast.Call) and self._name(node) == "tf.reduce_mean":
            node = node.args[0]
        if isinstance(node, ast.Subscript) and getattr(node.slice, "value", None) == 0:
            node = node.value
        return self._given.get(node.id) if isinstance(node, ast.Name) else None

    def _only_for(self, host: Any, given: Any) -> Iterator[Any]:
        """The statements that make what the host_call alone reads."""
        for node in given:
            _, statement = self._assigned(node)
            nodes = ast.walk(self._call.scope.function)
            reads = [
                n
                for n in nodes
                if isinstance(n, ast.Name) and n.id == getattr(node, "id", None)
                and isinstance(n.ctx, ast.Load)
            ]  # fmt: skip
            if statement is not None and reads == [node]:
                yield statement

    def _without_host_call(self) -> str:
        node, module = self._call.node, self._module
        texts = [module.written(one) for one in node.args]
        texts += [
            f"{keyword.arg}={module.written(keyword.value)}"
            for keyword in node.keywords
            if keyword.arg != "host_call"
        ]
        return f"{module.written(node.func)}({', '.join(texts)})"
