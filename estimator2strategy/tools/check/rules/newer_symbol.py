"""Names that only TensorFlow 2 has, in a file that is run as one of TF 1.15."""

from estimator2strategy.tools.check import symbol_uses, tables, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S113",
    "newer-symbol",
    Severity.WARNING,
    title="A name that TensorFlow 2 has, and TensorFlow 1.15 had not",
    why="A program that is run as one of TF 1.15 gets its names, and this one is an AttributeError "
    "there. The first such name of a file is reported.",
    fix="If the program was written for TensorFlow 2.x: e2s run --tf2, and e2s check --target tf2. "
    "If only this file was: e2s run --modern-module.",
    bad="import tensorflow as tf\n\ntf.random.set_seed(2)\n",
    good="import tensorflow as tf\n\ntf.random.set_random_seed(2)\n",
)
def find(source, context):
    if context.runs_on_tensorflow2(source):
        return
    for use in symbol_uses.uses(source, False):
        if use.row is not None or use.flavour is symbol_uses.Flavour.V2:
            continue
        # Of private modules and of `tf.contrib` other rules know more.
        if use.name.startswith(("tf.contrib.", "tf.python.", "tf.compat.", "tf.core.")):
            continue
        if tables.exists(use.name, "v1") is not False or not tables.exists(use.name, "v2"):
            continue
        reached = unreached.is_reached(use.node, source, on_tensorflow_2=False)
        if reached and not unreached.is_tried(use.node, unreached.ANY):
            fix = None
            if use.flavour is symbol_uses.Flavour.V1:
                newer = use.name.replace("tf.", "tf.compat.v2.", 1)
                fix = f"TensorFlow 2 has it outside of compat.v1 only: write {newer}."
            yield Hit(use.node, f"{use.name} is in TensorFlow 2, and not in 1.15", fix=fix)
            return
