"""Rules for what does not depend on a layer: initializers, regularizers, activations, names.

Their names, and those of layers, are tables of what Keras 3 calls them.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from estimator2strategy.tools.migrate import codemod_tables
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments


@dataclasses.dataclass(frozen=True)
class KerasRow:
    """A class of Keras, and the arguments of what it takes the place of, in their order.

    Attributes:
        keras: The class, below `keras`.
        arguments: The arguments, each by its name in Keras; "" for one that goes.
    """

    keras: str
    arguments: tuple[str, ...] = ()


_NORM = (
    "axis", "momentum", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer",
    "moving_mean_initializer", "moving_variance_initializer", "beta_regularizer",
    "gamma_regularizer", "beta_constraint", "gamma_constraint", "training", "trainable", "name",
)  # fmt: skip
BATCH_NORM = "tf.layers.batch_normalization"
NORM_ROW = KerasRow("layers.BatchNormalization", _NORM)

INITIALIZERS = {
    row["name"]: KerasRow(row["keras"], codemod_tables.words(row["arguments"]))
    for row in codemod_tables.rows("initializers")
}
# Defaults of tf's that are others in Keras.
DEFAULTS = {
    row["keras"]: codemod_tables.pairs(row["defaults"])
    for row in codemod_tables.rows("initializers") if row["defaults"]
}  # fmt: skip
L2 = ("tf.contrib.layers.l2_regularizer", "tf.keras.regularizers.l2", "tf.keras.regularizers.L2")
L1 = ("tf.contrib.layers.l1_regularizer", "tf.keras.regularizers.l1", "tf.keras.regularizers.L1")
ACTIVATIONS = {
    f"tf.{module}{name}": name
    for module in ("nn.", "keras.activations.", "")
    for name in ("relu", "tanh", "sigmoid", "elu", "selu", "softplus", "relu6", "softmax")
}
# tf.losses -> (class of keras.losses with its options, arguments in order); None: Keras has none.
LOSSES = {
    row["name"]: (row["keras"], codemod_tables.words(row["arguments"]))
    for row in codemod_tables.rows("losses")
}
REGULARIZATION = ("tf.losses.get_regularization_loss", "tf.losses.get_regularization_losses")
TOTAL = "tf.losses.get_total_loss"
STEPS = ("tf.train.get_global_step", "tf.train.get_or_create_global_step")
LOOKUPS = ("tf.nn.embedding_lookup", "tf.gather")
# Optimizers of Keras whose update of a row that rests is that of TensorFlow 1, if the gradients of
# an id that is twice in a batch are added up before.
SUMMED = ("Adam", "Adagrad")
# tf.* -> the name in keras.ops, with the names of its arguments that are others there.
MODES = {
    "tf.estimator.ModeKeys.TRAIN": "train", "tf.estimator.ModeKeys.EVAL": "eval",
    "tf.estimator.ModeKeys.PREDICT": "infer",
    "estimator2strategy.estimator.ModeKeys.TRAIN": "train",
    "estimator2strategy.estimator.ModeKeys.EVAL": "eval",
    "estimator2strategy.estimator.ModeKeys.PREDICT": "infer",
}  # fmt: skip


def initializer(node: Any, rewriter: Any) -> Any:
    """`tf.random_normal_initializer(...)` as an initializer of Keras."""
    row = INITIALIZERS.get(rewriter.called(node))
    if row is None:
        if rewriter.name(node) in INITIALIZERS and not isinstance(node.parent, ast.Call):
            return f"keras.{INITIALIZERS[rewriter.name(node)].keras}()"
        return None
    given = arguments(node, row.arguments)
    known = {name: value for name, value in given.items() if name in row.arguments and name}
    known |= {name: value for name, value in given.items() if name == "distribution"}
    written = {name: rewriter.text(value) for name, value in known.items()}
    written |= {n: v for n, v in DEFAULTS.get(row.keras, ()) if n not in written}
    if written.get("distribution", "").strip("'\"") == "normal":
        written["distribution"] = '"truncated_normal"'
    listed = ", ".join(f"{name}={value}" for name, value in written.items())
    return f"keras.{row.keras}({listed})"


def regularizer(node: Any, rewriter: Any) -> Any:
    """`tf.contrib.layers.l2_regularizer(1e-4)`: half of the sum of squares, in Keras all of it."""
    name = rewriter.called(node)
    if name in L2 or name in L1:
        given = list(arguments(node, ("scale", "scope")).values())
        text = rewriter.text(given[0])
        if name == L2[0]:
            text = f"{text} / 2"
        return f"keras.regularizers.{'L2' if name in L2 else 'L1'}({text})"
    return None


def of_tf_keras(node: Any, rewriter: Any) -> Any:
    """`tf.keras.layers.Dense` as `keras.layers.Dense`."""
    name = rewriter.module.name(node) if isinstance(node, ast.Attribute) else None
    if name and name.startswith("tf.keras.") and name.count(".") >= 3:
        return name.removeprefix("tf.")
    return None


def activation(node: Any, rewriter: Any) -> Any:
    """The name of an activation, for an argument; or its text."""
    known = ACTIVATIONS.get(rewriter.name(node))
    return f'"{known}"' if known else rewriter.text(node)


def schedule(node: Any, rewriter: Any) -> Any:
    """`Schedule(...)(step)` as the schedule, which an optimizer calls itself."""
    inner = node.func if isinstance(node, ast.Call) else None
    name = rewriter.called(inner) or ""
    if name.startswith("tf.keras.optimizers.schedules."):
        return rewriter.text(inner)
    return None


def no_mode(node: Any, rewriter: Any) -> None:
    """Raises for a mode where a model has none."""
    if rewriter.name(node) in MODES:
        raise StaysError(node, "it asks for the mode: a Keras model has `training` alone")
    return


VALUES = (initializer, regularizer, of_tf_keras)
