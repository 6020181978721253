"""The sum over the cores of a TPU: `CrossShardOptimizer` around an optimizer, and what Keras has.

Keras's optimizers call their `gradient_aggregator` with the gradients before they apply them.

    wrap = wrap_of(module, call, "optimizer")   # optimizer = CrossShardOptimizer(optimizer)
    yield from wrap.changes(module, "optimizer", "sum_over_cores")
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from estimator2strategy.tools.migrate.change import Change
from estimator2strategy.tools.migrate.module import Module, outermost
from estimator2strategy.tools.reader.source import Call

WRAPPERS = ("tf.tpu.CrossShardOptimizer", "tf.contrib.tpu.CrossShardOptimizer")
SUM, MEAN = "sum_over_cores", "mean_over_cores"
ATTRIBUTE = "gradient_aggregator"
_REDUCTIONS = {"tf.losses.Reduction.MEAN": MEAN, "tf.losses.Reduction.SUM": SUM}
_FUNCTIONS = {
    SUM: '''

def sum_over_cores(gradients):
    """The sum of each gradient over the cores of a TPU, as CrossShardOptimizer took it."""
    return [({tf}.tpu.cross_replica_sum({tf}.convert_to_tensor(gradient)), variable)
            for gradient, variable in gradients]
''',
    MEAN: '''

def mean_over_cores(gradients):
    """The mean of each gradient over the cores of a TPU, as CrossShardOptimizer took it."""
    cores = {tf}.tpu.cross_replica_sum({tf}.ones([]))
    sums = [({tf}.tpu.cross_replica_sum({tf}.convert_to_tensor(gradient)), variable)
            for gradient, variable in gradients]
    return [(total / {tf}.cast(cores, total.dtype), variable) for total, variable in sums]
''',
}


@dataclasses.dataclass(frozen=True)
class Wrap:
    """A call of CrossShardOptimizer around an optimizer.

    Attributes:
        call: The call.
        reduction: `sum_over_cores`, or `mean_over_cores`: the optimizer divided the loss by the
            number of cores. None: the call does not say it so that it can be seen.
        statement: The statement `optimizer = CrossShardOptimizer(optimizer)`; None if the call is
            around the one that makes the optimizer.
    """

    call: Call
    reduction: str | None
    statement: ast.stmt | None

    def is_around(self, use: ast.expr) -> bool:
        """True if a use of the optimizer's name is the argument of this call."""
        return use is self.call.argument("opt", 0)

    def can_change(self, module: Module) -> bool:
        """True if the functions below will be there, and the statement has its lines to itself."""
        alone = self.statement is None or module.is_alone(self.statement)
        return alone and isinstance(outermost(self.call.node), (ast.FunctionDef, ast.ClassDef))

    def changes(self, module: Module, bound: str, function: str) -> Iterator[Change]:
        """The statement that gives the optimizer `bound` its sum, at the same place."""
        if self.statement is not None:
            yield module.replace_statement(self.statement, assigned(bound, function))


def assigned(bound: str, function: str) -> str:
    """The statement that makes an optimizer sum over cores."""
    return f"{bound}.{ATTRIBUTE} = {function}"


def wrap_of(module: Module, call: Call, bound: str) -> Wrap | None:
    """Returns the wrapper of the optimizer that `call` makes and `bound` names, if any."""
    for wrapper in module.calls(*WRAPPERS):
        inner = wrapper.argument("opt", 0)
        if inner is call.node:
            return Wrap(wrapper, _reduction(module, wrapper), None)
        statement = module.statement(wrapper.node)
        if wrapper.scope is call.scope and _assigns_to_itself(statement, wrapper.node, bound):
            return Wrap(wrapper, _reduction(module, wrapper), statement)
    return None


def _reduction(module: Module, wrapper: Call) -> str | None:
    known = {"opt", "reduction", "name"}
    if wrapper.is_open or len(wrapper.node.args) > 2:
        return None
    if any(keyword.arg not in known for keyword in wrapper.node.keywords):
        return None
    given = wrapper.argument("reduction", 1)
    return MEAN if given is None else _REDUCTIONS.get(module.name(given, wrapper.scope) or "")


def _assigns_to_itself(statement: ast.stmt, call: ast.Call, bound: str) -> bool:
    """True if it is `optimizer = CrossShardOptimizer(optimizer)`."""
    return (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and [getattr(target, "id", None) for target in statement.targets] == [bound]
        and any(
            isinstance(given, ast.Name) and given.id == bound
            for given in [*call.args[:1], *(k.value for k in call.keywords if k.arg == "opt")]
        )
    )


def text_of(function: str, tf: str | None) -> str:
    """The text of `sum_over_cores` or `mean_over_cores`, in a file that has TensorFlow as `tf`."""
    return _FUNCTIONS[function].format(tf=tf)


def missing_functions(module: Module) -> Iterator[Change]:
    """The functions that `gradient_aggregator` names, below their first user."""
    for node in ast.walk(module.source.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
            continue
        name, (target, *_) = node.value.id, node.targets
        is_aggregator = isinstance(target, ast.Attribute) and target.attr == ATTRIBUTE
        if is_aggregator and name in _FUNCTIONS and name not in module.source.scope.bindings:
            yield module.append_after(outermost(node), text_of(name, module.tf))
            return  # once, however many there are
