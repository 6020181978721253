"""`tf.to_float` and its kin."""

import dataclasses

from estimator2strategy.tools.migrate.call_text import ArgumentText, CallText
from estimator2strategy.tools.migrate.codemod import (
    Change,
    SafetyTier,
    codemod,
)

_DTYPES = {
    "tf.to_bfloat16": "bfloat16",
    "tf.to_complex128": "complex128",
    "tf.to_complex64": "complex64",
    "tf.to_double": "float64",
    "tf.to_float": "float32",
    "tf.to_int32": "int32",
    "tf.to_int64": "int64",
}


@codemod(
    "casts",
    stage=2,
    tier=SafetyTier.SAFE,
    words=("to_",),
    title="`tf.to_float(x)` to `tf.cast(x, tf.float32)`",
    why="TensorFlow 2 has tf.cast alone. The op is then called Cast, and not ToFloat.",
    proof="The old functions call tf.cast; tests/tools/migrate/test_parity.py runs both.",
)
def find(module):
    if module.tf is None:
        return
    for call in module.calls(*_DTYPES):
        x = call.argument("x", 0)
        if x is None or call.is_open:
            continue
        old = CallText(module, call.node)
        if old.arguments[0].name not in (None, "x"):
            continue
        dtype = _DTYPES[module.name(call.node.func, call.scope)]
        arguments = _with_dtype(old.arguments, f"{module.tf}.{dtype}")
        yield Change(*old.span, old.text(f"{module.tf}.cast", arguments))


def _with_dtype(arguments, dtype):
    """The arguments with a dtype as the second one."""
    x, *rest = arguments
    name, between = ("dtype", x.between) if x.name else (None, "")
    given = ArgumentText(name, dtype, between, x.gap)
    if rest:
        rest[0] = rest[0].named("name")
    return [dataclasses.replace(x, gap=", "), given, *rest]
