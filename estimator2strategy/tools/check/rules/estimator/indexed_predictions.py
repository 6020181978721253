"""`estimator.predict(input_fn)[0]`."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.estimator_programs import all_of, returned
from estimator2strategy.tools.reader.source import parents

_HOMES = ("tf.contrib.learn", "tf.estimator", "tf.estimator.tpu")
# Functions of NumPy that refuse what is no number.
_OF_NUMBERS = {
    f"numpy.{name}"
    for name in (
        "abs", "absolute", "add", "ceil", "divide", "exp", "expm1", "floor", "log", "log10",
        "log1p", "log2", "maximum", "mean", "minimum", "multiply", "rint", "round", "sign", "sqrt",
        "square", "subtract", "tanh",
    )
}  # fmt: skip


def find(source, context):
    made = {call.node: call for call in source.calls if _is_predict(call, context.project)}
    if not made:
        return
    named = (
        (name, (source.assigned(name, source.scope_of(name)) or (None,))[0])
        for name in all_of(source, ast.Name)
        if hasattr(name, "parent")
    )
    for used in (*made, *(name for name, value in named if value in made)):
        how = _misuse(used, source)
        if how and not unreached.is_tried(used, unreached.ANY):
            yield Hit(used, f"predict is a generator, which has no {how}")


def _is_predict(call, project):
    if call.last != "predict" or not isinstance(call.node.func, ast.Attribute):
        return False
    if call.value("as_iterable") is False:  # of tf.contrib.learn
        return False
    made = call.source.call(call.node.func.value, call.scope)
    return made is not None and all(map(_is_estimator, _makers(made, project)))


def _makers(made, project):
    """The call that makes an object, or those whose result a function of the program returns."""
    function = project.definition(made.source.resolve(made.node.func, made.scope))
    if function is None or isinstance(function.node, ast.ClassDef):
        return [made]
    values = returned(function.node)
    return [function.source.call(value, function.scope) for value in values] or [made]


def _is_estimator(call):
    home, _, name = ((call and call.name) or "").rpartition(".")
    # The predictions of SKCompat are arrays.
    return home in _HOMES and name[:1].isupper() and name != "SKCompat"


def _misuse(node, source):
    outer = next(parents(node), None)
    if isinstance(outer, ast.Subscript) and outer.value is node:
        return "items"
    if isinstance(outer, ast.BinOp) and not isinstance(outer.op, ast.Mod):
        return "numbers"
    if not isinstance(outer, ast.Call) or node not in outer.args:
        return None
    if getattr(outer.func, "id", None) == "len":
        return "length"
    return "numbers" if source.name(outer.func, source.scope_of(outer)) in _OF_NUMBERS else None
