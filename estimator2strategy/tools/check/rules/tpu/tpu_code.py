"""Calls where a TPU computes: in a model_fn, and in all that it calls there."""

import ast
import re
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf
from estimator2strategy.tools.reader.source import Call, Source, parents


def python(source: Source, context: Context) -> Iterator[Hit]:
    """Python functions in model code for TPUs."""
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "py_func", "py_function", "numpy_function"):
            yield Hit(call.node, f"{call.name} is called where the TPU computes")


# Name, or the beginning of names that ends in "." -> what it is.
_HOST_ONLY = {
    "tf.Print": "prints on the host",
    "tf.print": "prints on the host",
    "tf.string_split": "works on strings",
    "tf.string_join": "works on strings",
    "tf.string_to_number": "works on strings",
    "tf.string_to_hash_bucket_fast": "works on strings",
    "tf.string_to_hash_bucket_strong": "works on strings",
    "tf.as_string": "makes strings",
    "tf.regex_replace": "works on strings",
    "tf.substr": "works on strings",
    "tf.strings.": "works on strings",
    "tf.decode_raw": "reads bytes",
    "tf.io.decode_raw": "reads bytes",
    "tf.decode_csv": "reads bytes",
    "tf.parse_single_example": "reads bytes",
    "tf.parse_example": "reads bytes",
    "tf.io.parse_single_example": "reads bytes",
    "tf.io.parse_example": "reads bytes",
    "tf.read_file": "reads files",
    "tf.io.read_file": "reads files",
    "tf.write_file": "writes files",
    "tf.image.decode_jpeg": "decodes images",
    "tf.image.decode_png": "decodes images",
    "tf.image.decode_image": "decodes images",
    "tf.image.decode_gif": "decodes images",
    "tf.image.encode_jpeg": "encodes images",
    "tf.image.encode_png": "encodes images",
    "tf.io.decode_jpeg": "decodes images",
    "tf.io.decode_png": "decodes images",
    "tf.io.decode_image": "decodes images",
    "tf.contrib.lookup.": "looks up in a table of the host",
    "tf.lookup.": "looks up in a table of the host",
    "tf.edit_distance": "works on sparse tensors",
    "tf.nn.ctc_beam_search_decoder": "works on sparse tensors",
    "tf.nn.ctc_greedy_decoder": "works on sparse tensors",
}


def of_host(source: Source, context: Context) -> Iterator[Hit]:
    """Ops without a kernel for TPUs, in model code."""
    for call in context.project.tpu_code.get(source, ()):
        what = _host_only(call.name)
        if what:
            yield Hit(call.node, f"{call.name} {what}, and is called where the TPU computes")


def _host_only(name: str | None) -> str | None:
    if name is None:
        return None
    if name in _HOST_ONLY:
        return _HOST_ONLY[name]
    return next((w for p, w in _HOST_ONLY.items() if p.endswith(".") and name.startswith(p)), None)


_NOT_NONE = re.compile(r"\w+ is not None")

_INSTEAD = {
    "tf.boolean_mask": "Multiply by the mask, or use it as weights.",
    "tf.unique": "Keep duplicates, and weigh them.",
    "tf.unique_with_counts": "Keep duplicates, and weigh them.",
    "tf.setdiff1d": "Use a mask.",
    "tf.dynamic_partition": "Use a mask for each part.",
    "tf.sparse_to_dense": "Use tf.one_hot or tf.scatter_nd with a fixed shape.",
    "tf.image.non_max_suppression": "Use tf.image.non_max_suppression_padded.",
    "tf.where": "Give both values: tf.where(condition, x, y).",
}


def dynamic_shape(source: Source, context: Context) -> Iterator[Hit]:
    """Ops whose result has a size that depends on values."""
    for call in context.project.tpu_code.get(source, ()):
        if call.name not in _INSTEAD:
            continue
        if call.name == "tf.where" and (
            call.is_open or call.argument("x", 1) is not None or call.argument("name") is not None
        ):
            continue
        if _is_optional(call):
            continue
        message = f"the size of what {call.name} gives depends on values"
        yield Hit(call.node, message, fix=_INSTEAD[call.name])


def _is_optional(call: Call) -> bool:
    """True under `if x is not None`, where the function itself may have set x to None.

    Layers of Transformers remove padding in this way, and programs switch it off for TPUs.
    """
    for outer in parents(call.node):
        if outer is call.scope.function:
            return False
        if isinstance(outer, ast.If) and _NOT_NONE.fullmatch(ast.unparse(outer.test)):
            name = ast.unparse(outer.test).partition(" ")[0]
            where = call.scope.find(name)
            if where is not None and any(map(_may_be_none, where.bindings[name])):
                return True
    return False


def _may_be_none(value: object) -> bool:
    """True for `None if ... else x`, or the other way round."""
    arms = (value.body, value.orelse) if isinstance(value, ast.IfExp) else ()
    return any(isinstance(arm, ast.Constant) and arm.value is None for arm in arms)


_FLOAT64 = ("float64", "double", "complex128")


def float64(source: Source, context: Context) -> Iterator[Hit]:
    """float64 on TPUs."""
    for call in context.project.tpu_code.get(source, ()):
        if not call.name or not call.name.startswith("tf."):
            continue
        if call.name == "tf.to_double":
            yield Hit(call.node, "tf.to_double makes float64 where the TPU computes")
            continue
        given = [*call.node.args, *(k.value for k in call.node.keywords if k.arg == "dtype")]
        for argument in given:
            if is_tf(source.name(argument, call.scope), *_FLOAT64):
                yield Hit(argument, f"{call.name} makes float64 where the TPU computes")


def unbounded_loop(source: Source, context: Context) -> Iterator[Hit]:
    """while_loop without a bound."""
    for call in context.project.tpu_code.get(source, ()):
        if call.name != "tf.while_loop" or call.is_open:
            continue
        if call.argument("maximum_iterations", 8) is None:
            yield Hit(call.node, "a loop without maximum_iterations has no gradient on a TPU")


def clipped(source: Source, context: Context) -> Iterator[Hit]:
    """Gradient clipping before the sum over the cores."""
    if "CrossShardOptimizer" not in source.text:
        return  # what sums there may sum before it is clipped, as Horovod does
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "clip_by_global_norm"):
            yield Hit(call.node, "clips each core's own gradients")
