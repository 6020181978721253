"""The model: weeks until a parcel is there."""

import keras

import layers
from losses import lateness


class SummedAdam(keras.optimizers.Adam):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)


class DeliveryModel(keras.Model):
    """Weeks until a parcel is there."""

    def __init__(self, params):
        super().__init__()
        self.depots = keras.layers.Embedding(
            params["depots"], 4, embeddings_initializer="glorot_uniform", name="depots"
        )
        self.first = layers.DenseBlock(params["units"], name="first")
        self.second = layers.DenseBlock(params["units"] // 2, name="second")
        self.weeks = keras.layers.Dense(1, name="weeks")
        self.error_metric = keras.metrics.Mean(name="error")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        distance = layers.scaled(features["distance"], 0.0, 1500.0)
        net = keras.ops.concatenate([distance, self.depots(features["depot"])], axis=1)
        # Two blocks are enough.
        net = self.first(net, training=training)
        net = self.second(net, training=training)
        weeks = keras.ops.squeeze(self.weeks(net), axis=1)
        predictions = {"weeks": weeks}
        return predictions

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, weeks = y, y_pred["weeks"]
        loss = lateness(labels, weeks) + sum(self.losses)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, weeks = y, y_pred["weeks"]
        self.error_metric.update_state(keras.ops.abs(weeks - labels))
        return {"loss": self.mean_loss.result(), "error": self.error_metric.result()}


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return SummedAdam(learning_rate=params["learning_rate"], epsilon=1e-8)
