"""A small TPUEstimator program, for goldens: batch norm, Adam with a schedule, metrics, serving.

    python verified.py [--model_dir=/tmp/model] [--use_tpu] [--dropout=0.3] [--mutation=...]

Runs on TensorFlow 1.13 to 2.15, and with `e2s run`. `mutation` makes one of the
mistakes that `e2s verify` must find.
"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

try:
    tpu = tf.estimator.tpu
except AttributeError:
    from tensorflow.contrib import tpu  # TensorFlow 1.13

FEATURES, CLASSES, BATCH = 6, 3, 16


def examples(count, seed):
    random = np.random.RandomState(seed)
    labels = random.randint(0, CLASSES, count).astype(np.int32)
    x = random.normal(size=(count, FEATURES)) + 1.5 * labels[:, np.newaxis] * [1, 0, -1, 0, 1, 0]
    return {"x": x.astype(np.float32)}, labels


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(examples(20 * BATCH, seed=1))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    """Three batches and a half."""
    count = 3 * BATCH + BATCH // 2
    return tf.data.Dataset.from_tensor_slices(examples(count, seed=2)).batch(params["batch_size"])


def serving_input_fn():
    features = {"x": tf.placeholder(tf.float32, [None, FEATURES], name="x")}
    return tf.estimator.export.ServingInputReceiver(features, features)


def metric_fn(labels, logits):
    return {
        "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
        "first class": tf.metrics.mean(tf.cast(tf.equal(labels, 0), tf.float32)),
    }


def model_fn(features, labels, mode, params):
    training, mutation = mode == tf.estimator.ModeKeys.TRAIN, params["mutation"]
    hidden = tf.layers.dense(features["x"], 8, name="hidden")
    hidden = tf.layers.batch_normalization(hidden, momentum=0.9, training=training, name="norm")
    hidden = tf.nn.relu(hidden)
    if "dropout" in params:
        hidden = tf.layers.dropout(hidden, params["dropout"], training=training)
    logits = tf.layers.dense(hidden, CLASSES, name="logits")
    predictions = {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(
            mode,
            predictions=predictions,
            export_outputs={"serving_default": tf.estimator.export.PredictOutput(predictions)},
        )
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_sum(losses) if mutation == "sum for mean" else tf.reduce_mean(losses)
    train_op = None
    if training:
        train_op = _train_op(loss, params, mutation)
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits])
    )


def _train_op(loss, params, mutation):
    step = tf.train.get_global_step()
    at = step + 1 if mutation == "shifted learning rate" else step
    rate = tf.train.exponential_decay(params["learning_rate"], at, 5, 0.5, staircase=True)
    betas = {"beta1": 0.999, "beta2": 0.9} if mutation == "swapped betas" else {}
    optimizer = tf.train.AdamOptimizer(rate, **betas)
    if params["use_tpu"]:
        reduction = "weighted_sum" if mutation == "sum over cores" else "weighted_mean"
        optimizer = tf.tpu.CrossShardOptimizer(optimizer, reduction)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies([] if mutation == "skipped update ops" else updates):
        return optimizer.minimize(loss, step)


def build_estimator(flags):
    params = {"learning_rate": 0.05, "mutation": flags.get("mutation", "")}
    if "dropout" in flags:
        params["dropout"] = float(flags["dropout"])
    return tpu.TPUEstimator(
        model_fn,
        model_dir=flags.get("model_dir"),
        config=tpu.RunConfig(tf_random_seed=1),
        params=params,
        use_tpu="use_tpu" in flags,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
    )


def main(argv):
    flags = dict(flag.lstrip("-").partition("=")[::2] for flag in argv)
    estimator = build_estimator(flags)
    estimator.train(input_fn, max_steps=20)
    print(estimator.evaluate(eval_input_fn, steps=4))
    print(len(list(estimator.predict(eval_input_fn))))
    print(estimator.export_saved_model(flags.get("export_dir", "/tmp/export"), serving_input_fn))


if __name__ == "__main__":
    main(sys.argv[1:])
