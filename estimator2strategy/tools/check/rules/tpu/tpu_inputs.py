"""Input functions of a TPUEstimator."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import (
    function_of,
    input_functions,
    returned,
)
from estimator2strategy.tools.reader.project import is_tensorflow, is_tf
from estimator2strategy.tools.reader.source import (
    Call,
    Source,
    arguments_of,
    names_in,
    parents,
    walk,
)


def fixed_batch_size(source: Source, context: Context) -> Iterator[Hit]:
    """input_fn of a TPUEstimator that makes batches of a size of its own."""
    if source not in context.project.tpu_sources:
        return
    sizes = {
        ast.unparse(size)
        for call in source.calls
        if (size := call.argument("train_batch_size")) is not None
    }
    per_host = "PER_HOST_V2" not in source.text and "PER_SHARD" not in source.text
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(function_of(definition)):
            continue
        text = ast.unparse(definition.node)
        if "batch_size']" in text or "batch_size" in text.partition("params.")[2]:
            continue
        for call in context.project.calls_of(definition):
            size = call.argument("batch_size", 0)
            if size is not None and per_host and ast.unparse(size) in sizes:
                continue
            if call.last == "batch" and size is not None and _is_fixed(size, call):
                yield Hit(
                    call.node,
                    f"batches of {ast.unparse(size)}, whatever params['batch_size'] says",
                )


def _is_fixed(size: ast.expr, call: Call) -> bool:
    value = call.source.constant(size, call.scope)
    if isinstance(value, int) and value > 1:
        return True
    return isinstance(size, ast.Attribute) and names_in(size) & {"FLAGS", "flags"} != set()


_FIXES_THE_SHAPE = {"batch_and_drop_remainder", "set_shape", "reshape", "trim_and_pad_dataset"}
_BATCH = {"batch": 1, "padded_batch": 3, "map_and_batch": 4}


def no_drop_remainder(source: Source, context: Context) -> Iterator[Hit]:
    """Batches whose size is not fixed, on TPUs."""
    if source not in context.project.tpu_sources:
        return
    used = {call.last for call in source.calls}
    if "predict" in used and not used & {"train", "train_and_evaluate", "TrainSpec"}:
        return
    for definition in input_functions(source, context.project):
        name = f"{definition.scope.name}".lower()
        if "params" not in arguments_of(function_of(definition)) or any(
            word in name for word in ("predict", "eval", "infer", "serving", "test")
        ):
            continue
        calls = context.project.calls_of(definition)
        if any(call.last in _FIXES_THE_SHAPE for call in calls):
            continue
        for call in calls:
            if (
                call.last not in _BATCH
                or call.is_open
                or not (call.node.args or call.node.keywords)
            ):
                continue
            if _is_handed_on(call, calls):
                continue
            given = call.argument("drop_remainder", _BATCH[call.last])
            if given is None or source.constant(given, call.scope) is False:
                yield Hit(call.node, f".{call.last}() without drop_remainder=True feeds a TPU")


def _is_handed_on(batch: Call, calls: list[Call]) -> bool:
    """True if a function that is not TensorFlow's gets the batches, and may give them a shape."""
    statement = next(node for node in parents(batch.node) if isinstance(node, ast.stmt))
    if not isinstance(statement, ast.Assign):
        return False
    targets = {ast.unparse(target) for target in statement.targets}
    return any(
        ast.unparse(argument) in targets
        for call in calls
        if not is_tensorflow(call.name)
        for argument in call.node.args
    )


def padded_to_longest(source: Source, context: Context) -> Iterator[Hit]:
    """padded_batch to the longest example, on TPUs."""
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(function_of(definition)):
            continue
        for call in context.project.calls_of(definition):
            shapes = call.argument("padded_shapes", 1)
            if call.last != "padded_batch" or shapes is None:
                continue
            found = source.assigned(shapes, call.scope)
            if _is_open(found[0] if found else shapes):
                yield Hit(call.node, "padded to the longest example of each batch")


def _is_open(shapes: ast.expr) -> bool:
    for node in walk(shapes):
        if isinstance(node, (ast.List, ast.Tuple)):
            for item in node.elts:
                if isinstance(item, ast.Constant) and item.value is None:
                    return True
                if isinstance(item, ast.UnaryOp) and ast.unparse(item) == "-1":
                    return True
    return False


def python_in_input(source: Source, context: Context) -> Iterator[Hit]:
    """Python functions in the input pipeline of a TPU."""
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        for call in context.project.calls_of(definition):
            if is_tf(call.name, "py_func", "py_function", "numpy_function", "from_generator"):
                yield Hit(call.node, f"{call.name} runs Python in the process of the program")


def iterator(source: Source, context: Context) -> Iterator[Hit]:
    """PER_HOST_V2 with an input_fn that returns tensors."""
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(function_of(definition)):
            continue
        for value in returned(function_of(definition)):
            made = source.call(value, definition.scope)
            if made is not None and made.last == "get_next" and isinstance(value, ast.expr):
                yield Hit(value, f"{definition.node.name} returns tensors, not a Dataset")
