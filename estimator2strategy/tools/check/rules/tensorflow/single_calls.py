"""Single calls: NumPy given a tensor, a gradient registered twice, a switch of the process."""

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses
from estimator2strategy.tools.reader.source import Source, parents

# Functions of NumPy that make an array of their first argument.
_FUNCTIONS = {
    f"numpy.{name}"
    for name in (
        "abs", "absolute", "array", "asarray", "ceil", "clip", "exp", "floor", "log", "log10",
        "log1p", "log2", "max", "mean", "min", "prod", "round", "sign", "sqrt", "square", "sum",
        "tanh",
    )
}  # fmt: skip
# Functions of TensorFlow that return one tensor, whatever they are given.
_TENSORS = {
    f"tf.{name}"
    for name in (
        "abs", "argmax", "cast", "concat", "constant", "exp", "expand_dims", "gather", "log",
        "matmul", "multiply", "nn.relu", "nn.sigmoid", "nn.softmax", "one_hot", "ones", "pad",
        "placeholder", "range", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "reshape",
        "sigmoid", "sqrt", "square", "squeeze", "stack", "subtract", "tanh", "tile", "to_float",
        "to_int32", "transpose", "zeros",
    )
}  # fmt: skip
# Words of programs, and of files, in which tensors may have values.
_EAGER = ("eager", "enable_v2")
_EAGER_HERE = ("py_function", ".numpy()")


def array_of_tensor(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    if "numpy" not in source.modules or context.runs_on_tensorflow2(source):
        return
    if source not in project.estimator_sources or _says(project.sources, _EAGER):
        return
    eager = [other for other in project.sources if _says([other], _EAGER_HERE)]
    for call in source.calls:
        if call.name not in _FUNCTIONS or not call.node.args or source in eager:
            continue
        function = getattr(call.scope.function, "name", None)
        made = source.calls_behind(call.node.args[0], call.scope)
        if function is None or _says(eager, [function]):
            continue
        if made and all(other.name in _TENSORS for other in made):
            what = made[0].name
            yield Hit(call.node, f"{call.name} makes no array of the tensor of {what}")


def _says(sources: Iterable[Source], words: Iterable[str]) -> bool:
    return any(word in source.text for source in sources for word in words)


_SWITCHES = {
    "tf.disable_v2_behavior",
    "tf.disable_eager_execution",
    "tf.disable_resource_variables",
    "tf.disable_control_flow_v2",
    "tf.disable_v2_tensorshape",
    "tf.disable_tensor_equality",
}


def behaviour_switch(source: Source, context: Context) -> Iterator[Hit]:
    if "estimator2strategy" not in source.modules:
        return
    for call in source.calls:
        if call.name in _SWITCHES:
            raw = source.resolve(call.node.func, call.scope)
            if symbol_uses.flavour(raw) is not symbol_uses.Flavour.FACADE:
                yield Hit(call.node, f"{call.last} changes the whole process")


_REGISTER = ("tf.RegisterGradient", "tf.python.framework.ops.RegisterGradient")
_TABLE = Path(__file__).parents[4] / "tf1/facade/gradients.txt"


def taken_gradient(source: Source, context: Context) -> Iterator[Hit]:
    seen = set()
    for call in source.calls:
        name = call.argument("op_type", 0)
        if call.name not in _REGISTER or not isinstance(name, ast.Constant):
            continue
        if any(isinstance(outer, (ast.Try, ast.If)) for outer in parents(call.node)):
            continue  # it may ask first
        if name.value in _of_tf115():
            yield Hit(call.node, f"TensorFlow registers the gradient of {name.value!r} itself")
        elif name.value in seen and _runs_once(call.node):
            yield Hit(call.node, f"a gradient {name.value!r} is registered in this file already")
        if _runs_once(call.node):
            seen.add(name.value)


def _runs_once(node: ast.AST) -> bool:
    """True for the decorator of a function of the module."""
    outer = list(parents(node))
    return len(outer) == 2 and isinstance(outer[0], ast.FunctionDef)


@functools.cache
def _of_tf115() -> frozenset[str]:
    return frozenset(_TABLE.read_text().split())
