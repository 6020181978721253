"""A model_fn in parts: its forward pass, its loss, its metrics, its optimizer.

    parts = read(module, function, helpers)
    parts.forward      # the statements that compute predictions from features

A statement belongs to the loss if it reads labels, to the optimizer if it reads the global step or
trains, to the metrics if it makes or updates one. All others are of the forward pass."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.model_class import values
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError
from estimator2strategy.tools.migrate.model_class.scopes import scope_of_with
from estimator2strategy.tools.migrate.module import Module, is_docstring


def slice_of(statements: Any, needed: Any, adds: Any) -> Any:
    """Those of the statements that a loss needs, or that do more than assign.

    Args:
        statements: The statements, in order.
        needed: The names that the loss and the summaries read.
        adds: Function of a node; true for a call of tf.losses, which adds to the total loss.
    """
    kept: list[Any] = []
    for statement in reversed(statements):
        is_plain = isinstance(statement, ast.Assign) and not any(map(adds, ast.walk(statement)))
        if not is_plain or writes_of(statement) & needed:
            needed = needed | reads_of(statement)
            kept.insert(0, statement)
    return kept


WEIGHTED_MEAN = '''def weighted_mean(losses, weights):
    """The mean over the losses whose weight is not 0."""
    weights = keras.ops.cast(weights, losses.dtype)
    weights = keras.ops.broadcast_to(weights, keras.ops.shape(losses))
    present = keras.ops.cast(weights != 0, losses.dtype)
    total = keras.ops.sum(losses * weights)
    return keras.ops.divide_no_nan(total, keras.ops.sum(present))
'''
# Functions of tf.losses -> the loss of each element.
_ELEMENTS = {row["name"]: row["element"] for row in codemod_tables.rows("losses") if row["element"]}


def weighted_loss(node: Any, kind: Any, parts: Sequence[str], weights: str) -> str:
    """The text of a weighted loss of the texts of labels and predictions.

    Raises:
        StaysError: There is none for this loss.
    """
    if kind not in _ELEMENTS:
        raise StaysError(node, f"write out what tf.losses.{kind} computes with weights")
    return f"weighted_mean({_ELEMENTS[kind].format(*parts)}, {weights})"


def is_one(node: Any) -> Any:
    """True for weights that are 1."""
    return isinstance(node, ast.Constant) and node.value == 1


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

    def __init__(self, module: Module, function: Any, node: Any):
        self.statements, self.returned, self.given, self.function = [], None, [], None
        self._names = {}
        if node is None:
            return
        node = _value(function, node)
        pair: Any = node.elts if isinstance(node, ast.Tuple) else ()
        given = _value(function, pair[1]) if len(pair) == 2 else None
        if not isinstance(given, (ast.List, ast.Tuple)) or not isinstance(pair[0], ast.Name):
            raise StaysError(node, "write eval_metrics as (metric_fn, [tensors])")
        scope = module.source.scope_of(pair[0]).find(pair[0].id)
        bound: Any = scope.bindings.get(pair[0].id, ()) if scope else ()
        if len(bound) != 1 or not isinstance(bound[0], ast.FunctionDef):
            raise StaysError(node, f"bring {pair[0].id} into this file first")
        (self.function,) = bound
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

    def rule(self, node: Any, rewriter: Any) -> Any:
        """The tensor of the model for an argument of metric_fn."""
        given = self._names.get(node.id) if isinstance(node, ast.Name) else None
        if given is None or (isinstance(given, ast.Name) and given.id == node.id):
            return None
        return rewriter.text(given)


def _value(function: Any, node: Any) -> Any:
    """The value of a name that the function assigns once."""
    if not isinstance(node, ast.Name):
        return node
    assigned = [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
    ]
    return assigned[0] if len(assigned) == 1 else node


MODES = ("train", "eval", "infer")
# The arguments of an EstimatorSpec that a model has a place for, in their order.
SPEC = ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs")
_MAKE_WEIGHTS = (
    *("tf.layers.", "tf.keras.layers.", "tf.contrib.layers.", "tf.contrib.slim."),
    *("tf.get_variable", "tf.Variable", "tf.nn.rnn_cell.", "tf.nn.dynamic_rnn"),
    *("tf.feature_column.input_layer", "tf.feature_column.linear_model"),
)
# What a model_fn may call, besides functions of its own file.
_KNOWN = (
    "tf.",
    "numpy.",
    "builtins.",
    "math.",
    "estimator2strategy.",
    "collections.",
    "functools.",
)


@dataclasses.dataclass
class ModelFnParts:
    """A model_fn in parts; statements are in the order of the file.

    Attributes:
        modes: Statement -> the modes that run it.
        flags: Names that say if the model trains.
        specs: Mode -> the spec's call.
        own_scope: The node that names the scope that all statements are in, if there is one.
    """

    forward: list[Any] = dataclasses.field(default_factory=list)
    loss: list[Any] = dataclasses.field(default_factory=list)
    metrics: list[Any] = dataclasses.field(default_factory=list)
    optimizer: list[Any] = dataclasses.field(default_factory=list)
    summaries: list[Any] = dataclasses.field(default_factory=list)
    modes: dict[Any, Any] = dataclasses.field(default_factory=dict)
    flags: dict[Any, Any] = dataclasses.field(default_factory=dict)
    specs: dict[Any, Any] = dataclasses.field(default_factory=dict)
    own_scope: ast.expr | None = None


class _Reader:
    def __init__(self, module: Module, function: Any, helpers: Any):
        self.module, self.function, self.helpers = module, function, helpers
        self.parts = ModelFnParts()
        self.rewriter = Rewriter(module, ())

    def read(self) -> Any:
        self._check_others()
        order: dict[Any, Any] = {}
        for mode in MODES:
            with contextlib.suppress(_ReturnedError):
                self._flatten(self.function.body, mode, order)
        self._classify(sorted(order, key=lambda s: (s.lineno, s.col_offset)))
        return self.parts

    def _check_others(self) -> None:
        """Raises StaysError for layers and code elsewhere, which a model would not know."""
        functions = (self.function, *self.helpers.functions())
        inside = {node for function in functions for node in ast.walk(function)}
        program = self.module.program
        for module in dict.fromkeys(map(program.module_of, functions)):
            for call in module.source.calls:
                name = module.source.name(call.node.func, call.scope) or ""
                if call.node not in inside:
                    if makes_weights(name) and module is self.module:
                        raise StaysError(call.node, "bring this layer into the model_fn first")
                elif name and not name.startswith(_KNOWN) and not self._is_function(call.node):
                    what = name.rpartition("::")[2]
                    raise StaysError(call.node, f"bring what {what} does into this file first")

    def _is_function(self, call: Any) -> bool:
        """True for the call of a function of the program."""
        return isinstance(self.module.program.defined(call.func), ast.FunctionDef)

    # The statements of a mode.

    def _flatten(self, body: Any, mode: Any, order: Any) -> None:
        for statement in body:
            if isinstance(statement, ast.If) and self._asks_for_mode(statement.test):
                taken = self._value(statement.test, mode)
                self._flatten(statement.body if taken else statement.orelse, mode, order)
            elif isinstance(statement, ast.With):
                for item in statement.items:
                    scope_of_with(self.module, statement, item)
                self._flatten(statement.body, mode, order)
            elif isinstance(statement, ast.Return):
                spec = statement.value
                if not isinstance(spec, ast.Call) or not _last(spec).endswith("EstimatorSpec"):
                    raise StaysError(statement, "return an EstimatorSpec here, made in the return")
                self._check(spec)
                self.parts.specs[mode] = spec
                raise _ReturnedError
            elif self._flag(statement) is not None:
                self.parts.flags[statement.targets[0].id] = statement.value
            elif not isinstance(statement, (ast.Pass, ast.Assert, ast.Delete)) and not (
                isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            ):
                order[statement] = None
                self.parts.modes.setdefault(statement, set()).add(mode)

    def _check(self, spec: Any) -> None:
        """Raises StaysError for what a model has not."""
        for keyword in spec.keywords:
            if keyword.arg not in (*SPEC, "eval_metrics"):
                what = keyword.arg or "**"
                raise StaysError(spec, f"a Keras model has nothing for {what} of a spec")

    def _flag(self, statement: Any) -> Any:
        """The value of `training = mode == TRAIN`."""
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = statement.value
            if isinstance(value, (ast.Compare, ast.BoolOp)) and self._asks_for_mode(value):
                return value
        return None

    def _asks_for_mode(self, node: Any) -> bool:
        return any(self._is_mode(n) or self._is_flag(n) for n in ast.walk(node))

    def _is_mode(self, node: Any) -> Any:
        return isinstance(node, (ast.Attribute, ast.Name)) and (
            self.rewriter.name(node) in values.MODES
        )

    def _is_flag(self, node: Any) -> Any:
        return isinstance(node, ast.Name) and node.id in self.parts.flags

    def _value(self, node: Any, mode: Any) -> Any:
        """The value of a test in a mode."""
        if isinstance(node, ast.BoolOp):
            sides = [self._value(value, mode) for value in node.values]
            return all(sides) if isinstance(node.op, ast.And) else any(sides)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._value(node.operand, mode)
        if self._is_flag(node):
            return self._value(self.parts.flags[node.id], mode)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            (other,) = node.comparators
            asked = other if self._is_mode(other) else node.left
            if self._is_mode(asked):
                is_equal = values.MODES[self.rewriter.name(asked)] == mode
                if isinstance(node.ops[0], ast.Eq):
                    return is_equal
                if isinstance(node.ops[0], ast.NotEq):
                    return not is_equal
            if isinstance(node.ops[0], ast.In) and isinstance(other, (ast.Tuple, ast.List)):
                return mode in {values.MODES.get(self.rewriter.name(one)) for one in other.elts}
        raise StaysError(node, "ask for the mode alone here: mode == ModeKeys.TRAIN, say")

    # The part that a statement belongs to.

    def _classify(self, statements: Any) -> None:
        of_labels = {"labels"}
        of_training: set[Any] = set()
        of_metrics: set[Any] = set()
        for statement in statements:
            reads, writes = reads_of(statement), writes_of(statement)
            called = set(self._called(statement))
            if self._is_summary(statement):
                self.parts.summaries.append(statement)
            elif any("export.PredictOutput" in n for n in called) or _collects_updates(statement):
                continue
            elif reads & of_training or any(map(_trains, called)):
                of_training |= writes
                self.parts.optimizer.append(statement)
            elif reads & of_metrics or any(map(_counts, called)):
                of_metrics |= writes
                self.parts.metrics.append(statement)
            elif (
                reads & of_labels
                or any(name.startswith("tf.losses.") for name in called)
                or self._is_not_served(statement)
            ):
                of_labels |= writes
                self.parts.loss.append(statement)
            else:
                self.parts.forward.append(statement)

    def _is_not_served(self, statement: Any) -> Any:
        """True for a statement that a prediction leaves out, and that makes no layer."""
        is_evaluated = "eval" in self.parts.modes[statement]
        is_served = "infer" in self.parts.modes[statement] or "infer" not in self.parts.specs
        calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
        makes = any(self.helpers.makes_weights(call) for call in calls)
        return is_evaluated and not is_served and not makes

    def _called(self, statement: Any) -> Iterator[Any]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield self.rewriter.called(node) or ""

    def _is_summary(self, statement: Any) -> Any:
        is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        return is_call and (self.rewriter.called(statement.value) or "").startswith("tf.summary.")


class _ReturnedError(Exception):
    """The mode's spec was returned."""


def read(module: Module, function: Any, helpers: Any) -> Any:
    """The parts of a model_fn.

    Args:
        module, function: The model_fn.
        helpers: The functions that make layers for it, a `Helpers`.

    Raises:
        StaysError: It is written in a way that is not understood.
    """
    return _Reader(module, function, helpers).read()


def makes_weights(name: Any) -> Any:
    """True for the name of a function that makes layers or variables."""
    return name.startswith(_MAKE_WEIGHTS) and not name.endswith(("regularizer", "initializer"))


def reads_of(node: Any) -> Any:
    """The names that a node reads."""
    loads = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in loads if isinstance(n.ctx, ast.Load)}


def names_in(line: Any) -> Any:
    """The names that a line of code reads."""
    text = line.strip()
    if text.startswith("#"):
        return set()
    text = {"else:": "pass"}.get(text, text)
    try:
        return reads_of(ast.parse(f"{text} pass" if text.endswith(":") else text))
    except SyntaxError:  # a part of a compound statement
        return set(re.findall(r"[a-zA-Z_]\w*", text))


def writes_of(node: Any) -> Any:
    """The names that a statement assigns, also the entries of."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_stored(n)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            names |= {n.id for n in ast.walk(inner.value) if isinstance(n, ast.Name)}
    return names


def _is_stored(node: Any) -> bool:
    return isinstance(node.ctx, ast.Store)


def _trains(name: Any) -> Any:
    return name in values.STEPS or name.startswith(
        ("tf.keras.optimizers.", "tf.train.", "tf.gradients", "tf.trainable_variables")
    )


def _collects_updates(statement: Any) -> bool:
    """True for `tf.get_collection(tf.GraphKeys.UPDATE_OPS)`: layers of Keras update themselves."""
    return any(isinstance(n, ast.Attribute) and n.attr == "UPDATE_OPS" for n in ast.walk(statement))


def _counts(name: Any) -> Any:
    return name.startswith(("tf.keras.metrics.", "tf.metrics."))


def _last(call: Any) -> Any:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
