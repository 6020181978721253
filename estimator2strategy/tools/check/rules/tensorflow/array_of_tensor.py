"""NumPy functions that are given a tensor of a graph."""

from estimator2strategy.tools.check.rule import Hit

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


def find(source, context):
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


def _says(sources, words):
    return any(word in source.text for source in sources for word in words)
