"""`tf.estimator` to this package's."""

import ast

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod
from estimator2strategy.tools.reader.source import parents


@codemod(
    "estimator-names",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`tf.estimator` to `estimator`, imported from this package",
    why="TensorFlow has no tf.estimator any more. In files that were written for TF 2.0 to 2.15 it "
    "is the only thing that changes; they keep their `import tensorflow as tf`.",
    proof="The facade's tf.estimator has these classes, and a file that imports the facade makes "
    "the same Estimators of either (tests/tf1/test_spellings.py).",
)
def find(module):
    bound, imported = module.needed("estimator2strategy", "estimator", "tf_estimator")
    for node, _ in module.uses("tf.estimator"):
        part = module.part(node, "tf.estimator")
        if part is not None and not _is_guarded(node):
            yield module.replace(part, bound, [imported])


def _is_guarded(node):
    return any(
        isinstance(outer, (ast.If, ast.IfExp)) and "hasattr" in ast.unparse(outer.test)
        for outer in parents(node)
    )
