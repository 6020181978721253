"""The Keras contender: the same architectures, `fit(steps_per_execution=50)`."""

from __future__ import annotations

from functools import partial

import keras

from benchmarks import models, ranker, resnet
from benchmarks.contender import STEPS_PER_EXECUTION, Contender, Gate
from benchmarks.models import Model

layers = keras.layers


def dense_net() -> keras.Model:
    """Two hidden ReLU layers."""
    return keras.Sequential(
        [
            keras.Input([models.DENSE_FEATURES]),
            layers.Dense(models.DENSE_UNITS, "relu"),
            layers.Dense(models.DENSE_UNITS, "relu"),
            layers.Dense(models.CLASSES),
        ]
    )


def conv_net() -> keras.Model:
    """Two convolutions, a wide dense layer, dropout."""
    first, second = models.CONV_FILTERS
    return keras.Sequential(
        [
            keras.Input([28, 28, 1]),
            layers.Conv2D(first, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(second, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(models.CONV_UNITS, "relu"),
            layers.Dropout(models.CONV_DROPOUT),
            layers.Dense(models.CLASSES),
        ]
    )


class Positions(layers.Layer):
    """Adds learned position embeddings."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Creates one row per position."""
        self.table = self.add_weight(shape=shape[1:], initializer="truncated_normal")

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """Adds the rows."""
        return inputs + self.table


def encoder_layer(inputs: keras.KerasTensor, hidden: int, heads: int) -> keras.KerasTensor:
    """One transformer layer, normalised after each residual connection as in BERT."""
    drop = layers.Dropout(models.BERT_DROPOUT)
    attention = layers.MultiHeadAttention(heads, hidden // heads, dropout=models.BERT_DROPOUT)
    inputs = layers.LayerNormalization(epsilon=1e-6)(inputs + drop(attention(inputs, inputs)))
    output = layers.Dense(hidden)(layers.Dense(4 * hidden, "gelu")(inputs))
    output = layers.Dropout(models.BERT_DROPOUT)(output)
    return layers.LayerNormalization(epsilon=1e-6)(inputs + output)


def bert_net(depth: int = models.BERT_LAYERS) -> keras.Model:
    """Embeddings, transformer layers, a tanh pooler over the first token."""
    ids = keras.Input([models.BERT_SEQ], dtype="int32")
    outputs = Positions()(layers.Embedding(models.BERT_VOCAB, models.BERT_HIDDEN)(ids))
    outputs = layers.Dropout(models.BERT_DROPOUT)(layers.LayerNormalization(epsilon=1e-6)(outputs))
    for _ in range(depth):
        outputs = encoder_layer(outputs, models.BERT_HIDDEN, models.BERT_HEADS)
    pooled = layers.Dense(models.BERT_HIDDEN, "tanh")(outputs[:, 0])
    pooled = layers.Dropout(models.BERT_DROPOUT)(pooled)
    return keras.Model(ids, layers.Dense(models.CLASSES)(pooled))


def sgd() -> keras.optimizers.Optimizer:
    """Plain gradient descent."""
    return keras.optimizers.SGD(models.LEARNING_RATE)


def adam() -> keras.optimizers.Optimizer:
    """Adam."""
    return keras.optimizers.Adam(models.LEARNING_RATE)


def adam_weight_decay() -> keras.optimizers.Optimizer:
    """Adam with decoupled weight decay on gradients clipped by their global norm."""
    return keras.optimizers.AdamW(
        models.LEARNING_RATE, weight_decay=models.WEIGHT_DECAY, global_clipnorm=models.CLIP_NORM
    )


def adagrad() -> keras.optimizers.Optimizer:
    """Adagrad."""
    return keras.optimizers.Adagrad(models.LEARNING_RATE)


NETS = {
    "dense": (dense_net, sgd),
    "conv": (conv_net, adam),
    "bert": (bert_net, adam_weight_decay),
    "bert12": (partial(bert_net, 12), adam_weight_decay),
    "resnet": (resnet.keras_net, adam),
    "ranker": (ranker.keras_net, adagrad),
}


class GateAtEpochEnd(keras.callbacks.Callback):
    """An epoch of `fit` is a chunk; its iterator lives on over the epochs."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Ends the chunk."""
        self._gate()


class KerasFit(Contender):
    """`keras.Model.fit` with 50 steps per execution and no metric but the loss."""

    def __init__(self, model: Model) -> None:
        self.model = model
        net, self._optimizer = NETS[model.net or model.name]
        self.net = net()
        self.dataset = models.dataset(model, model.data(), model.batch_size)
        self._compile(metrics=[])

    def _compile(self, metrics: list[str]) -> None:
        self.net.compile(
            optimizer=self._optimizer(),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=metrics,
            steps_per_execution=STEPS_PER_EXECUTION,
        )

    def start(self) -> dict[str, float]:
        self.net.fit(self.dataset, steps_per_epoch=STEPS_PER_EXECUTION, verbose=0)
        return {}

    def train(self, chunks: int, gate: Gate) -> None:
        self.net.fit(
            self.dataset,
            steps_per_epoch=self.model.train_chunk,
            epochs=chunks + 1,
            callbacks=[GateAtEpochEnd(gate)],
            verbose=0,
        )

    def prepare_evaluation(self) -> None:
        self._compile(metrics=["accuracy"])

    def evaluate(self, steps: int) -> None:
        self.net.evaluate(self.dataset, steps=steps, verbose=0)

    def predict(self, steps: int) -> None:
        self.net.predict(self.dataset, steps=steps, verbose=0)
