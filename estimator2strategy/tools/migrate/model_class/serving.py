"""A serving_input_receiver_fn as a function that returns the signature of an export."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments

_RECEIVERS = ("ServingInputReceiver", "TensorServingInputReceiver")


def changes(module, name):
    """Yields the changes of a receiver function: placeholders become specs, the receiver a dict.

    Raises:
        StaysError: It computes something, which an export of Keras would leave out.
    """
    (function,) = module.source.scope.bindings.get(name, (None,))[:1]
    if not isinstance(function, ast.FunctionDef):
        raise StaysError(module.source.tree.body[0], f"{name} is no function of this file")
    rewriter = Rewriter(module, ())
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called = rewriter.called(node) or ""
        if called == "tf.placeholder":
            yield module.replace(node, _spec(module, node))
        elif called.endswith(_RECEIVERS):
            given = arguments(node, ("features", "receivers"))
            features, receivers = given["features"], given.get("receivers")
            if receivers is None or ast.dump(features) != ast.dump(receivers):
                raise StaysError(node, "the model is not given what clients send: write an export")
            yield module.replace(node, module.written(features))
        else:
            raise StaysError(node, "compute this in the model: an export of Keras is that alone")


def _spec(module, node):
    given = arguments(node, ("dtype", "shape", "name"))
    shape = module.written(given["shape"]) if "shape" in given else "None"
    more = f", name={module.written(given['name'])}" if "name" in given else ""
    return f"{module.tf}.TensorSpec({shape}, {module.written(given['dtype'])}{more})"
