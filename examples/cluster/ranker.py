"""A wide and deep ranker of TF 1.15, for a job with parameter servers: will this user click?

    e2s run ranker.py --model_dir=/tmp/ranker          # one process
    TF_CONFIG='{"cluster": ...}' e2s run ranker.py --model_dir=/shared/ranker

The clicks are made: users and items have hidden tastes, and some pairs of age and category a liking
of their own, which only the crossed column can learn. The tables are cut up among the servers.
"""

import numpy as np
import tensorflow as tf

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Where checkpoints and events go.")
flags.DEFINE_integer("max_steps", 1500, "Global steps, of all workers together.")
flags.DEFINE_integer("batch_size", 256, "Examples in a step of one worker.")
flags.DEFINE_integer("seed", 0, "Another seed shuffles the clicks in another order.")

USERS, ITEMS, AGES, CATEGORIES = 20000, 5000, 8, 50


def clicks(count, seed):
    """`count` examples, from the same hidden tastes whatever the seed."""
    tastes = np.random.RandomState(7)
    of_user, of_item = tastes.normal(size=[USERS, 4]), tastes.normal(size=[ITEMS, 4])
    age, category = tastes.randint(AGES, size=USERS), tastes.randint(CATEGORIES, size=ITEMS)
    liking = tastes.normal(size=[AGES, CATEGORIES])
    draw = np.random.RandomState(seed)
    user, item = draw.zipf(1.2, count) % USERS, draw.zipf(1.2, count) % ITEMS
    score = (of_user[user] * of_item[item]).sum(1) + 1.5 * liking[age[user], category[item]]
    label = draw.uniform(size=count) < 1 / (1 + np.exp(-2 * score))
    features = {"user": user, "item": item, "age": age[user], "category": category[item]}
    return features, label.astype(np.int32)


def train_input():
    dataset = tf.data.Dataset.from_tensor_slices(clicks(200000, seed=1))
    return dataset.shuffle(20000, seed=FLAGS.seed).repeat().batch(FLAGS.batch_size).prefetch(2)


def eval_input():
    return tf.data.Dataset.from_tensor_slices(clicks(20000, seed=2)).batch(1000)


def ranker(config):
    column = tf.feature_column
    user = column.categorical_column_with_identity("user", USERS)
    item = column.categorical_column_with_identity("item", ITEMS)
    age = column.categorical_column_with_identity("age", AGES)
    category = column.categorical_column_with_identity("category", CATEGORIES)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[column.crossed_column([age, category], 2000)],
        linear_optimizer=tf.train.FtrlOptimizer(0.1),
        dnn_feature_columns=[
            column.embedding_column(user, 16),
            column.embedding_column(item, 16),
            column.indicator_column(age),
        ],
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[64, 32],
        input_layer_partitioner=tf.min_max_variable_partitioner(2, min_slice_size=2**16),
        model_dir=FLAGS.model_dir,
        config=config,
    )


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tf.estimator.RunConfig(
        save_checkpoints_steps=500,
        save_summary_steps=25,
        log_step_count_steps=100,
        experimental_max_worker_delay_secs=0,
    )
    tf.estimator.train_and_evaluate(
        ranker(config),
        tf.estimator.TrainSpec(train_input, max_steps=FLAGS.max_steps),
        tf.estimator.EvalSpec(eval_input, steps=None, start_delay_secs=5, throttle_secs=5),
    )


if __name__ == "__main__":
    tf.app.run()
