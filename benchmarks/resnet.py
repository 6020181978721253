"""A ResNet-18 of a quarter of the width, on 32x32 images: for a v1 graph, TF2 and Keras."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

SIZE, CLASSES = 32, 10
WIDTHS = (16, 32, 64, 128)
BLOCKS = 2
EPSILON, DECAY = 1e-5, 0.9


def data(examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns float32 images [examples, SIZE, SIZE, 3] and int32 labels [examples]."""
    rng = np.random.default_rng(0)
    images = rng.random(size=(examples, SIZE, SIZE, 3)).astype(np.float32)
    return images, rng.integers(0, CLASSES, examples).astype(np.int32)


class GraphLayers:
    """Layers whose variables `get_variable` makes: for a model_fn."""

    def __init__(self) -> None:
        self._count = 0

    def variable(self, shape: list[int], start: float | None, trainable: bool = True) -> Any:
        """The next variable; `start` None: Glorot uniform."""
        self._count += 1
        initializer = (
            tf.glorot_uniform_initializer() if start is None else tf.constant_initializer(start)
        )
        return tf.get_variable(
            f"variable_{self._count}", shape, initializer=initializer, trainable=trainable
        )

    def assigned(self, variable: Any, value: Any) -> None:
        """Makes the train op assign a value."""
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, variable.assign(value))


class ObjectLayers:
    """The same with variables of their own, made at the first call: for TF2."""

    def __init__(self) -> None:
        self.variables: list[Any] = []
        self._next = 0

    def again(self) -> ObjectLayers:
        """Before each call of the net."""
        self._next = 0
        return self

    def variable(self, shape: list[int], start: float | None, trainable: bool = True) -> Any:
        """As of GraphLayers."""
        import tensorflow as tf2

        if self._next == len(self.variables):
            with tf2.init_scope():
                glorot = tf2.initializers.GlorotUniform()
                value = glorot(shape) if start is None else tf2.fill(shape, start)
                self.variables.append(tf2.Variable(value, trainable=trainable))
        self._next += 1
        return self.variables[self._next - 1]

    def assigned(self, variable: Any, value: Any) -> None:
        """As of GraphLayers."""
        variable.assign(value, read_value=False)


def logits(images: Any, training: bool, layers: Any = None) -> Any:
    """The net; `layers` makes its variables."""
    layers = layers or GraphLayers()
    outputs = _relu_of_conv(layers, images, WIDTHS[0], 1, training)
    for number, width in enumerate(WIDTHS):
        for block in range(BLOCKS):
            stride = 2 if number and not block else 1
            outputs = _block(layers, outputs, width, stride, training)
    outputs = tf.reduce_mean(outputs, [1, 2])
    kernel = layers.variable([WIDTHS[-1], CLASSES], None)
    return tf.nn.bias_add(tf.matmul(outputs, kernel), layers.variable([CLASSES], 0.0))


def _block(layers: Any, inputs: Any, width: int, stride: int, training: bool) -> Any:
    shortcut = inputs
    if stride > 1:
        shortcut = _norm(layers, _conv(layers, inputs, width, 1, stride), training)
    outputs = _relu_of_conv(layers, inputs, width, stride, training)
    outputs = _norm(layers, _conv(layers, outputs, width, 3, 1), training)
    return tf.nn.relu(outputs + shortcut)


def _relu_of_conv(layers: Any, inputs: Any, width: int, stride: int, training: bool) -> Any:
    return tf.nn.relu(_norm(layers, _conv(layers, inputs, width, 3, stride), training))


def _conv(layers: Any, inputs: Any, width: int, size: int, stride: int) -> Any:
    kernel = layers.variable([size, size, int(inputs.shape[-1]), width], None)
    return tf.nn.conv2d(inputs, kernel, strides=[1, stride, stride, 1], padding="SAME")


def _norm(layers: Any, inputs: Any, training: bool) -> Any:
    width = [int(inputs.shape[-1])]
    scale, offset = layers.variable(width, 1.0), layers.variable(width, 0.0)
    mean, variance = layers.variable(width, 0.0, False), layers.variable(width, 1.0, False)
    if not training:
        return tf.nn.batch_normalization(inputs, mean, variance, offset, scale, EPSILON)
    outputs, *moments = tf.nn.fused_batch_norm(inputs, scale, offset, epsilon=EPSILON)
    for moving, value in zip((mean, variance), moments):
        layers.assigned(moving, DECAY * moving + (1 - DECAY) * value)
    return outputs


class Net:
    """The net for the hand-written loop."""

    def __init__(self) -> None:
        self._layers = ObjectLayers()
        self(tf.zeros([1, SIZE, SIZE, 3]), training=False)
        self.variables = [v for v in self._layers.variables if v.trainable]

    def __call__(self, images: Any, training: bool) -> Any:
        return logits(images, training, self._layers.again())


def keras_net() -> Any:
    """The net for `fit`."""
    import keras

    layers = keras.layers

    def normed(inputs: Any, width: int, size: int, stride: int) -> Any:
        conv = layers.Conv2D(width, size, stride, "same", use_bias=False)
        return layers.BatchNormalization(momentum=DECAY, epsilon=EPSILON)(conv(inputs))

    images = keras.Input([SIZE, SIZE, 3])
    outputs = layers.ReLU()(normed(images, WIDTHS[0], 3, 1))
    for number, width in enumerate(WIDTHS):
        for block in range(BLOCKS):
            stride = 2 if number and not block else 1
            shortcut = normed(outputs, width, 1, stride) if stride > 1 else outputs
            inner = layers.ReLU()(normed(outputs, width, 3, stride))
            outputs = layers.ReLU()(normed(inner, width, 3, 1) + shortcut)
    return keras.Model(images, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(outputs)))
