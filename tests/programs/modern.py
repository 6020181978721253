"""A program of TF2 and Keras 3; what else is in its process must not change what `main` returns."""

import json
import tempfile

import keras
import numpy as np
import tensorflow as tf


def trained() -> list:
    keras.utils.set_random_seed(7)
    keras.utils.clear_session()
    model = keras.Sequential(
        [keras.layers.Dense(4, "relu"), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    x = np.random.RandomState(0).randn(32, 3).astype("float32")
    history = model.fit(x, x[:, :1], batch_size=8, epochs=2, verbose=0)
    path = tempfile.mkdtemp() + "/model.keras"
    model.save(path)
    again = keras.models.load_model(path)
    return [
        history.history,
        model.evaluate(x, x[:, :1], verbose=0),
        again.predict(x[:2], verbose=0).tolist(),
        [variable.path for variable in model.variables],
    ]


def functions() -> list:
    tf.random.set_seed(3)
    variable = tf.Variable([1.0, 2.0], name="weights")

    @tf.function
    def step(x):
        for _ in tf.range(3):
            if tf.reduce_sum(variable) > 0.0:
                variable.assign_sub(x * tf.random.uniform([2]))
        return variable + 0.0

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable**2)
    gradient = tape.gradient(loss, variable)
    dataset = tf.data.Dataset.range(5).shuffle(5, seed=1).batch(2)
    return [
        step(tf.ones([2])).numpy().tolist(),
        gradient.numpy().tolist(),
        [batch.numpy().tolist() for batch in dataset],
        step.get_concrete_function(tf.ones([2])).graph.as_graph_def().versions.producer,
        variable.name,
        [type(d).__name__ for d in tf.ones([2, 3]).shape],
        tf.executing_eagerly(),
        type(variable).__name__,
        hasattr(tf, "contrib"),
    ]


def distributed() -> list:
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        total = tf.Variable(0.0)

    @tf.function
    def step():
        return strategy.run(lambda: total.assign_add(2.0))

    step()
    return [float(total), strategy.num_replicas_in_sync]


def main() -> str:
    return json.dumps([trained(), functions(), distributed()])


if __name__ == "__main__":
    print(main())
