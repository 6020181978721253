"""The model: weeks until a parcel is there."""
import tensorflow as tf

import layers
from losses import lateness


def delivery_model_fn(features, labels, mode, params):
    """Weeks until a parcel is there."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    distance = layers.scaled(features["distance"], 0.0, 1500.0)
    depot = tf.get_variable("depots", [params["depots"], 4])
    net = tf.concat([distance, tf.nn.embedding_lookup(depot, features["depot"])], axis=1)
    # Two blocks are enough.
    net = layers.dense_block(net, params["units"], training, name="first")
    net = layers.dense_block(net, params["units"] // 2, training, name="second")
    weeks = tf.squeeze(tf.layers.dense(net, 1, name="weeks"), axis=1)
    predictions = {"weeks": weeks}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)

    loss = lateness(labels, weeks) + tf.losses.get_regularization_loss()
    metrics = {"error": tf.metrics.mean_absolute_error(labels, weeks)}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
