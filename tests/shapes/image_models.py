"""Models of images, of tf.layers, slim and tf.contrib.layers."""

from shared import BATCH, arrays, classified, cross_entropy, images


def perceptron(tf):
    x, y = images(tf)
    net = tf.layers.dense(tf.layers.flatten(x), 32, tf.nn.relu)
    return classified(tf, y, tf.layers.dropout(net, 0.4, training=True))


def convolutions(tf, convolution="conv2d", normalized=False):
    x, y = images(tf)
    net = x
    for filters in (8, 16):
        net = getattr(tf.layers, convolution)(net, filters, 5, padding="same")
        if normalized:
            net = tf.layers.batch_normalization(net, training=True)
        net = tf.layers.max_pooling2d(tf.nn.relu(net), 2, 2)
    return classified(tf, y, tf.reshape(net, [-1, 7 * 7 * 16]))


def convolutions_channels_first(tf):
    x, y = images(tf)
    net = tf.layers.conv2d(tf.transpose(x, [0, 3, 1, 2]), 8, 3, 2, data_format="channels_first")
    return classified(tf, y, tf.reduce_mean(net, [2, 3]))


def convolutions_3d(tf):
    batch = arrays(tf, x=("float32", [8, 16, 16, 1]), y=("int64", []))
    net = tf.layers.conv3d(batch["x"], 4, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.average_pooling3d(net, 2, 2)
    return classified(tf, batch["y"], tf.layers.flatten(net))


def residual(tf):
    x, y = images(tf, 32, 3)
    net = tf.layers.conv2d(x, 16, 3, padding="same")
    for filters, stride in ((16, 1), (32, 2)):
        first = tf.nn.relu(tf.layers.batch_normalization(net, training=True, fused=True))
        padded = tf.pad(first, [[0, 0], [1, 1], [1, 1], [0, 0]])
        net = tf.layers.conv2d(padded, filters, 3, stride, use_bias=False)
        net += tf.layers.conv2d(first, filters, 1, stride)
    return classified(tf, y, tf.reduce_mean(net, [1, 2]))


def autoencoder(tf):
    x, _ = images(tf)
    code = tf.layers.conv2d(x, 4, 3, 2, padding="same", activation=tf.nn.relu)
    made = tf.layers.conv2d_transpose(code, 1, 3, 2, padding="same")
    return tf.losses.mean_squared_error(x, made)


def variational(tf):
    x, _ = images(tf)
    flat = tf.layers.flatten(x)
    mean, deviation = tf.split(tf.layers.dense(flat, 8), 2, axis=1)
    code = mean + tf.exp(deviation) * tf.random_normal(tf.shape(mean))
    logits = tf.layers.dense(code, 784)
    cost = tf.nn.sigmoid_cross_entropy_with_logits(labels=flat, logits=logits)
    divergence = 0.5 * tf.reduce_sum(tf.square(mean) + tf.exp(deviation) - deviation - 1, 1)
    return tf.reduce_mean(tf.reduce_sum(cost, 1) + divergence)


def segmented(tf):
    batch = arrays(tf, x=("float32", [32, 32, 3]), y=("int32", [32, 32]))
    down = tf.layers.conv2d(batch["x"], 8, 3, 2, padding="same")
    up = tf.image.resize_bilinear(down, tf.shape(batch["x"])[1:3])
    both = tf.concat([batch["x"], tf.image.resize_nearest_neighbor(down, [32, 32]), up], 3)
    logits = tf.layers.conv2d(both, 5, 1)
    tf.metrics.mean_iou(batch["y"], tf.argmax(logits, 3), 5)
    known = tf.where(tf.not_equal(batch["y"], 4))
    return tf.losses.sparse_softmax_cross_entropy(
        tf.gather_nd(batch["y"], known), tf.gather_nd(logits, known)
    )


def detected(tf):
    batch = arrays(tf, x=("float32", [32, 32, 3]), box=("float32", [4]), y=("int64", []))
    net = tf.layers.conv2d(batch["x"], 8, 3, 4)
    boxes = tf.reshape(tf.layers.conv2d(net, 4, 1), [BATCH, -1, 4])
    scores = tf.reshape(tf.layers.conv2d(net, 1, 1), [BATCH, -1])
    kept = tf.image.non_max_suppression(boxes[0], scores[0], 5)
    best = tf.gather(boxes[0], kept)
    values, places = tf.nn.top_k(scores, 3)
    chosen = tf.batch_gather(boxes, places)
    crops = tf.image.crop_and_resize(batch["x"], best, tf.zeros_like(kept), [7, 7])
    tf.summary.image("drawn", tf.image.draw_bounding_boxes(batch["x"], boxes))
    wanted = tf.tile(batch["box"][:, tf.newaxis], [1, 3, 1])
    return tf.losses.huber_loss(wanted, chosen) + tf.reduce_mean(crops) + tf.reduce_sum(values)


def read_images(tf):
    def decoded(record):
        spec = {"image": tf.FixedLenFeature([], tf.string), "y": tf.FixedLenFeature([], tf.int64)}
        parsed = tf.parse_single_example(record, spec)
        image = tf.image.convert_image_dtype(tf.image.decode_jpeg(parsed["image"], 3), tf.float32)
        image = tf.random_crop(tf.image.resize_images(image, [40, 40]), [32, 32, 3])
        image = tf.image.random_brightness(tf.image.random_flip_left_right(image), 0.2)
        return tf.image.per_image_standardization(image), parsed["y"]

    data = tf.data.TFRecordDataset("records").map(decoded).repeat()
    data = data.apply(tf.data.experimental.map_and_batch(lambda x, y: (x, y), BATCH))
    x, y = tf.data.make_one_shot_iterator(data).get_next()
    return classified(tf, y, tf.layers.flatten(tf.layers.conv2d(x, 4, 3, 2)))


def style(tf):
    x, _ = images(tf, 16, 3)
    net = tf.layers.conv2d(x, 4, 3)
    flat = tf.reshape(net, [tf.shape(net)[0], -1, 4])
    gram = tf.matmul(flat, flat, transpose_a=True)
    variation = tf.reduce_mean(tf.image.total_variation(x))
    return tf.nn.l2_loss(gram - tf.matrix_band_part(gram, 0, -1)) + variation


# slim and tf.contrib.layers.


def slim_net(tf, kind):
    slim, (x, y) = tf.contrib.slim, images(tf, 32, 3)
    parts = {"conv": _slim_convolutions, "inception": _slim_inception, "mobile": _slim_mobile}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        normalizer_fn=slim.batch_norm,
        weights_regularizer=slim.l2_regularizer(1e-4),
    ):
        net = slim.flatten(parts[kind](tf, slim, x))
    logits = slim.fully_connected(slim.dropout(net, 0.5), 10, activation_fn=None)
    slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(y, 10))
    slim.metrics.aggregate_metric_map({"a": slim.metrics.streaming_accuracy(logits, logits)})
    return tf.losses.get_total_loss()


def _slim_convolutions(tf, slim, x):
    net = slim.repeat(x, 2, slim.conv2d, 8, [3, 3], scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.stack(net, slim.conv2d, [(8, [3, 3]), (8, [1, 1])], scope="conv2")
    return slim.conv2d_transpose(net, 4, 3, 2)


def _slim_inception(tf, slim, x):
    branches = [
        slim.conv2d(x, 4, [1, 1]),
        slim.conv2d(slim.conv2d(x, 4, [1, 1]), 4, [5, 5]),
        slim.conv2d(slim.avg_pool2d(x, [3, 3], 1, "SAME"), 4, [1, 1]),
    ]
    net = tf.concat(branches, 3)
    return slim.avg_pool2d(net, net.get_shape()[1:3], padding="VALID")


def _slim_mobile(tf, slim, x):
    net = slim.separable_conv2d(x, None, [3, 3], 1, stride=2)
    return slim.conv2d(net, 8, [1, 1], activation_fn=tf.nn.relu6)


def contrib_layers(tf):
    layers, (x, y) = tf.contrib.layers, images(tf)
    net = layers.fully_connected(layers.flatten(x), 16, normalizer_fn=layers.layer_norm)
    net = layers.bias_add(layers.maxout(net, 8) if hasattr(layers, "maxout") else net)
    return layers.apply_regularization(layers.l1_regularizer(0.1), tf.trainable_variables()) + (
        cross_entropy(tf, y, layers.linear(net, 10))
    )
