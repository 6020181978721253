"""A wide and deep model: who earns more than the others?"""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
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


def model_fn(features, labels, mode, params):
    """A linear model of categories and crosses, and a network of embeddings, added up."""
    age = tf.feature_column.numeric_column("age")
    hours = tf.feature_column.numeric_column("hours")
    age_buckets = tf.feature_column.bucketized_column(age, boundaries=[25, 35, 45, 55, 65])
    education = tf.feature_column.categorical_column_with_vocabulary_list("education", EDUCATION)
    occupation = tf.feature_column.categorical_column_with_hash_bucket("occupation", 20)
    crossed = tf.feature_column.crossed_column(["education", "occupation"], 50)
    wide_columns = [age_buckets, education, occupation, crossed]
    deep_columns = [
        hours,
        age_buckets,
        tf.feature_column.indicator_column(education),
        tf.feature_column.embedding_column(occupation, dimension=4),
    ]

    with tf.variable_scope("wide"):
        wide_logits = tf.feature_column.linear_model(features, wide_columns)
    with tf.variable_scope("deep"):
        net = tf.feature_column.input_layer(features, deep_columns)
        for i, units in enumerate(params["hidden_units"]):
            net = tf.layers.dense(net, units, activation=tf.nn.relu, name="hidden_%d" % i)
            net = tf.layers.dropout(
                net, params["dropout"], training=mode == tf.estimator.ModeKeys.TRAIN)
        deep_logits = tf.layers.dense(net, 1, name="logits")
    logits = wide_logits + deep_logits
    probability = tf.nn.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"probability": probability})

    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    metrics = {
        "accuracy": tf.metrics.accuracy(labels, tf.round(probability)),
        "mean_label": tf.metrics.mean(labels),
    }
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    optimizer = tf.train.AdagradOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    estimator = tf.estimator.Estimator(
        model_fn=model_fn,
        model_dir=FLAGS.model_dir,
        params={"hidden_units": [16, 8], "dropout": 0.0, "learning_rate": 0.05})
    estimator.train(lambda: input_fn(1, 800, True), max_steps=FLAGS.train_steps)
    print(estimator.evaluate(lambda: input_fn(2, 200, False)))


if __name__ == "__main__":
    tf.app.run()
