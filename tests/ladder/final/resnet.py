"""A small residual network: blocks in a loop, batch normalization, and weight decay."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "resnet_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

_BATCH_NORM_DECAY = 0.9
_WEIGHT_DECAY = 2e-4


def stripes(count, seed):
    """Pictures with stripes of four directions."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, [count]).astype(np.int64)
    rows, columns = np.mgrid[:8, :8]
    along = np.stack([rows, columns, rows + columns, rows - columns])[labels]
    pictures = np.sin(along + rng.uniform(0, 6, [count, 1, 1])) + rng.normal(0, 0.3, along.shape)
    return pictures[..., None].astype(np.float32), labels


def input_fn(is_training, batch_size):
    data = tf.data.Dataset.from_tensor_slices(stripes(640 if is_training else 160, is_training))
    if is_training:
        data = data.repeat()
    return data.batch(batch_size)


class BatchNormRelu(keras.layers.Layer):
    """Normalizes a batch, then applies a ReLU."""

    def __init__(self, name=None):
        super().__init__(name=name)
        # TF 1's moving variance of images has a factor n / (n - 1).
        self.batch_normalization = keras.layers.BatchNormalization(
            momentum=_BATCH_NORM_DECAY, epsilon=1e-5, name=name
        )

    def call(self, inputs, training=False):
        net = self.batch_normalization(inputs, training=training)
        return keras.ops.relu(net)


def conv2d(filters, kernel_size, strides, name):
    """A convolution without a bias, as a batch normalization follows."""
    return keras.layers.Conv2D(
        filters,
        kernel_size,
        strides=strides,
        padding="same",
        use_bias=False,
        kernel_initializer=keras.initializers.VarianceScaling(),
        kernel_regularizer=keras.regularizers.L2(_WEIGHT_DECAY / 2),
        name=name,
    )


class ResidualBlock(keras.layers.Layer):
    """Two convolutions, and a way around them."""

    def __init__(self, filters, strides, name=None):
        super().__init__(name=name)
        self.strides = strides
        self.bn_1 = BatchNormRelu(name="bn_1")
        if strides > 1:
            self.projection = conv2d(filters, 1, strides, name="projection")
        self.conv_1 = conv2d(filters, 3, strides, name="conv_1")
        self.bn_2 = BatchNormRelu(name="bn_2")
        self.conv_2 = conv2d(filters, 3, 1, name="conv_2")

    def call(self, inputs, training=False):
        shortcut = inputs
        net = self.bn_1(inputs, training=training)
        # The projection comes after the first ReLU.
        if self.strides > 1:
            shortcut = self.projection(net)
        net = self.conv_1(net)
        net = self.bn_2(net, training=training)
        net = self.conv_2(net)
        return net + shortcut


class Momentum(keras.optimizers.SGD):
    """Accumulates gradients without the learning rate."""

    def update_step(self, gradient, variable, learning_rate):
        accumulated = self.momentums[self._get_variable_index(variable)]
        self.assign(accumulated, self.momentum * accumulated + gradient)
        change = accumulated
        if self.nesterov:
            change = gradient + self.momentum * accumulated
        self.assign_sub(variable, learning_rate * change)


class ResnetModel(keras.Model):
    """A network with a block for each of params["filters"]."""

    def __init__(self, params):
        super().__init__()
        self.first = conv2d(params["filters"][0], 3, 1, name="first")
        self.blocks = [
            ResidualBlock(filters, 1 if i == 0 else 2, name="block_%d" % i)
            for i, filters in enumerate(params["filters"])
        ]
        self.last_bn = BatchNormRelu(name="last_bn")
        self.logits = keras.layers.Dense(params["classes"], name="logits")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = self.first(features)
        for block in self.blocks:
            net = block(net, training=training)
        net = self.last_bn(net, training=training)
        net = keras.ops.mean(net, axis=[1, 2])
        logits = self.logits(net)
        predictions = {
            "classes": keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64"),
            "probabilities": keras.ops.softmax(logits),
        }
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
            labels, logits
        )
        loss = cross_entropy + sum(self.losses)
        if training and keras.backend.backend() == "tensorflow":
            tf.summary.scalar("cross_entropy", cross_entropy)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, predictions = y, y_pred
        self.accuracy_metric.update_state(labels, predictions["classes"])
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    learning_rate = keras.optimizers.schedules.PiecewiseConstantDecay(
        [30, 40], [0.05, 0.01, 0.001]
    )
    return Momentum(learning_rate=learning_rate, momentum=0.9)


def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
    model(features)  # makes the variables
    model.optimizer.build(model.trainable_variables)
    if os.path.exists(path):
        model.load_weights(path)
    steps = max_steps - int(model.optimizer.iterations)
    if steps <= 0:
        return
    os.makedirs(folder, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=1000),
        keras.callbacks.TensorBoard(folder, update_freq=100),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)


def main(_):
    params = {"filters": [8, 16, 16], "classes": 4}
    model = ResnetModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(True, 32), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(input_fn(False, 32), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
