"""Canned Estimators, heads and columns."""

from shared import classified, records


def _columns(tf):
    columns = tf.feature_column
    words = columns.categorical_column_with_hash_bucket("words", 20)
    kinds = columns.categorical_column_with_vocabulary_list("kind", ["a", "b"])
    age = columns.numeric_column("age")
    buckets = columns.bucketized_column(age, [1.0, 2.0])
    wide = [words, kinds, buckets, columns.crossed_column([buckets, "kind"], 30)]
    deep = [age, columns.embedding_column(words, 4), columns.indicator_column(kinds)]
    return wide, deep


def _table(tf, label=("int64", [1])):
    spec = {
        "words": tf.VarLenFeature(tf.string),
        "kind": tf.FixedLenFeature([1], tf.string),
        "age": tf.FixedLenFeature([1], tf.float32),
        "y": tf.FixedLenFeature(label[1], tf.as_dtype(label[0])),
    }
    features = records(tf, spec)
    return features, features.pop("y")


def canned(tf, kind, mode="train", **given):
    wide, deep = _columns(tf)
    label = ("float32", [1]) if "Regressor" in kind else ("int64", [1])
    if kind.startswith("DNNLinear"):
        given.update(linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4])
    elif kind.startswith("DNN"):
        given.update(feature_columns=deep, hidden_units=[4])
    elif kind.startswith("Linear"):
        given.update(feature_columns=wide)
    estimator = getattr(tf.estimator, kind)(model_dir="unused", **given)
    features, labels = _table(tf, label)
    tf.train.create_global_step()
    spec = estimator.model_fn(features, labels if mode != "infer" else None, mode, estimator.config)
    return spec.train_op


def headed(tf, head):
    _, deep = _columns(tf)
    heads = tf.contrib.estimator
    made = {
        "multi_label": lambda: heads.multi_label_head(3),
        "multi_class": lambda: heads.multi_class_head(4),
        "poisson": lambda: heads.poisson_regression_head(),
    }[head]()
    label = {"multi_label": ("int64", [3]), "poisson": ("float32", [1])}.get(head, ("int64", [1]))
    features, labels = _table(tf, label)
    net = tf.layers.dense(tf.feature_column.input_layer(features, deep), 4)
    logits = tf.layers.dense(net, made.logits_dimension)
    tf.train.create_global_step()
    return made.create_estimator_spec(
        features, "train", logits, labels, optimizer=tf.train.AdagradOptimizer(0.1)
    ).train_op


def sequence_columns(tf):
    columns = tf.feature_column
    words = columns.sequence_categorical_column_with_hash_bucket("words", 20)
    batch = records(
        tf, {"words": tf.VarLenFeature(tf.string), "y": tf.FixedLenFeature([], tf.int64)}
    )
    net, n = tf.contrib.feature_column.sequence_input_layer(
        batch, [columns.embedding_column(words, 4)]
    )
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), net, n, dtype=tf.float32)
    return classified(tf, batch["y"], state)


def linear_model(tf):
    wide, _ = _columns(tf)
    features, labels = _table(tf)
    logits = tf.feature_column.linear_model(features, wide)
    tf.metrics.precision(labels, logits > 0)
    return tf.losses.hinge_loss(labels, logits)
