"""The hand-written contender: a TF2 `tf.function` loop, as an expert would write it today."""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow as tf

from benchmarks import models, ranker, resnet
from benchmarks.contender import STEPS_PER_EXECUTION, Contender, Gate
from benchmarks.models import Model


class Dense:
    """A fully connected layer on the last axis."""

    def __init__(self, inputs: int, units: int) -> None:
        glorot = tf.initializers.GlorotUniform()
        self.kernel = tf.Variable(glorot([inputs, units]), name="kernel")
        self.bias = tf.Variable(tf.zeros([units]), name="bias")

    def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
        if inputs.shape.rank == 2:
            return tf.nn.bias_add(tf.matmul(inputs, self.kernel), self.bias)
        outputs = tf.matmul(tf.reshape(inputs, [-1, inputs.shape[-1]]), self.kernel)
        outputs = tf.nn.bias_add(outputs, self.bias)
        return tf.reshape(outputs, [-1, *inputs.shape[1:-1], outputs.shape[-1]])


class Conv:
    """A 5x5 convolution, ReLU and a 2x2 max pool."""

    def __init__(self, channels: int, filters: int) -> None:
        glorot = tf.initializers.GlorotUniform()
        self.kernel = tf.Variable(glorot([5, 5, channels, filters]), name="kernel")
        self.bias = tf.Variable(tf.zeros([filters]), name="bias")

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        outputs = tf.nn.bias_add(tf.nn.conv2d(images, self.kernel, 1, "SAME"), self.bias)
        return tf.nn.max_pool2d(tf.nn.relu(outputs), 2, 2, "VALID")


class LayerNorm:
    """Layer normalisation of the last axis."""

    def __init__(self, units: int) -> None:
        self.gamma = tf.Variable(tf.ones([units]), name="gamma")
        self.beta = tf.Variable(tf.zeros([units]), name="beta")

    def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, 1e-6)


def dropout(inputs: tf.Tensor, rate: float, training: bool) -> tf.Tensor:
    """Dropout while training, the identity otherwise."""
    return tf.nn.dropout(inputs, rate) if training else inputs


class DenseNet:
    """Two hidden ReLU layers."""

    def __init__(self) -> None:
        self.layers = [
            Dense(models.DENSE_FEATURES, models.DENSE_UNITS),
            Dense(models.DENSE_UNITS, models.DENSE_UNITS),
            Dense(models.DENSE_UNITS, models.CLASSES),
        ]

    def __call__(self, features: tf.Tensor, training: bool) -> tf.Tensor:
        del training
        hidden = tf.nn.relu(self.layers[0](features))
        return self.layers[2](tf.nn.relu(self.layers[1](hidden)))


class ConvNet:
    """Two convolutions, a wide dense layer, dropout."""

    def __init__(self) -> None:
        first, second = models.CONV_FILTERS
        self.layers = [
            Conv(1, first),
            Conv(first, second),
            Dense(7 * 7 * second, models.CONV_UNITS),
            Dense(models.CONV_UNITS, models.CLASSES),
        ]

    def __call__(self, images: tf.Tensor, training: bool) -> tf.Tensor:
        conv_1, conv_2, hidden, logits = self.layers
        outputs = conv_2(conv_1(images))
        outputs = tf.nn.relu(hidden(tf.reshape(outputs, [-1, hidden.kernel.shape[0]])))
        return logits(dropout(outputs, models.CONV_DROPOUT, training))


class EncoderLayer:
    """One transformer layer, normalised after each residual connection as in BERT."""

    def __init__(self, hidden: int, heads: int) -> None:
        self.heads = heads
        self.query, self.key, self.value, self.output = (Dense(hidden, hidden) for _ in range(4))
        self.attention_norm, self.output_norm = LayerNorm(hidden), LayerNorm(hidden)
        self.intermediate = Dense(hidden, 4 * hidden)
        self.output_dense = Dense(4 * hidden, hidden)

    def split(self, inputs: tf.Tensor) -> tf.Tensor:
        """[batch, seq, hidden] -> [batch, heads, seq, hidden / heads]."""
        _, seq, hidden = inputs.shape
        shape = [-1, seq, self.heads, hidden // self.heads]
        return tf.transpose(tf.reshape(inputs, shape), [0, 2, 1, 3])

    def attend(self, inputs: tf.Tensor, training: bool) -> tf.Tensor:
        """Multi-head self-attention without its residual connection."""
        _, seq, hidden = inputs.shape
        query, key, value = (self.split(d(inputs)) for d in (self.query, self.key, self.value))
        scores = tf.matmul(query, key, transpose_b=True) * (hidden // self.heads) ** -0.5
        weights = dropout(tf.nn.softmax(scores), models.BERT_DROPOUT, training)
        context = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return self.output(tf.reshape(context, [-1, seq, hidden]))

    def __call__(self, inputs: tf.Tensor, training: bool) -> tf.Tensor:
        attended = dropout(self.attend(inputs, training), models.BERT_DROPOUT, training)
        inputs = self.attention_norm(inputs + attended)
        expanded = tf.nn.gelu(self.intermediate(inputs))
        output = dropout(self.output_dense(expanded), models.BERT_DROPOUT, training)
        return self.output_norm(inputs + output)


class Bert:
    """Embeddings, transformer layers, a tanh pooler over the first token."""

    def __init__(self, layers: int = models.BERT_LAYERS) -> None:
        hidden = models.BERT_HIDDEN
        normal = tf.initializers.TruncatedNormal(stddev=0.02)
        self.words = tf.Variable(normal([models.BERT_VOCAB, hidden]), name="words")
        self.positions = tf.Variable(normal([models.BERT_SEQ, hidden]), name="positions")
        self.norm = LayerNorm(hidden)
        self.layers = [EncoderLayer(hidden, models.BERT_HEADS) for _ in range(layers)]
        self.pooler, self.logits = Dense(hidden, hidden), Dense(hidden, models.CLASSES)

    def __call__(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        outputs = self.norm(tf.nn.embedding_lookup(self.words, ids) + self.positions)
        outputs = dropout(outputs, models.BERT_DROPOUT, training)
        for layer in self.layers:
            outputs = layer(outputs, training)
        pooled = tf.tanh(self.pooler(outputs[:, 0]))
        return self.logits(dropout(pooled, models.BERT_DROPOUT, training))


def variables_of(net: Any) -> list[tf.Variable]:
    """All variables below `net`, in creation order."""
    if isinstance(net, tf.Variable):
        return [net]
    parts = net if isinstance(net, list) else getattr(net, "__dict__", {}).values()
    return [variable for part in parts for variable in variables_of(part)]


class Sgd:
    """Plain gradient descent, with TensorFlow's fused update."""

    def __init__(self, variables: list[tf.Variable]) -> None:
        self.variables = variables

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Updates every variable."""
        for gradient, variable in zip(gradients, self.variables):
            tf.raw_ops.ResourceApplyGradientDescent(
                var=variable.handle, alpha=models.LEARNING_RATE, delta=gradient
            )


class Adam:
    """Adam, with TensorFlow's fused update."""

    def __init__(self, variables: list[tf.Variable]) -> None:
        self.variables = variables
        self.means = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.squares = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.powers = [tf.Variable(0.9), tf.Variable(0.999)]

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Updates every variable, its two moments and the powers of the two decays."""
        power_1, power_2 = (power.read_value() for power in self.powers)
        for args in zip(gradients, self.variables, self.means, self.squares):
            gradient, variable, mean, square = args
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=mean.handle,
                v=square.handle,
                beta1_power=power_1,
                beta2_power=power_2,
                lr=models.LEARNING_RATE,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-8,
                grad=gradient,
            )
        self.powers[0].assign(power_1 * 0.9, read_value=False)
        self.powers[1].assign(power_2 * 0.999, read_value=False)


class AdamWeightDecay:
    """Adam with decoupled weight decay on clipped gradients, from elementary ops."""

    def __init__(self, variables: list[tf.Variable]) -> None:
        self.variables = variables
        self.means = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.squares = [tf.Variable(tf.zeros_like(v)) for v in variables]

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Updates every variable and its two moments."""
        gradients, _ = tf.clip_by_global_norm(gradients, models.CLIP_NORM)
        for args in zip(gradients, self.variables, self.means, self.squares):
            self._update(*args)

    def _update(
        self, gradient: tf.Tensor, variable: tf.Variable, mean: tf.Variable, square: tf.Variable
    ) -> None:
        gradient = tf.convert_to_tensor(gradient)  # The word embeddings' is sparse.
        next_mean = 0.9 * mean + 0.1 * gradient
        next_square = 0.999 * square + 0.001 * tf.square(gradient)
        update = next_mean / (tf.sqrt(next_square) + 1e-6)
        if variable.name.split(":")[0] not in ("bias", "beta", "gamma"):
            update += models.WEIGHT_DECAY * variable
        variable.assign_sub(models.LEARNING_RATE * update, read_value=False)
        mean.assign(next_mean, read_value=False)
        square.assign(next_square, read_value=False)


class Adagrad:
    """Adagrad, with TensorFlow's fused and sparse updates; a row's gradients add up first."""

    def __init__(self, variables: list[tf.Variable]) -> None:
        self.variables = variables
        self.squares = [tf.Variable(tf.fill(v.shape, 0.1)) for v in variables]

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Updates every variable and its sum of squares."""
        for gradient, variable, square in zip(gradients, self.variables, self.squares):
            common = {"var": variable.handle, "accum": square.handle, "lr": models.LEARNING_RATE}
            if isinstance(gradient, tf.IndexedSlices):
                rows, place = tf.unique(gradient.indices)
                sums = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
                tf.raw_ops.ResourceSparseApplyAdagrad(grad=sums, indices=rows, **common)
            else:
                tf.raw_ops.ResourceApplyAdagrad(grad=gradient, **common)


NETS = {
    "dense": (DenseNet, Sgd),
    "conv": (ConvNet, Adam),
    "bert": (Bert, AdamWeightDecay),
    "bert12": (partial(Bert, 12), AdamWeightDecay),
    "resnet": (resnet.Net, Adam),
    "ranker": (partial(ranker.Net, Dense), Adagrad),
}


def loss_of(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean cross entropy."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


class Trainer:
    """A net, its optimizer, and the three functions that run 50 batches per call."""

    def __init__(self, model: Model) -> None:
        net, optimizer = NETS[model.net or model.name]
        self.net = net()
        self.variables = getattr(self.net, "variables", None) or variables_of(self.net)
        self.optimizer = optimizer(self.variables)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.hits = tf.Variable(0.0)

    def train_step(self, features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """One training step; returns its loss."""
        with tf.GradientTape() as tape:
            loss = loss_of(self.net(features, training=True), labels)
        self.optimizer.apply(tape.gradient(loss, self.variables))
        self.step.assign_add(1, read_value=False)
        return loss

    @tf.function
    def train(self, iterator: Any) -> tf.Tensor:
        """50 training steps; returns the last loss."""
        loss = tf.constant(0.0)
        for _ in tf.range(STEPS_PER_EXECUTION):
            loss = self.train_step(*next(iterator))
        return loss

    @tf.function
    def evaluate(self, iterator: Any) -> tf.Tensor:
        """50 evaluation steps; returns the sum of the losses and counts the hits."""
        total = tf.constant(0.0)
        for _ in tf.range(STEPS_PER_EXECUTION):
            features, labels = next(iterator)
            logits = self.net(features, training=False)
            hits = tf.equal(tf.argmax(logits, -1, tf.int32), labels)
            self.hits.assign_add(tf.reduce_sum(tf.cast(hits, tf.float32)), read_value=False)
            total += loss_of(logits, labels)
        return total

    @tf.function
    def predict(self, iterator: Any) -> tf.Tensor:
        """Probabilities of 50 batches, [50, batch, classes]."""
        rows = tf.TensorArray(tf.float32, STEPS_PER_EXECUTION)
        for index in tf.range(STEPS_PER_EXECUTION):
            features, _ = next(iterator)
            rows = rows.write(index, tf.nn.softmax(self.net(features, training=False)))
        return rows.stack()


class Loop(Contender):
    """The hand-written loop; its host side looks at one loss per chunk."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.trainer = Trainer(model)
        self.iterator = iter(models.dataset(model, model.data(), model.batch_size))

    def start(self) -> dict[str, float]:
        self.trainer.train(self.iterator).numpy()
        return {}

    def train(self, chunks: int, gate: Gate) -> None:
        for _ in range(chunks + 1):
            for _ in range(self.model.train_chunk // STEPS_PER_EXECUTION):
                loss = self.trainer.train(self.iterator)
            loss.numpy()
            gate()

    def prepare_evaluation(self) -> None:
        pass

    def evaluate(self, steps: int) -> None:
        losses = [self.trainer.evaluate(self.iterator) for _ in range(steps // STEPS_PER_EXECUTION)]
        float(tf.add_n(losses) / steps), float(self.trainer.hits)

    def predict(self, steps: int) -> None:
        for _ in range(steps // STEPS_PER_EXECUTION):
            self.trainer.predict(self.iterator).numpy()
