"""Rules for what does not depend on a layer: initializers, regularizers, activations, names."""

import ast

from estimator2strategy.tools.migrate.model_class import names
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments


def initializer(node, rewriter):
    """`tf.random_normal_initializer(...)` as an initializer of Keras."""
    row = names.INITIALIZERS.get(rewriter.called(node))
    if row is None:
        if rewriter.name(node) in names.INITIALIZERS and not isinstance(node.parent, ast.Call):
            return f"keras.{names.INITIALIZERS[rewriter.name(node)].keras}()"
        return None
    given = arguments(node, row.arguments)
    known = {name: value for name, value in given.items() if name in row.arguments and name}
    known |= {name: value for name, value in given.items() if name == "distribution"}
    written = {name: rewriter.text(value) for name, value in known.items()}
    written |= {n: v for n, v in names.DEFAULTS.get(row.keras, ()) if n not in written}
    if written.get("distribution", "").strip("'\"") == "normal":
        written["distribution"] = '"truncated_normal"'
    listed = ", ".join(f"{name}={value}" for name, value in written.items())
    return f"keras.{row.keras}({listed})"


def regularizer(node, rewriter):
    """`tf.contrib.layers.l2_regularizer(1e-4)`: half of the sum of squares, in Keras all of it."""
    name = rewriter.called(node)
    if name in names.L2 or name in names.L1:
        given = list(arguments(node, ("scale", "scope")).values())
        text = rewriter.text(given[0])
        if name == names.L2[0]:
            text = f"{text} / 2"
        return f"keras.regularizers.{'L2' if name in names.L2 else 'L1'}({text})"
    return None


def of_tf_keras(node, rewriter):
    """`tf.keras.layers.Dense` as `keras.layers.Dense`."""
    name = rewriter.module.name(node) if isinstance(node, ast.Attribute) else None
    if name and name.startswith("tf.keras.") and name.count(".") >= 3:
        return name.removeprefix("tf.")
    return None


def activation(node, rewriter):
    """The name of an activation, for an argument; or its text."""
    known = names.ACTIVATIONS.get(rewriter.name(node))
    return f'"{known}"' if known else rewriter.text(node)


def schedule(node, rewriter):
    """`Schedule(...)(step)` as the schedule, which an optimizer calls itself."""
    inner = node.func if isinstance(node, ast.Call) else None
    name = rewriter.called(inner) or ""
    if name.startswith("tf.keras.optimizers.schedules."):
        return rewriter.text(inner)
    return None


def no_mode(node, rewriter):
    """Raises for a mode where a model has none."""
    if rewriter.name(node) in names.MODES:
        raise StaysError(node, "it asks for the mode: a Keras model has `training` alone")
    return


VALUES = (initializer, regularizer, of_tf_keras)
