"""`tf.to_float` and its kin."""

import libcst as cst

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
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


@codemod(
    "casts",
    stage=2,
    tier=SafetyTier.SAFE,
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
        old = module.cst(call.node)
        if old.args[0].keyword is not None and old.args[0].keyword.value != "x":
            continue
        dtype = _DTYPES[module.name(call.node.func, call.scope)]
        yield Change(old, _cast(old, f"{module.tf}.cast", f"{module.tf}.{dtype}"))


def _cast(call, function, dtype):
    """The call of another function, with a dtype as its second argument."""
    x, *rest = call.args
    given = cst.Arg(cst.parse_expression(dtype), comma=x.comma)
    if x.keyword is not None:
        given = given.with_changes(keyword=cst.Name("dtype"), equal=x.equal)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if rest and rest[0].keyword is None:
        rest = [rest[0].with_changes(keyword=cst.Name("name"), equal=_EQUAL), *rest[1:]]
    arguments = [x.with_changes(comma=comma), given, *rest]
    return call.with_changes(func=cst.parse_expression(function), args=arguments)
