"""Transformations of `tf.contrib.data` to methods of the dataset."""

import ast

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod
from estimator2strategy.tools.migrate.module import legacy_name

# Each takes the arguments of the method by the same names, at the same places.
METHODS = {
    "tf.contrib.data.batch_and_drop_remainder": "batch",
    "tf.contrib.data.padded_batch_and_drop_remainder": "padded_batch",
}


@codemod(
    "contrib-datasets",
    stage=2,
    tier=SafetyTier.SAFE,
    words=("apply",),
    title="`d.apply(tf.contrib.data.batch_and_drop_remainder(n))` to "
    "`d.batch(n, drop_remainder=True)`",
    why="`tf.contrib.data` had the two before `batch` and `padded_batch` took `drop_remainder`. "
    "A transformation that is made elsewhere than in the call of `apply` stays, and works.",
    proof="The same batches (tests/tools/migrate/test_proofs.py).",
)
def find(module):
    for made in module.calls(*METHODS):
        applied = made.node.parent
        if made.is_open or not _is_only_argument_of_apply(made.node, applied):
            continue
        given = module.written(made.node)[len(module.written(made.node.func)) :]
        if "#" in given:  # a comment at the end of the arguments would hide the next one
            continue
        method = METHODS[legacy_name(made.name)]
        called = module.written(applied.func).removesuffix("apply") + method
        arguments = given.strip()[1:-1].rstrip().removesuffix(",") + ", drop_remainder=True"
        written = module.written_with(applied, {applied.func: called, made.node: arguments})
        yield module.replace(applied, written)


def _is_only_argument_of_apply(made, applied):
    return (
        isinstance(applied, ast.Call)
        and isinstance(applied.func, ast.Attribute)
        and applied.func.attr == "apply"
        and applied.args == [made]
        and not applied.keywords
    )
