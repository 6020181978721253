"""Cases for `tf.contrib.layers`."""

from parity import deep, values


def _images(tf):
    return tf.constant(values([2, 6, 6, 3], "images"), tf.float32)


def _rows(tf):
    return tf.constant(values([4, 5], "rows"), tf.float32)


def _train(tf, loss):
    """Three steps of SGD, and the loss after them."""
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    before = {"loss": loss}
    return [before, {"step": step}, {"step": step}, {"step": step}, before]


def layer_norm(tf):
    with tf.variable_scope("block"):
        first = tf.contrib.layers.layer_norm(_images(tf))
        second = tf.contrib.layers.layer_norm(_rows(tf), begin_norm_axis=-1, scope="other")
        third = tf.contrib.layers.layer_norm(_images(tf), center=False, activation_fn=tf.nn.relu)
        fourth = tf.contrib.layers.layer_norm(_rows(tf), reuse=True, scope="other")
    return {"first": first, "second": second, "third": third, "fourth": fourth}


def layer_norm_in_collections(tf):
    outputs = tf.contrib.layers.layer_norm(
        _rows(tf), variables_collections=["mine"], outputs_collections="outputs", trainable=False
    )
    assert tf.get_collection("outputs") == [outputs]
    names = [v.op.name for v in tf.get_collection("mine")]
    model = [v.op.name for v in tf.contrib.framework.get_model_variables()]
    return {"outputs": outputs, "mine": tf.constant(names), "model": tf.constant(model)}


def fully_connected(tf):
    layers = tf.contrib.layers
    hidden = layers.fully_connected(
        _rows(tf), 7, weights_regularizer=layers.l2_regularizer(0.1), scope="hidden"
    )
    logits = layers.fully_connected(hidden, 3, activation_fn=None)
    more = layers.fully_connected(hidden, 3, biases_initializer=None)
    loss = (
        tf.reduce_mean(tf.square(logits))
        + tf.reduce_mean(more)
        + tf.losses.get_regularization_loss()
    )
    return _train(tf, loss)


def fully_connected_on_three_axes(tf):
    inputs = tf.constant(values([2, 3, 4], "three"), tf.float32)
    outputs = tf.contrib.layers.fully_connected(
        inputs, 2, normalizer_fn=tf.contrib.layers.layer_norm
    )
    return {"outputs": outputs, "linear": tf.contrib.layers.linear(inputs, 2)}


def conv2d_and_batch_norm(tf):
    layers = tf.contrib.layers
    net = layers.conv2d(
        _images(tf),
        4,
        [3, 3],
        stride=2,
        normalizer_fn=layers.batch_norm,
        normalizer_params={"is_training": True, "decay": 0.9, "scale": True},
    )
    net = layers.max_pool2d(net, 2)
    net = layers.conv2d(net, 2, 1, rate=1, padding="VALID", activation_fn=tf.tanh)
    return _train(tf, tf.reduce_mean(tf.square(layers.flatten(net) - 0.3)))


def batch_norm_that_is_not_fused(tf):
    training = tf.contrib.layers.batch_norm(
        _rows(tf),
        center=False,
        scale=True,
        epsilon=0.01,
        is_training=True,
        updates_collections=None,
    )
    serving = tf.contrib.layers.batch_norm(
        _images(tf), fused=False, is_training=False, activation_fn=tf.nn.relu, scope="serving"
    )
    return [{"training": training}, {"training": training, "serving": serving}]


def batch_norm_in_a_switch(tf):
    training = tf.placeholder_with_default(True, [])
    outputs = tf.contrib.layers.batch_norm(_images(tf), is_training=training, decay=0.5)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        updated = tf.constant(1)
    return [{"outputs": outputs, "updated": updated}, {"mean": tf.moving_average_variables()}]


def other_layers(tf):
    layers, images, rows = tf.contrib.layers, _images(tf), _rows(tf)
    return {
        "separable": layers.separable_conv2d(images, 4, 3, 2),
        "depthwise": layers.separable_conv2d(images, None, 3, 1),
        "transpose": layers.conv2d_transpose(images, 2, 3, 2),
        "conv1d": layers.convolution1d(images[:, 0], 2, 3),
        "plane": layers.conv2d_in_plane(images, 2),
        "avg": layers.avg_pool2d(images, 3),
        "max": layers.max_pool2d(images, 3, 1, padding="SAME"),
        "bias": layers.bias_add(rows, activation_fn=tf.nn.relu),
        "softmax": layers.softmax(images),
        "unit": layers.unit_norm(rows, 1),
        "maxout": layers.maxout(tf.concat([rows, rows[:, :1]], 1), 3),
        "one_hot": layers.one_hot_encoding(tf.constant([0, 2]), 3),
        "repeat": layers.repeat(rows, 2, layers.fully_connected, 3, scope="fc"),
        "stack": layers.stack(rows, layers.fully_connected, [3, 2], scope="tower"),
        "dropout": layers.dropout(rows, is_training=False),
        "kept": layers.dropout(rows, keep_prob=1.0),
        "group": layers.group_norm(tf.tile(images, [1, 1, 1, 2]), groups=3),
        "instance": layers.instance_norm(images),
        "elu": layers.elu(rows, 2),
        "relu6": layers.relu6(rows, 2),
        "spatial": layers.spatial_softmax(images),
        "gdn": layers.gdn(images),
    }


def regularizers(tf):
    layers, rows = tf.contrib.layers, _rows(tf)
    weights = tf.get_variable("weights", [3, 2])
    both = layers.sum_regularizer([layers.l1_regularizer(0.1), layers.l2_regularizer(0.2)])
    applied = layers.apply_regularization(layers.l1_l2_regularizer(0.3, 0.4), [weights, rows])
    return {
        "l1": layers.l1_regularizer(0.5)(rows),
        "l2": layers.l2_regularizer(0.5)(weights),
        "both": both(weights),
        "applied": applied,
        "collected": tf.losses.get_regularization_losses(),
    }


def initializers(tf):
    layers = tf.contrib.layers
    made = {
        "xavier": layers.xavier_initializer(seed=3),
        "xavier_normal": layers.xavier_initializer_conv2d(uniform=False, seed=3),
        "variance": layers.variance_scaling_initializer(seed=3),
        "fan_avg": layers.variance_scaling_initializer(1.0, "FAN_AVG", True, seed=4),
        "fan_out": layers.variance_scaling_initializer(mode="FAN_OUT", seed=5),
    }
    return {
        name: tf.get_variable(name, [3, 3, 2, 4], initializer=initializer, trainable=False)
        for name, initializer in made.items()
    }


def optimize_loss(tf):
    weights = tf.get_variable("weights", [4])
    loss = tf.reduce_sum(tf.square(weights - 1.0))
    step = tf.train.get_or_create_global_step()
    train = tf.contrib.layers.optimize_loss(
        loss,
        step,
        0.1,
        "Adam",
        clip_gradients=0.5,
        learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 2, 0.5),
        summaries=["loss", "learning_rate", "gradients", "gradient_norm"],
    )
    kept = {"weights": weights, "step": step}
    return [{"train": train}, kept, {"train": train}, kept]


def optimize_loss_with_its_own_optimizer(tf):
    weights = tf.get_variable("weights", [4])
    table = tf.get_variable("table", [5, 4])
    rows = tf.nn.embedding_lookup(table, [1, 3, 1])
    loss = tf.reduce_sum(tf.square(rows * weights - 1.0))
    train = tf.contrib.layers.optimize_loss(
        loss,
        tf.train.create_global_step(),
        None,
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        gradient_multipliers={"weights": 2.0},
        colocate_gradients_with_ops=True,
        name="mine",
        clip_gradients=tf.contrib.layers.adaptive_clipping_fn(decay=0.9)
        if hasattr(tf.contrib.layers, "adaptive_clipping_fn")
        else 1.0,
    )
    return [{"train": train}, {"weights": weights, "table": table}]


def summaries(tf):
    layers = tf.contrib.layers
    rows = layers.fully_connected(_rows(tf), 2, scope="rows", outputs_collections="all")
    layers.summarize_activation(rows)
    layers.summarize_tensors([tf.reduce_sum(rows, name="total")])
    layers.summarize_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
    merged = tf.get_collection(tf.GraphKeys.SUMMARIES)
    return {"names": tf.constant(sorted(s.op.name for s in merged))}


def named_outputs(tf):
    utils = tf.contrib.layers.utils if hasattr(tf.contrib.layers, "utils") else None
    if utils is None:
        from tensorflow.contrib.layers.python.layers import utils
    layers = tf.contrib.layers
    first = layers.fully_connected(_rows(tf), 3, scope="first", outputs_collections="net")
    utils.collect_named_outputs("net", "alias", layers.fully_connected(first, 2, scope="second"))
    points = utils.convert_collection_to_dict("net")
    return dict(points, names=tf.constant(list(points)))


def embed_sequence(tf):
    layers = tf.contrib.layers
    ids = tf.constant([[1, 0, 4], [4, 4, 2]])
    first = layers.embed_sequence(ids, 5, 3, scope="words")
    again = layers.embed_sequence(ids, 5, 3, scope="words", reuse=True, unique=True)
    other = layers.embed_sequence(ids, 5, 2, regularizer=layers.l2_regularizer(1.0))
    return {
        "first": first,
        "again": again,
        "other": other,
        "loss": tf.losses.get_regularization_loss(),
    }


def sparse_lookup(tf):
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 2], tf.int64), [3, 2])
    table = tf.get_variable("table", [5, 2])
    lookup = tf.contrib.layers.safe_embedding_lookup_sparse
    return {
        "mean": lookup([table], ids, combiner="mean"),
        "sum": lookup([table], ids, combiner="sum", default_id=4),
    }


def _features(tf):
    return {
        "age": tf.constant([[20.0], [35.0], [61.0]]),
        "pair": tf.constant([[0.1, 0.9], [0.4, 0.2], [2.0, -1.0]]),
        "job": tf.constant([["cook"], ["smith"], [""]]),
        "town": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["Rome", "Oslo", "Paris"], [3, 2]),
        "heavy": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [2.0, -1.0, 0.5], [3, 2]),
        "number": tf.constant([[3], [14], [7]], tf.int64),
    }


def _columns(tf):
    layers = tf.contrib.layers
    age = layers.real_valued_column("age", normalizer=lambda x: x / 10)
    pair = layers.real_valued_column("pair", 2)
    job = layers.sparse_column_with_keys("job", ["smith", "cook"])
    town = layers.sparse_column_with_hash_bucket("town", 7)
    number = layers.sparse_column_with_integerized_feature("number", 5)
    buckets = layers.bucketized_column(layers.real_valued_column("pair", 2), [0.0, 0.3, 0.3, 1.0])
    return age, pair, job, town, number, buckets


def linear_of_feature_columns(tf):
    layers = tf.contrib.layers
    age, pair, job, town, number, buckets = _columns(tf)
    weighted = layers.weighted_sparse_column(town, "heavy")
    columns = [age, pair, job, town, number, buckets, weighted]
    sums, variables, bias = layers.weighted_sum_from_feature_columns(_features(tf), columns, 2)
    return {"sums": sums, "bias": bias, "town": variables[town]}


def crosses_of_feature_columns(tf):
    layers = tf.contrib.layers
    _, _, job, town, number, buckets = _columns(tf)
    columns = [
        layers.crossed_column([job, town], 11),
        layers.crossed_column([number, town], 13),
        layers.crossed_column([town, buckets, number], 1000),
        layers.crossed_column([layers.crossed_column([job, town], 11), number], 17),
        layers.crossed_column([job, number], 19, hash_key=0xDECAFCAFFE),
    ]
    # The features of crosses are ints and sparse strings.
    features = dict(_features(tf), job=tf.SparseTensor([[0, 0], [1, 0]], ["cook", "smith"], [3, 1]))
    features["number"] = tf.SparseTensor(
        [[0, 0], [1, 0], [2, 0]], tf.constant([3, 14, 7], tf.int64), [3, 1]
    )
    sums, _, _ = layers.weighted_sum_from_feature_columns(features, columns, 1)
    return {"sums": sums}


def network_of_feature_columns(tf):
    layers = tf.contrib.layers
    age, pair, job, town, number, buckets = _columns(tf)
    columns = [
        age,
        pair,
        buckets,
        layers.one_hot_column(job),
        layers.one_hot_column(layers.weighted_sparse_column(number, "number_weight")),
        layers.embedding_column(town, 3),
        layers.embedding_column(layers.weighted_sparse_column(town, "heavy"), 2, combiner="sqrtn"),
        layers.embedding_column(number, 2, combiner="sum", max_norm=0.3),
    ]
    features = dict(_features(tf), number_weight=tf.constant([[1.0], [0.5], [2.0]]))
    parts = {}
    inputs = layers.input_from_feature_columns(features, columns, cols_to_outs=parts)
    return {"inputs": inputs, "town": parts[columns[5]]}


def parsed_feature_columns(tf):
    layers = tf.contrib.layers
    _, _, job, town, _, _ = _columns(tf)
    age = layers.real_valued_column("age", default_value=3)
    spec = layers.create_feature_spec_for_parsing([age, job, town])
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"cook"]))
    example = tf.train.Example(features=tf.train.Features(feature={"job": feature}))
    parsed = tf.parse_example([example.SerializeToString()], spec)
    return {"age": parsed["age"], "job": tf.sparse.to_dense(parsed["job"], default_value="")}


def bags_of_words(tf):
    layers = tf.contrib.layers
    ids = tf.constant([[1, 0, 4], [4, 4, 2], [0, 0, 0]], tf.int64)
    table = tf.get_variable("table", [5, 2])
    return {
        "sparse": layers.bow_encoder(ids, 5, 3),
        "dense": layers.bow_encoder(ids, 5, 2, sparse_lookup=False, scope="words"),
        "unique": layers.embedding_lookup_unique(table, ids[None]),
    }


def shared_embedding_columns(tf):
    layers = tf.contrib.layers
    _, _, job, town, *_ = _columns(tf)
    home = layers.sparse_column_with_hash_bucket("home", 7, combiner="mean")
    heavy = layers.weighted_sparse_column(town, "heavy")
    features = dict(_features(tf), home=tf.constant([["Oslo"], ["Rome"], [""]]))
    columns = layers.shared_embedding_columns([town, home, heavy], 3, combiner="sum")
    (alone,) = layers.shared_embedding_columns([job], 2, shared_embedding_name="jobs")
    also = layers.shared_embedding_columns([job, job], 2, shared_embedding_name="jobs")[:1]
    return {
        "inputs": layers.input_from_feature_columns(features, [*columns, alone]),
        "again": layers.input_from_feature_columns(features, also),
    }


def sequences_of_feature_columns(tf):
    layers = tf.contrib.layers
    places, shape = [[0, 0], [0, 1], [1, 0], [2, 1]], [3, 2]
    town = layers.sparse_column_with_hash_bucket("town", 7)
    number = layers.sparse_column_with_integerized_feature("number", 5)
    features = {
        "speed": tf.constant(values([3, 2], "speed"), tf.float32),
        "place": tf.constant(values([3, 2, 2, 2], "place"), tf.float32),
        "town": tf.SparseTensor(places, ["Rome", "Oslo", "Paris", "Rome"], shape),
        "number": tf.SparseTensor(
            [[0, 0, 0], [0, 0, 2], [2, 1, 1]], tf.constant([3, 7, 14], tf.int64), [3, 2, 3]
        ),
    }
    columns = [
        layers.real_valued_column("speed"),
        layers.real_valued_column("place", 4),
        layers.embedding_column(town, 3),
        layers.embedding_column(number, 2, combiner="sum"),
        layers.one_hot_column(number),
    ]
    return {"inputs": layers.sequence_input_from_feature_columns(features, columns)}


def inferred_feature_columns(tf):
    layers = tf.contrib.layers
    features = {"age": tf.constant([[20.0], [35.0]]), "n": tf.constant([[1, 2, 3], [4, 5, 6]])}
    columns = layers.infer_real_valued_columns(features)
    made = layers.transform_features(dict(features, other=tf.constant(1)), columns)
    return {
        "inputs": layers.input_from_feature_columns(features, columns),
        "made": {column.name: tensor for column, tensor in made.items()},
    }


def transformed_feature_columns(tf):
    layers = tf.contrib.layers
    _, pair, job, town, _, buckets = _columns(tf)
    weighted = layers.weighted_sparse_column(town, "heavy")
    columns = [pair, job, town, buckets, weighted, layers.embedding_column(town, 2)]
    made = layers.transform_features(_features(tf), columns)
    return {column.name: tensor for column, tensor in made.items()}


def sparse_ops(tf):
    ops = deep(tf, "layers.python.ops.sparse_ops")
    dense = tf.constant([[0, 3, 0], [0, 0, 0], [1, 0, 2]])
    sparse = ops.dense_to_sparse_tensor(dense)
    return {
        "sparse": sparse,
        "without": ops.dense_to_sparse_tensor(dense, ignore_value=3),
        "strings": ops.dense_to_sparse_tensor(tf.constant([["a", ""], ["", "b"]])),
        "ids": ops.indicators_to_sparse_ids(tf.constant([[[0, 1], [0, 0]], [[1, 1], [1, 0]]])),
        "few_ids": ops.indicators_to_sparse_ids(dense, ignore_value=3, dtype=tf.int32),
        "lengths": ops.sparse_row_envelope(sparse),
        "heights": ops.sparse_row_envelope(sparse, 1, 0),
        "buckets": deep(tf, "layers.python.ops.bucketization_op").bucketize(
            tf.constant([-1.0, 0.0, 3.5, 9.0]), [0.0, 4.0]
        ),
    }


def poincare_normalize(tf):
    x = tf.constant(values([3, 4], "x") * 3, tf.float32)
    from_file = deep(tf, "layers.python.layers.layers").poincare_normalize
    return {"rows": from_file(x), "columns": from_file(x, axis=0, epsilon=0.1)}
