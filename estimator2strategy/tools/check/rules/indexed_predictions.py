"""`estimator.predict(input_fn)[0]`."""

import ast

from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import all_of
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import parents

_HOMES = ("tf.contrib.learn", "tf.estimator", "tf.estimator.tpu")


@rule(
    "E2S227",
    "indexed-predictions",
    Severity.ERROR,
    title="Predictions that are taken by an index, or counted",
    why="predict is a generator, which has neither items nor a length: TypeError. It reads its "
    "input as it is asked for the next one.",
    fix="Take the next one, next(predictions), or all of them: list(predictions).",
    bad="import tensorflow as tf\n\nestimator = tf.estimator.Estimator(model_fn=None)\n"
    "predictions = estimator.predict(lambda: None)\nprint(predictions[0])\n",
    good="import tensorflow as tf\n\nestimator = tf.estimator.Estimator(model_fn=None)\n"
    "predictions = estimator.predict(lambda: None)\nprint(next(predictions))\n",
)
def find(source, context):
    del context
    made = {call.node: call for call in source.calls if _is_predict(call, source)}
    if not made:
        return
    named = (
        (name, (source.assigned(name, source.scope_of(name)) or (None,))[0])
        for name in all_of(source, ast.Name)
        if hasattr(name, "parent")
    )
    for used in (*made, *(name for name, value in named if value in made)):
        how = _misuse(used)
        if how and not unreached.is_tried(used, unreached.ANY):
            yield Hit(used, f"predict is a generator, which has no {how}")


def _is_predict(call, source):
    if call.last != "predict" or not isinstance(call.node.func, ast.Attribute):
        return False
    if call.value("as_iterable") is False:  # of tf.contrib.learn
        return False
    estimator = source.call(call.node.func.value, call.scope)
    home, _, name = ((estimator and estimator.name) or "").rpartition(".")
    return home in _HOMES and name[:1].isupper()


def _misuse(node):
    outer = next(parents(node), None)
    if isinstance(outer, ast.Subscript) and outer.value is node:
        return "items"
    is_counted = isinstance(outer, ast.Call) and getattr(outer.func, "id", None) == "len"
    return "length" if is_counted and node in outer.args else None
