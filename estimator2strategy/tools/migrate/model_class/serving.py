"""A serving_input_receiver_fn as a function that returns the signature of an export."""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments

_RECEIVERS = ("ServingInputReceiver", "TensorServingInputReceiver")


def changes(program, named):
    """Yields the changes of a receiver function: placeholders become specs, the receiver a dict.

    Args:
        program: The files.
        named: The node that names the function.

    Raises:
        StaysError: It computes something, which an export of Keras would leave out.
    """
    function = program.defined(named)
    module = isinstance(function, ast.FunctionDef) and program.module_of(function)
    if not module or not program.may_change(module):
        what = ast.unparse(named)
        raise StaysError(named, f"{what} is no function of the files that are migrated")
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
