"""`shape[i].value`."""

from estimator2strategy.tools.check.rules.tensorflow.changed_calls import reads
from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod


@codemod(
    "dimension-value",
    stage=2,
    tier=SafetyTier.SAFE,
    words=("value",),
    title="`x.shape[1].value` to `tf.compat.dimension_value(x.shape[1])`",
    why="Shapes of TensorFlow 2 hold ints or None, which have no `.value`. The function is right "
    "on both, and is in TF 1.15.",
    proof="It returns the dimension's value; tests/tools/migrate/test_parity.py runs both.",
)
def find(module):
    if module.tf is None:
        return
    for node in reads(module.source):
        written = f"{module.tf}.compat.dimension_value({module.written(node.value)})"
        yield module.replace(node, written)
