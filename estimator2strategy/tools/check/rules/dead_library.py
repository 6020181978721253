"""Libraries that ended, or that expect TF 1.x."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import parents

# Top-level module -> what became of it.
_LIBRARIES = {
    "tensorflow_addons": "it ended with TensorFlow 2.15, and does not import beside Keras 3",
    "tensor2tensor": "it was written for TF 1.x: run the program with `e2s run`",
    "tensorflow_estimator": "it cannot be imported since TensorFlow 2.16",
    "adanet": "it was written for TF 1.x: run the program with `e2s run`",
    "tensorflow_gan": "it was written for TF 1.x: run the program with `e2s run`",
    "tflearn": "it was written for TF 1.x, with tf.contrib",
}
_SERVED = {"tensorflow_estimator", "tensor2tensor", "adanet", "tensorflow_gan"}


@rule(
    "E2S107",
    "ended-library",
    Severity.WARNING,
    title="A library that ended, or that expects TensorFlow 1.x",
    why="It imports names that TensorFlow 2.16 does not have.",
    fix="See the message.",
    bad="import tensorflow_addons as tfa\n",
    good="import tensorflow_probability as tfp\n",
)
def find(source, context):
    seen = set()
    for target, _ in source.imports:
        top = target.module.partition(".")[0]
        if target.level or top not in _LIBRARIES or top in seen:
            continue
        if f"/{top}/" in f"/{source.shown}":
            continue  # the library itself
        if (source.follow(source, target) or "@").startswith("@"):
            continue
        seen.add(top)
        served = top in _SERVED and not context.runs_on_tensorflow2(source)
        # An import under a condition is one that the program may do without.
        optional = any(isinstance(outer, (ast.Try, ast.If)) for outer in parents(target.node))
        severity = Severity.INFO if served or optional else None
        yield Hit(target.node, f"{top}: {_LIBRARIES[top]}", severity=severity)
