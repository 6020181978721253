"""A wide and deep model: who earns more than the others?"""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "wide_deep_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("batch_size", 40, "Examples in a batch.")

EDUCATION = ["school", "college", "bachelor", "master"]
OCCUPATION = ["cook", "nurse", "clerk", "driver", "teacher", "engineer", "painter"]


def people(count, seed):
    rng = np.random.RandomState(seed)
    education = rng.randint(0, len(EDUCATION), [count])
    occupation = rng.randint(0, len(OCCUPATION), [count])
    age = rng.uniform(18, 70, [count])
    hours = rng.uniform(10, 60, [count])
    score = education + (age - 40) / 20 + (hours - 35) / 20 + (occupation % 3)
    features = {
        "age": age.astype(np.float32),
        "hours": (hours / 60).astype(np.float32),
        "education": np.array(EDUCATION + ["unknown"])[np.where(age > 68, 4, education)],
        "occupation": np.array(OCCUPATION)[occupation],
    }
    return features, (score > 2.5).astype(np.float32)[:, None]


def input_fn(seed, count, repeat):
    data = tf.data.Dataset.from_tensor_slices(people(count, seed))
    return (data.repeat() if repeat else data).batch(FLAGS.batch_size)


class WideDeepModel(keras.Model):
    """A linear model of categories and crosses, and a network of embeddings, added up."""

    def __init__(self, params):
        super().__init__()
        self.age_bucketized = keras.layers.Discretization(
            [25, 35, 45, 55, 65], output_mode="one_hot"
        )
        self.wide_linear_model_age_bucketized = keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer="zeros",
            name="wide_linear_model_age_bucketized",
        )
        self.education = keras.layers.StringLookup(
            vocabulary=EDUCATION, output_mode="one_hot"
        )
        self.wide_linear_model_education = keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer="zeros",
            name="wide_linear_model_education",
        )
        self.education_X_occupation = keras.layers.HashedCrossing(
            50, output_mode="one_hot"
        )
        self.wide_linear_model_education_X_occupation = keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer="zeros",
            name="wide_linear_model_education_X_occupation",
        )
        self.occupation = keras.layers.Hashing(
            20 + 1, mask_value="", output_mode="one_hot"
        )
        self.wide_linear_model_occupation = keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer="zeros",
            name="wide_linear_model_occupation",
        )
        self.wide_linear_model_bias_weights = self.add_weight(
            shape=(1,), initializer="zeros", name="wide_linear_model_bias_weights"
        )
        self.deep_input_layer_occupation_embedding = keras.layers.Dense(
            4,
            use_bias=False,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=4**-0.5),
            name="deep_input_layer_occupation_embedding",
        )
        self.deep_hidden_layers = [
            keras.layers.Dense(units, activation="relu", name=f"deep_hidden_{i}")
            for i, units in enumerate(params["hidden_units"])
        ]
        self.dropout = keras.layers.Dropout(params["dropout"])
        self.deep_logits = keras.layers.Dense(1, name="deep_logits")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.mean_label_metric = keras.metrics.Mean(name="mean_label")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        age = keras.ops.reshape(keras.ops.cast(features["age"], "float32"), (-1, 1))
        age_bucketized = self.age_bucketized(age)
        education = self.education(features["education"])[:, 1:]
        education_X_occupation = self.education_X_occupation(
            (features["education"], features["occupation"])
        )
        occupation = self.occupation(features["occupation"])[:, 1:]
        wide_logits = (
            sum(
                [
                    self.wide_linear_model_age_bucketized(age_bucketized),
                    self.wide_linear_model_education(education),
                    self.wide_linear_model_education_X_occupation(
                        education_X_occupation
                    ),
                    self.wide_linear_model_occupation(occupation),
                ]
            )
            + self.wide_linear_model_bias_weights
        )
        hours = keras.ops.reshape(keras.ops.cast(features["hours"], "float32"), (-1, 1))
        net = keras.ops.concatenate(
            [
                age_bucketized,
                education,
                hours,
                self.deep_input_layer_occupation_embedding(occupation),
            ],
            axis=1,
        )
        for deep_hidden in self.deep_hidden_layers:
            net = deep_hidden(net)
            net = self.dropout(net, training=training)
        deep_logits = self.deep_logits(net)
        logits = wide_logits + deep_logits
        probability = keras.ops.sigmoid(logits)
        return {"probability": probability, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        loss = keras.losses.BinaryCrossentropy(from_logits=True)(labels, logits)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, probability = y, y_pred["probability"]
        self.accuracy_metric.update_state(labels, keras.ops.round(probability))
        self.mean_label_metric.update_state(labels)
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
            "mean_label": self.mean_label_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.Adagrad(learning_rate=params["learning_rate"], epsilon=0.0)


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
    params = {"hidden_units": [16, 8], "dropout": 0.0, "learning_rate": 0.05}
    model = WideDeepModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(1, 800, True), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(input_fn(2, 200, False), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
