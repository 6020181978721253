"""model_fn with arguments that Estimator does not know."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf

_KNOWN = {"features", "labels", "mode", "params", "config", "embedding_lookup", "self"}


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "Estimator", "TPUEstimator") or ".learn." in call.name:
            continue
        given = call.argument("model_fn", 0)
        made = source.call(given, call.scope)
        if made is not None:
            continue  # functools.partial, or a builder
        function = context.project.function(given, call.scope, source)
        if function is None or function.node.args.kwarg or function.node.args.vararg:
            continue
        arguments = function.node.args
        every = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        needed = every[: len(every) - len(arguments.defaults)]
        if every[:1] in (["self"], ["cls"]):
            needed = needed[1:]
        unknown = [name for name in needed if name not in _KNOWN]
        if unknown:
            message = (
                f"{function.node.name} takes {', '.join(unknown)}, which Estimator does not give"
            )
            yield Hit(given, message)
        elif "features" not in every:
            yield Hit(given, f"{function.node.name} does not take features")
