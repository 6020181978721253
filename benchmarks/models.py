"""The benchmarked programs, written as legacy programs are: v1 graph ops, `model_fn`, `input_fn`.

The same file runs with the real TPUEstimator (TF 2.15) and with estimator2strategy (TF 2.16+):

    model = models.MODELS["dense"]
    tpu = estimator.tpu
    model_fn = models.make_model_fn(model, estimator)
    program = tpu.TPUEstimator(model_fn, config=tpu.RunConfig(...), use_tpu=False,
                               train_batch_size=model.batch_size)
    program.train(model.input_fn, steps=50)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks import ranker, resnet

EXAMPLES = 1024
CLASSES = 10
DENSE_FEATURES, DENSE_UNITS = 64, 128
CONV_FILTERS, CONV_UNITS, CONV_DROPOUT = (32, 64), 1024, 0.4
BERT_VOCAB, BERT_SEQ, BERT_HIDDEN, BERT_HEADS, BERT_LAYERS = 1000, 64, 128, 2, 2
BERT_DROPOUT = 0.1
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
CLIP_NORM = 1.0


# --- Data: synthetic, in memory ----------------------------------------------------------------


def dense_data() -> tuple[np.ndarray, np.ndarray]:
    """Returns float32 features [EXAMPLES, DENSE_FEATURES] and int32 labels [EXAMPLES]."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(EXAMPLES, DENSE_FEATURES)).astype(np.float32)
    return features, rng.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def conv_data() -> tuple[np.ndarray, np.ndarray]:
    """Returns float32 images [EXAMPLES, 28, 28, 1] and int32 labels [EXAMPLES]."""
    rng = np.random.default_rng(0)
    images = rng.random(size=(EXAMPLES, 28, 28, 1)).astype(np.float32)
    return images, rng.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def bert_data() -> tuple[np.ndarray, np.ndarray]:
    """Returns int32 token ids [EXAMPLES, BERT_SEQ] and int32 labels [EXAMPLES]."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, BERT_VOCAB, (EXAMPLES, BERT_SEQ)).astype(np.int32)
    return ids, rng.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def encoded_data() -> tuple[np.ndarray, np.ndarray]:
    """`dense_data` with each example's features as bytes."""
    features, labels = dense_data()
    return np.array([row.tobytes() for row in features], object), labels


def decoded(text: Any, label: Any) -> Any:
    """The example behind some bytes: work for the input pipeline."""
    features = tf.io.decode_raw(text, tf.float32)
    features = tf.reshape(features, [DENSE_FEATURES])
    return tf.nn.l2_normalize(tf.sort(features)), label


def dataset(model: Model, data: tuple[np.ndarray, np.ndarray], batch_size: int) -> Any:
    """The input pipeline of every contender."""
    autotune = tf.data.experimental.AUTOTUNE
    slices = tf.data.Dataset.from_tensor_slices(data).repeat()
    ahead = autotune
    if model.prepare:
        slices = slices.map(model.prepare, num_parallel_calls=autotune)
        ahead = 2  # a larger store would be filled while it is another contender's turn
    return slices.batch(batch_size, drop_remainder=True).prefetch(ahead)


# --- Forward passes ----------------------------------------------------------------------------


def dense(inputs: Any, units: int, name: str) -> Any:
    """A fully connected layer on the last axis."""
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel", [inputs.shape[-1], units], initializer=tf.glorot_uniform_initializer()
        )
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
    if inputs.shape.rank == 2:
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    flat = tf.reshape(inputs, [-1, int(inputs.shape[-1])])
    outputs = tf.nn.bias_add(tf.matmul(flat, kernel), bias)
    return tf.reshape(outputs, [-1, *[int(d) for d in inputs.shape[1:-1]], units])


def conv2d(images: Any, filters: int, name: str) -> Any:
    """A 5x5 convolution, ReLU and a 2x2 max pool."""
    with tf.variable_scope(name):
        shape = [5, 5, images.shape[-1], filters]
        kernel = tf.get_variable("kernel", shape, initializer=tf.glorot_uniform_initializer())
        bias = tf.get_variable("bias", [filters], initializer=tf.zeros_initializer())
    outputs = tf.nn.conv2d(images, kernel, strides=1, padding="SAME")
    outputs = tf.nn.relu(tf.nn.bias_add(outputs, bias))
    return tf.nn.max_pool2d(outputs, 2, 2, "VALID")


def layer_norm(inputs: Any, name: str) -> Any:
    """Layer normalisation of the last axis."""
    with tf.variable_scope(name):
        units = [inputs.shape[-1]]
        gamma = tf.get_variable("gamma", units, initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", units, initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(inputs, axes=[-1], keep_dims=True)
    return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-6)


def dropout(inputs: Any, rate: float, training: bool) -> Any:
    """Dropout while training, the identity otherwise."""
    return tf.nn.dropout(inputs, rate=rate) if training else inputs


def gelu(inputs: Any) -> Any:
    """The exact Gaussian error linear unit, which `tf.compat.v1.nn` lacks."""
    return 0.5 * inputs * (1.0 + tf.erf(inputs * 0.5**0.5))


def dense_logits(features: Any, training: bool) -> Any:
    """Two hidden ReLU layers."""
    del training
    hidden = tf.nn.relu(dense(features, DENSE_UNITS, "hidden_1"))
    hidden = tf.nn.relu(dense(hidden, DENSE_UNITS, "hidden_2"))
    return dense(hidden, CLASSES, "logits")


def conv_logits(images: Any, training: bool) -> Any:
    """Two convolutions, a wide dense layer, dropout."""
    hidden = conv2d(images, CONV_FILTERS[0], "conv_1")
    hidden = conv2d(hidden, CONV_FILTERS[1], "conv_2")
    hidden = tf.reshape(hidden, [-1, 7 * 7 * CONV_FILTERS[1]])
    hidden = tf.nn.relu(dense(hidden, CONV_UNITS, "hidden"))
    return dense(dropout(hidden, CONV_DROPOUT, training), CLASSES, "logits")


def split_heads(inputs: Any, heads: int) -> Any:
    """[batch, seq, hidden] -> [batch, heads, seq, hidden / heads]."""
    seq, hidden = int(inputs.shape[1]), int(inputs.shape[2])
    return tf.transpose(tf.reshape(inputs, [-1, seq, heads, hidden // heads]), [0, 2, 1, 3])


def attention(inputs: Any, heads: int, training: bool) -> Any:
    """Multi-head self-attention without its residual connection."""
    seq, hidden = int(inputs.shape[1]), int(inputs.shape[2])
    query = split_heads(dense(inputs, hidden, "query"), heads)
    key = split_heads(dense(inputs, hidden, "key"), heads)
    value = split_heads(dense(inputs, hidden, "value"), heads)
    scores = tf.matmul(query, key, transpose_b=True) * (hidden // heads) ** -0.5
    weights = dropout(tf.nn.softmax(scores), BERT_DROPOUT, training)
    context = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
    return dense(tf.reshape(context, [-1, seq, hidden]), hidden, "output")


def encoder_layer(inputs: Any, heads: int, training: bool) -> Any:
    """One transformer layer, normalised after each residual connection as in BERT."""
    hidden = int(inputs.shape[-1])
    attended = dropout(attention(inputs, heads, training), BERT_DROPOUT, training)
    inputs = layer_norm(inputs + attended, "attention_norm")
    expanded = gelu(dense(inputs, 4 * hidden, "intermediate"))
    output = dropout(dense(expanded, hidden, "output_dense"), BERT_DROPOUT, training)
    return layer_norm(inputs + output, "output_norm")


def bert_logits(
    ids: Any,
    training: bool,
    layers: int = BERT_LAYERS,
    hidden: int = BERT_HIDDEN,
    heads: int = BERT_HEADS,
) -> Any:
    """Embeddings, `layers` transformer layers, a tanh pooler over the first token."""
    normal = tf.truncated_normal_initializer(stddev=0.02)
    with tf.variable_scope("embeddings"):
        words = tf.get_variable("words", [BERT_VOCAB, hidden], initializer=normal)
        positions = tf.get_variable("positions", [BERT_SEQ, hidden], initializer=normal)
    embedded = layer_norm(tf.nn.embedding_lookup(words, ids) + positions, "embeddings_norm")
    outputs = dropout(embedded, BERT_DROPOUT, training)
    for layer in range(layers):
        with tf.variable_scope(f"layer_{layer}"):
            outputs = encoder_layer(outputs, heads, training)
    pooled = tf.tanh(dense(outputs[:, 0], hidden, "pooler"))
    return dense(dropout(pooled, BERT_DROPOUT, training), CLASSES, "logits")


# --- Training ----------------------------------------------------------------------------------


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without bias correction and with decoupled weight decay, from elementary ops."""

    def __init__(self, learning_rate: float, weight_decay: float) -> None:
        super().__init__(use_locking=False, name="AdamWeightDecay")
        self._rate, self._decay = learning_rate, weight_decay

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Returns the op that updates every variable, its two moments and `global_step`."""
        updates = [op for grad, var in grads_and_vars for op in self._update(grad, var)]
        if global_step is not None:
            updates.append(global_step.assign_add(1))
        return tf.group(*updates, name=name)

    def _update(self, grad: Any, var: Any) -> list[Any]:
        name = var.op.name
        zeros = tf.zeros_initializer()
        mean = tf.get_variable(f"{name}/m", var.shape, initializer=zeros, trainable=False)
        square = tf.get_variable(f"{name}/v", var.shape, initializer=zeros, trainable=False)
        grad = tf.convert_to_tensor(grad)  # The word embeddings' is sparse.
        next_mean = 0.9 * mean + 0.1 * grad
        next_square = 0.999 * square + 0.001 * tf.square(grad)
        update = next_mean / (tf.sqrt(next_square) + 1e-6)
        if not name.endswith(("bias", "beta", "gamma")):
            update += self._decay * var
        return [
            var.assign(var - self._rate * update),
            mean.assign(next_mean),
            square.assign(next_square),
        ]


def sgd_train_op(loss: Any) -> Any:
    """Plain gradient descent."""
    optimizer = tf.train.GradientDescentOptimizer(LEARNING_RATE)
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def adam_train_op(loss: Any) -> Any:
    """Adam, with TensorFlow's fused update, and what batch norm asks for."""
    optimizer = tf.train.AdamOptimizer(LEARNING_RATE)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def adagrad_train_op(loss: Any) -> Any:
    """Adagrad, with TensorFlow's fused and sparse updates."""
    optimizer = tf.train.AdagradOptimizer(LEARNING_RATE)
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def bert_train_op(loss: Any) -> Any:
    """Adam with weight decay on gradients clipped by their global norm."""
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), CLIP_NORM)
    optimizer = AdamWeightDecayOptimizer(LEARNING_RATE, WEIGHT_DECAY)
    return optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())


@dataclasses.dataclass(frozen=True)
class Model:
    """A benchmarked program; the chunks are steps timed at once, multiples of 50."""

    name: str
    batch_size: int
    train_chunk: int
    eval_chunk: int
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    logits: Callable[[Any, bool], Any]
    train_op: Callable[[Any], Any]
    net: str = ""  # The name of what the other contenders train; default: its own.
    prepare: Callable[..., Any] | None = None  # Maps an example, in the input pipeline.

    def input_fn(self, params: dict[str, Any]) -> Any:
        """The legacy `input_fn`: an endless dataset of full batches."""
        return dataset(self, self.data(), params["batch_size"])


def metric_fn(labels: Any, logits: Any) -> dict[str, Any]:
    """The accuracy, as in most legacy programs."""
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))}


def make_model_fn(model: Model, estimator: Any) -> Callable[..., Any]:
    """Returns `model_fn(features, labels, mode, params)`.

    Args:
      model: What to build.
      estimator: `tf.estimator`'s v1 module, or its drop-in `estimator2strategy.estimator`.
    """
    modes, spec = estimator.ModeKeys, estimator.tpu.TPUEstimatorSpec

    def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
        del params
        logits = model.logits(features, mode == modes.TRAIN)
        if mode == modes.PREDICT:
            return spec(mode, predictions={"probabilities": tf.nn.softmax(logits)})
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        if mode == modes.EVAL:
            return spec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
        return spec(mode, loss=loss, train_op=model.train_op(loss))

    return model_fn


MODELS = {
    model.name: model
    for model in (
        Model("dense", 32, 10_000, 5000, dense_data, dense_logits, sgd_train_op),
        Model("conv", 32, 50, 1000, conv_data, conv_logits, adam_train_op),
        Model("bert", 8, 100, 2000, bert_data, bert_logits, bert_train_op),
        Model("resnet", 16, 50, 200, partial(resnet.data, EXAMPLES), resnet.logits, adam_train_op),
        Model("bert12", 4, 50, 200, bert_data, partial(bert_logits, layers=12), bert_train_op),
        Model(
            "ranker",
            64,
            1000,
            2000,
            partial(ranker.data, EXAMPLES),
            partial(ranker.logits, dense=dense),
            adagrad_train_op,
        ),
        Model(
            "input",
            32,
            2000,
            2000,
            encoded_data,
            dense_logits,
            sgd_train_op,
            net="dense",
            prepare=decoded,
        ),
    )
}
