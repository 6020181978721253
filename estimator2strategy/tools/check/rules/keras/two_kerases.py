"""Keras 2 and Keras 3 in one file."""

from estimator2strategy.tools.check.rule import Hit


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
