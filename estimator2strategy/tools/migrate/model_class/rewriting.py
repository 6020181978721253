"""Expressions of a model_fn as they are written in a Keras model.

    Rewriter(module, [rule]).text(node)     # the node's text, with what the rules replace

A rule takes a node and the rewriter, and returns a text or None.

    ROWS["tf.concat"].keras       # "concatenate"

A function that is in no row, or has an argument that Keras's lacks, stays TensorFlow's.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.module import Module, legacy_name

_DTYPES = {
    f"tf.{name}": f'"{name}"'
    for name in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")
}


@dataclasses.dataclass(frozen=True)
class OpRow:
    """The function of `keras.ops` that takes the place of one of TensorFlow.

    Attributes:
        keras: Its name.
        arguments: TensorFlow's arguments in their order, as Keras calls them; "name" goes.
        first: How many of them are written without their names.
        by_name: TensorFlow's other names of arguments -> Keras's.
        defaults: What TensorFlow has, and Keras has not, where an argument is left out.
        form: The expression; {} is the call. An argmax has as many bits as TensorFlow's, because
            serving clients read them.
    """

    keras: str
    arguments: tuple[str, ...] = ("x", "name")
    first: int = 1
    by_name: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    form: str = "{}"


ROWS = {
    row["name"]: OpRow(
        row["keras"], codemod_tables.words(row["arguments"]), int(row["first"]),
        codemod_tables.pairs(row["by_name"]), codemod_tables.pairs(row["defaults"]),
        row["form"] or "{}",
    )
    for row in codemod_tables.rows("ops")
}  # fmt: skip
_OPS = {legacy_name(name): row for name, row in ROWS.items()} | ROWS
# How many arguments a function needs that Keras cannot do without.
_WHOLE = {"tf.where": 3}
_KNOWN = {"name", "axis", "keepdims", "dtype"}


def keras_op(node: Any, rewriter: Any) -> Any:
    """The text of a call of TensorFlow's as one of `keras.ops`; None for another one."""
    if not isinstance(node, ast.Call):
        return None
    name = rewriter.called(node)
    row = _OPS.get(name)
    if row is None:
        return None
    given = _given(node, row)
    if given is None or len(given) < _WHOLE.get(name, 1):
        return None
    texts = {one: _text(value, rewriter) for one, value in given.items()}
    texts |= {one: value for one, value in row.defaults if one not in texts}
    first = [texts.pop(one) for one in row.arguments[: row.first] if one in texts]
    if len(first) < row.first:
        return None
    inside = ", ".join([*first, *(f"{one}={value}" for one, value in texts.items())])
    return row.form.format(f"keras.ops.{row.keras}({inside})")


def _given(node: Any, row: Any) -> Any:
    """The arguments of a call by Keras's names; None if Keras's function has not all of them."""
    try:
        by_number = arguments(node, [f"{number}" for number in range(len(row.arguments))])
    except StaysError:
        return None
    others, given = dict(row.by_name), {}
    for position, (one, value) in enumerate(by_number.items()):
        if isinstance(value, ast.Constant) and value.value is None:
            continue
        if one.isdigit():
            known = row.arguments[int(one)]
        elif position < row.first:
            known = row.arguments[position]  # by its name, in its place
        else:
            known = others.get(one, one)
        if known not in row.arguments:
            return None
        if known != "name":
            given[known] = value
    return given


def _text(node: Any, rewriter: Any) -> Any:
    return _DTYPES.get(rewriter.name(node)) or rewriter.text(node)


class StaysError(Exception):
    """A place for which there is no Keras code.

    Attributes:
        node: The place.
        message: What to do, in one sentence.
    """

    def __init__(self, node: Any, message: Any):
        super().__init__(message)
        self.node, self.message = node, message


class Rewriter:
    """Writes nodes with other texts in the place of some.

    Args:
        module: The file.
        rules: Functions of a node and this object that return a text, or None for another rule.
    """

    def __init__(self, module: Module, rules: Any):
        self.module, self.rules = module, rules

    def text(self, node: Any) -> Any:
        """The text of a node."""
        own = self._replaced(node)
        if own is not None:
            return own
        parts: dict[Any, Any] = {}
        self._collect(node, parts)
        return self._module_of(node).written_with(node, parts)

    def _module_of(self, node: Any) -> Any:
        """The file of a node, which may be another's of the program."""
        program = self.module.program
        return (program.module_of(node) if program else None) or self.module

    def _collect(self, node: Any, parts: Any) -> None:
        for child in ast.iter_child_nodes(node):
            new = self._replaced(child) if hasattr(child, "lineno") else None
            if new is None:
                self._collect(child, parts)
            else:
                parts[child] = new

    def _replaced(self, node: Any) -> Any:
        for rule in self.rules:
            text = rule(node, self)
            if text is not None:
                return text
        return None

    def name(self, node: Any) -> Any:
        """The canonical name of an expression, of TensorFlow or of this package."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        module = self._module_of(node)
        name = module.name(node)
        if name is None:
            name = module.source.name(node, module.source.scope_of(node))
        return name

    def called(self, node: Any) -> Any:
        """The name of what a call calls; None for no call."""
        return self.name(node.func) if isinstance(node, ast.Call) else None


def arguments(call: Any, names: Any) -> Any:
    """The arguments of a call by name, in the order in which they are written.

    Raises:
        StaysError: They cannot be seen.
    """
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        raise StaysError(call, "its arguments cannot be told by name: write them out")
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise StaysError(call, "its arguments cannot be told by name: write them out")
        given[keyword.arg] = keyword.value
    return given
