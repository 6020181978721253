"""Tables of what Keras 3 calls layers, initializers, regularizers and activations."""

import dataclasses


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
    **dict.fromkeys(
        ("tf.glorot_uniform_initializer", "tf.initializers.glorot_uniform",
         "tf.keras.initializers.glorot_uniform"),
        KerasRow("initializers.GlorotUniform", ("seed", "")),
    ),
    **dict.fromkeys(
        ("tf.glorot_normal_initializer", "tf.initializers.glorot_normal"),
        KerasRow("initializers.GlorotNormal", ("seed", "")),
    ),
    **dict.fromkeys(
        ("tf.random_normal_initializer", "tf.initializers.random_normal"),
        KerasRow("initializers.RandomNormal", ("mean", "stddev", "seed", "")),
    ),
    **dict.fromkeys(
        ("tf.truncated_normal_initializer", "tf.initializers.truncated_normal"),
        KerasRow("initializers.TruncatedNormal", ("mean", "stddev", "seed", "")),
    ),
    **dict.fromkeys(
        ("tf.random_uniform_initializer", "tf.initializers.random_uniform"),
        KerasRow("initializers.RandomUniform", ("minval", "maxval", "seed", "")),
    ),
    **dict.fromkeys(
        ("tf.variance_scaling_initializer", "tf.initializers.variance_scaling"),
        KerasRow("initializers.VarianceScaling", ("scale", "mode", "distribution", "seed", "")),
    ),
    **dict.fromkeys(
        ("tf.zeros_initializer", "tf.initializers.zeros"), KerasRow("initializers.Zeros", ("",))
    ),
    **dict.fromkeys(
        ("tf.ones_initializer", "tf.initializers.ones"), KerasRow("initializers.Ones", ("",))
    ),
    **dict.fromkeys(
        ("tf.constant_initializer", "tf.initializers.constant"),
        KerasRow("initializers.Constant", ("value", "")),
    ),
}  # fmt: skip
# Defaults of tf's that are others in Keras.
DEFAULTS = {
    "initializers.RandomNormal": (("stddev", "1.0"),),
    "initializers.TruncatedNormal": (("stddev", "1.0"),),
    "initializers.RandomUniform": (("minval", "0.0"), ("maxval", "1.0")),
}
L2 = ("tf.contrib.layers.l2_regularizer", "tf.keras.regularizers.l2", "tf.keras.regularizers.L2")
L1 = ("tf.contrib.layers.l1_regularizer", "tf.keras.regularizers.l1", "tf.keras.regularizers.L1")
ACTIVATIONS = {
    f"tf.{module}{name}": name
    for module in ("nn.", "keras.activations.", "")
    for name in ("relu", "tanh", "sigmoid", "elu", "selu", "softplus", "relu6", "softmax")
}
# tf.losses -> (class of keras.losses with its options, arguments in order); None: Keras has none.
LOSSES = {
    "sparse_softmax_cross_entropy": (
        "SparseCategoricalCrossentropy(from_logits=True)", ("labels", "logits"),
    ),
    "softmax_cross_entropy": (
        "CategoricalCrossentropy(from_logits=True)", ("onehot_labels", "logits"),
    ),
    "sigmoid_cross_entropy": (
        "BinaryCrossentropy(from_logits=True)", ("multi_class_labels", "logits"),
    ),
    "mean_squared_error": ("MeanSquaredError()", ("labels", "predictions")),
    "absolute_difference": ("MeanAbsoluteError()", ("labels", "predictions")),
    "huber_loss": ("Huber()", ("labels", "predictions")),
}  # fmt: skip
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
