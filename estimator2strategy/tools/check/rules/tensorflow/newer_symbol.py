"""Names that only TensorFlow 2 has, in a file that is run as one of TF 1.15."""

from estimator2strategy.tools.check import symbol_uses, tables, unreached
from estimator2strategy.tools.check.rule import Hit


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
