"""Cases for `tf.contrib.losses`."""

from parity import values


def metric_learning(tf):
    embeddings = tf.nn.l2_normalize(tf.constant(values([6, 4], "embeddings"), tf.float32), 1)
    labels = tf.constant([0, 1, 2, 0, 1, 2])
    losses = tf.contrib.losses.metric_learning
    return {
        "triplet": losses.triplet_semihard_loss(labels, embeddings, margin=0.8),
        "lifted": losses.lifted_struct_loss(labels, embeddings),
        "npairs": losses.npairs_loss(labels[:3], embeddings[:3], embeddings[3:]),
        "contrastive": losses.contrastive_loss([1, 0, 1], embeddings[:3], embeddings[3:]),
    }


def losses(tf):
    losses = tf.contrib.losses
    logits = tf.constant(values([3, 4], "logits"), tf.float32)
    classes = tf.constant([0, 3, 1])
    one_hot = tf.one_hot(classes, 4)
    return {
        "softmax": losses.softmax_cross_entropy(logits, one_hot, label_smoothing=0.1),
        "sparse": losses.sparse_softmax_cross_entropy(logits, classes),
        "sigmoid": losses.sigmoid_cross_entropy(logits, one_hot, weights=2.0),
        "absolute": losses.absolute_difference(logits, one_hot),
        "squared": losses.mean_squared_error(logits, one_hot),
        "hinge": losses.hinge_loss(logits, one_hot),
        "log": losses.log_loss(tf.nn.softmax(logits), one_hot),
        "total": losses.get_total_loss(),
    }
