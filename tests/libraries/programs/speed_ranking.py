"""A groupwise head of tensorflow-ranking, as large as that of its examples: 136 features of 100
documents, 32 lists, layers of 256, 128 and 64 with batch norm.
"""

import sys
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr
import turns

EVERY, BATCH, LISTS, DOCUMENTS = 20, 32, 128, 100
random = np.random.RandomState(0)
names = [f"feature_{i}" for i in range(136)]
arrays = {name: random.rand(LISTS, DOCUMENTS, 1).astype(np.float32) for name in names}
relevance = random.randint(-1, 5, (LISTS, DOCUMENTS)).astype(np.float32)
columns = {name: tf.feature_column.numeric_column(name, (1,)) for name in names}


class Start(tf.compat.v1.train.SessionRunHook):
    """Feeds the arrays to the iterator, once."""

    def after_create_session(self, session, coord):
        session.run(self.iterator.initializer, self.arrays)


start = Start()


def input_fn():
    fed = {name: tf.compat.v1.placeholder(tf.float32, a.shape) for name, a in arrays.items()}
    labels = tf.compat.v1.placeholder(tf.float32, relevance.shape)
    start.arrays = {labels: relevance, **{fed[name]: arrays[name] for name in names}}
    dataset = tf.data.Dataset.from_tensor_slices((fed, labels)).shuffle(1000).repeat().batch(BATCH)
    start.iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    return start.iterator.get_next()


def transform_fn(features, mode):
    return tfr.feature.encode_listwise_features(features, {}, columns, mode=mode)


def score_fn(context_features, group_features, mode, params, config):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.concat([tf.compat.v1.layers.flatten(group_features[n]) for n in sorted(names)], 1)
    net = tf.compat.v1.layers.batch_normalization(net, training=training)
    for units in (256, 128, 64):
        net = tf.compat.v1.layers.dense(net, units)
        net = tf.nn.relu(tf.compat.v1.layers.batch_normalization(net, training=training))
    net = tf.compat.v1.layers.dropout(net, 0.5, training=training)
    return tf.compat.v1.layers.dense(net, 1)


def train_op_fn(loss):
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.01)
    step = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    return tf.group(step, *tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS))


head = tfr.head.create_ranking_head(
    loss_fn=tfr.losses.make_loss_fn(tfr.losses.RankingLossKey.PAIRWISE_LOGISTIC_LOSS),
    train_op_fn=train_op_fn,
)
estimator = tf.estimator.Estimator(
    tfr.model.make_groupwise_ranking_fn(score_fn, 1, head, transform_fn),
    tempfile.mkdtemp(),
    tf.estimator.RunConfig(tf_random_seed=1, log_step_count_steps=EVERY),
)
turns.start(EVERY)
estimator.train(input_fn, hooks=[start], steps=EVERY * int(sys.argv[1]) + 1)
