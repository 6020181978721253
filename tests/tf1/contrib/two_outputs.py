"""A model_fn of `tf.contrib.learn` whose predictions come in two forms."""

import estimator2strategy.tf1 as tf

learn = tf.contrib.learn


def model_fn(features, labels, mode):
    scores = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
    train_op = tf.train.get_global_step().assign_add(1) if mode == "train" else None
    outputs = {
        "sum": (learn.ProblemType.LINEAR_REGRESSION, {"scores": scores}),
        "twice": (learn.ProblemType.UNSPECIFIED, {"double": scores * 2.0}),
    }
    loss = tf.reduce_sum(scores)
    return learn.ModelFnOps(mode, scores, loss, train_op, output_alternatives=outputs)
