"""Keras 2 and Keras 3 in one file."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S502",
    "two-kerases",
    Severity.WARNING,
    title="Keras 3 and tf-keras in one file",
    why="`keras` is Keras 3 and `tf_keras` Keras 2. A layer, optimizer or loss of one is no "
    "object of the other: 'Only instances of keras.Layer can be added'.",
    fix="Import one of them.",
    bad="import keras\nimport tf_keras\n",
    good="import tf_keras as keras\n",
)
def find(source, context):
    if not {"keras", "tf_keras"} <= source.modules:
        return
    imports = [
        (target, scope)
        for target, scope in source.imports
        if not target.level and target.module.partition(".")[0] in ("keras", "tf_keras")
    ]
    if any(type(outer).__name__ in ("Try", "If") for t, _ in imports for outer in _around(t.node)):
        return
    yield Hit(imports[-1][0].node, "both keras and tf_keras are imported here")


def _around(node):
    while hasattr(node, "parent"):
        node = node.parent
        yield node
