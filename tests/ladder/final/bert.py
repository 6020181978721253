"""A small BERT that says if a sentence is in order: a transformer, warm-up, clipped gradients."""

import math
import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "bert_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("num_warmup_steps", 10, "Steps in which the learning rate rises.")

VOCAB_SIZE = 30
SEQ_LENGTH = 8


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    ids = np.sort(rng.randint(2, VOCAB_SIZE, [count, SEQ_LENGTH]), axis=1)
    labels = rng.randint(0, 2, [count])
    ids[labels == 1] = ids[labels == 1, ::-1]
    lengths = rng.randint(4, SEQ_LENGTH + 1, [count])
    mask = np.arange(SEQ_LENGTH) < lengths[:, None]
    features = {"input_ids": (ids * mask).astype(np.int32), "input_mask": mask.astype(np.int32)}
    return features, labels.astype(np.int32)


def input_fn(is_training, batch_size):
    data = tf.data.Dataset.from_tensor_slices(sentences(480 if is_training else 96, is_training))
    if is_training:
        data = data.repeat()
    return data.batch(batch_size)


def gelu(x):
    """Gaussian Error Linear Unit."""
    return x * 0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))


def create_initializer(initializer_range=0.02):
    return keras.initializers.TruncatedNormal(stddev=initializer_range)


class Embed(keras.layers.Layer):
    """Words, and the places at which they stand."""

    def __init__(self, hidden_size, name=None):
        super().__init__(name=name)
        self.word_embeddings = keras.layers.Embedding(
            VOCAB_SIZE,
            hidden_size,
            embeddings_initializer=create_initializer(),
            name="word_embeddings",
        )
        self.position_embeddings = self.add_weight(
            shape=[SEQ_LENGTH, hidden_size],
            initializer=create_initializer(),
            name="position_embeddings",
        )

    def call(self, input_ids):
        return self.word_embeddings(input_ids) + keras.ops.expand_dims(
            self.position_embeddings, axis=0
        )


class AttentionLayer(keras.layers.Layer):
    """Attention of each word to all others that are no padding."""

    def __init__(self, num_heads, size_per_head, name=None):
        super().__init__(name=name)
        width = num_heads * size_per_head
        self.num_heads = num_heads
        self.size_per_head = size_per_head
        self.query = keras.layers.Dense(
            width, kernel_initializer=create_initializer(), name="query"
        )
        self.key = keras.layers.Dense(
            width, kernel_initializer=create_initializer(), name="key"
        )
        self.value = keras.layers.Dense(
            width, kernel_initializer=create_initializer(), name="value"
        )
        self.probs = keras.layers.Dropout(0.0)

    def call(self, inputs, input_mask, training=False):
        shape = [-1, SEQ_LENGTH, self.num_heads, self.size_per_head]
        width = self.num_heads * self.size_per_head
        query = self.query(inputs)
        key = self.key(inputs)
        value = self.value(inputs)
        query, key, value = [
            keras.ops.transpose(keras.ops.reshape(one, shape), axes=[0, 2, 1, 3])
            for one in (query, key, value)
        ]
        scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(self.size_per_head)
        # Padding gets a large negative number before the softmax.
        padding = (1.0 - keras.ops.cast(input_mask, "float32")) * -10000.0
        probs = keras.ops.softmax(scores + padding[:, None, None, :])
        probs = self.probs(probs, training=training)
        context = keras.ops.transpose(keras.ops.matmul(probs, value), axes=[0, 2, 1, 3])
        return keras.ops.reshape(context, [-1, SEQ_LENGTH, width])


class TransformerLayer(keras.layers.Layer):
    """A layer of the transformer."""

    def __init__(self, params, name=None):
        super().__init__(name=name)
        hidden_size = params["hidden_size"]
        self.attention = AttentionLayer(
            params["num_heads"], hidden_size // params["num_heads"], name="attention"
        )
        self.output_dense = keras.layers.Dense(
            hidden_size, kernel_initializer=create_initializer(), name="output_dense"
        )
        self.output_LayerNorm = keras.layers.LayerNormalization(
            epsilon=1e-12, name="output_LayerNorm"
        )
        self.intermediate = keras.layers.Dense(
            params["intermediate_size"],
            activation=gelu,
            kernel_initializer=create_initializer(),
            name="intermediate",
        )
        self.final = keras.layers.Dense(
            hidden_size, kernel_initializer=create_initializer(), name="final"
        )

    def call(self, inputs, input_mask, training=False):
        attended = self.attention(inputs, input_mask, training=training)
        attended = self.output_dense(attended)
        attended = self.output_LayerNorm(inputs + attended)
        net = self.intermediate(attended)
        net = self.final(net)
        return attended + net


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each step."""

    def __init__(self, params):
        super().__init__()
        self.params = params

    def __call__(self, global_step):
        warmup_steps = tf.constant(FLAGS.num_warmup_steps, dtype=tf.float32)
        learning_rate = keras.optimizers.schedules.PolynomialDecay(
            self.params["learning_rate"], FLAGS.train_steps, end_learning_rate=0.0
        )(global_step)
        # Warm-up: the learning rate rises from 0.
        steps_done = tf.cast(global_step, tf.float32)
        warmup_rate = self.params["learning_rate"] * steps_done / warmup_steps
        is_warmup = tf.cast(steps_done < warmup_steps, tf.float32)
        learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * warmup_rate
        return learning_rate


class SummedAdam(keras.optimizers.Adam):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # Its norm is taken before they are added up.
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)


class BertModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self, params):
        super().__init__()
        self.bert_embeddings = Embed(params["hidden_size"], name="bert_embeddings")
        self.bert_layers = [
            TransformerLayer(params, name=f"bert_layer_{i}")
            for i in range(params["num_layers"])
        ]
        self.bert_pooler = keras.layers.Dense(
            params["hidden_size"],
            activation="tanh",
            kernel_initializer=create_initializer(),
            name="bert_pooler",
        )
        self.logits = keras.layers.Dense(
            2, kernel_initializer=create_initializer(), name="logits"
        )
        self.eval_accuracy_metric = keras.metrics.Accuracy(name="eval_accuracy")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = self.bert_embeddings(features["input_ids"])
        for bert_layer in self.bert_layers:
            net = bert_layer(net, features["input_mask"], training=training)
        first_token = keras.ops.squeeze(net[:, 0:1, :], axis=1)
        pooled = self.bert_pooler(first_token)
        logits = self.logits(pooled)
        predictions = {"probabilities": keras.ops.softmax(logits, axis=-1)}
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        log_probs = keras.ops.log_softmax(logits, axis=-1)
        one_hot_labels = tf.one_hot(labels, depth=2, dtype=tf.float32)
        loss = keras.ops.mean(-keras.ops.sum(one_hot_labels * log_probs, axis=-1))
        if training and keras.backend.backend() == "tensorflow":
            tf.summary.scalar("learning_rate", self.optimizer.learning_rate)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, logits = y, y_pred["logits"]
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        self.eval_accuracy_metric.update_state(labels, predicted)
        return {
            "loss": self.mean_loss.result(),
            "eval_accuracy": self.eval_accuracy_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    learning_rate = LearningRate(params)
    return SummedAdam(learning_rate=learning_rate, epsilon=1e-6)


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
    params = {
        "hidden_size": 16, "num_heads": 2, "num_layers": 2, "intermediate_size": 32,
        "learning_rate": 5e-3,
    }
    model = BertModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(True, 24), FLAGS.train_steps, FLAGS.model_dir)
    result = model.evaluate(input_fn(False, 24), verbose=0, return_dict=True)
    for key in sorted(result.keys()):
        print("%s = %s" % (key, result[key]))


if __name__ == "__main__":
    app.run(main)
