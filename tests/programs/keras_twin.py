"""tests/programs/verified.py's model, written for Keras: with its names, and with others."""

import keras


def build(names=("hidden", "norm", "logits"), optimizer="adam"):
    inputs = keras.Input((6,), name="x")
    x = keras.layers.Dense(8, name=names[0])(inputs)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-3, name=names[1])(x)
    outputs = keras.layers.Dense(3, activation="softmax", name=names[2])(keras.layers.ReLU()(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model


def as_trained():
    """With the optimizer of the program."""
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.5, staircase=True)
    return build(optimizer=keras.optimizers.Adam(rate, epsilon=1e-8))


def renamed():
    return build(("first", "second", "third"))


def momentum():
    return build(optimizer=keras.optimizers.SGD(0.25, momentum=0.9))


def weights_only():
    model = build()
    return keras.Model(model.inputs, model.outputs)


def without_relu():
    inputs = keras.Input((6,), name="x")
    x = keras.layers.BatchNormalization(momentum=0.9, name="norm")(
        keras.layers.Dense(8, name="hidden")(inputs)
    )
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax", name="logits")(x))


def larger():
    inputs = keras.Input((6,), name="x")
    x = keras.layers.Dense(9, name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))
