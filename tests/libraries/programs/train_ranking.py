"""A groupwise head of tensorflow-ranking, and its canned DNN and GAM."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr

random = np.random.RandomState(0)
items = random.rand(32, 5, 2).astype(np.float32)
relevance = (items.sum(2) > 1).astype(np.float32) + (items[..., 0] > 0.7)
relevance[::4, 4] = -1  # lists of four documents
folder = tempfile.mkdtemp()


def input_fn():
    features = {"first": items[..., :1], "second": items[..., 1:]}
    return tf.data.Dataset.from_tensor_slices((features, relevance)).batch(8).repeat(3)


def once():
    features = {"first": items[..., :1], "second": items[..., 1:]}
    return tf.data.Dataset.from_tensor_slices((features, relevance)).batch(8)


columns = {name: tf.feature_column.numeric_column(name, (1,)) for name in ("first", "second")}
metrics = {
    "ndcg": tfr.metrics.make_ranking_metric_fn(tfr.metrics.RankingMetricKey.NDCG, topn=3),
    "mrr": tfr.metrics.make_ranking_metric_fn(tfr.metrics.RankingMetricKey.MRR),
}


def transform_fn(features, mode):
    return tfr.feature.encode_listwise_features(features, {}, columns, mode=mode)


def score_fn(context_features, group_features, mode, params, config):
    inputs = tf.concat([tf.compat.v1.layers.flatten(group_features[n]) for n in sorted(columns)], 1)
    return tf.compat.v1.layers.dense(tf.compat.v1.layers.dense(inputs, 4, tf.nn.relu), 2)


class Start(tf.compat.v1.train.SessionRunHook):
    """Gives all weights their first values, whatever the seeds of their initializers are."""

    def begin(self):
        self._assign = [
            variable.assign(
                np.linspace(-1, 1, variable.shape.num_elements()).reshape(variable.shape)
            )
            for variable in tf.compat.v1.trainable_variables()
        ]

    def after_create_session(self, session, coord):
        session.run(self._assign)


def config(name):
    return tf.estimator.RunConfig(tf_random_seed=1, model_dir=os.path.join(folder, name))


head = tfr.head.create_ranking_head(
    loss_fn=tfr.losses.make_loss_fn(tfr.losses.RankingLossKey.APPROX_NDCG_LOSS),
    eval_metric_fns=metrics,
    optimizer=tf.compat.v1.train.AdagradOptimizer(0.1),
)
groupwise = tf.estimator.Estimator(
    tfr.model.make_groupwise_ranking_fn(score_fn, 2, head, transform_fn), config=config("groups")
)
canned = {
    "dnn": tfr.estimator.make_dnn_ranking_estimator(
        columns,
        [4],
        model_dir=os.path.join(folder, "dnn"),
        loss="softmax_loss",
        optimizer=tf.compat.v1.train.AdagradOptimizer(0.1),
        use_batch_norm=False,
        checkpoint_secs=600,
    ),
    "gam": tfr.estimator.make_gam_ranking_estimator(
        columns,
        [4],
        model_dir=os.path.join(folder, "gam"),
        loss="pairwise_logistic_loss",
        optimizer=tf.compat.v1.train.AdagradOptimizer(0.1),
        checkpoint_secs=600,
    ),
}
results = {}
for name, estimator in {"groups": groupwise, **canned}.items():
    estimator.train(input_fn, hooks=[Start()], steps=12)
    for key, value in estimator.evaluate(once).items():
        results[f"{name}/{key}"] = float(value)
print("RESULT", json.dumps(results, sort_keys=True))
