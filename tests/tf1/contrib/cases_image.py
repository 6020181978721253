"""Cases for `tf.contrib.image`."""

from parity import deep, values


def transforms(tf):
    image = tf.contrib.image
    images = tf.constant(values([2, 5, 4, 3], "images"), tf.float32)
    some = tf.constant([[1.0, 0.2, 0.1, -0.1, 0.9, 0.3, 0.01, 0.0], [1, 0, 1, 0, 1, 0, 0, 0]])
    turned = image.rotate(images, [0.3, -1.0], "BILINEAR")
    return {
        "transformed": image.transform(images, some),
        "bilinear": image.transform(images, some[0], "BILINEAR", output_shape=[3, 6]),
        "turned": turned,
        "gradient": tf.gradients(tf.reduce_sum(turned * images), images)[0],
        "one": image.rotate(images[0], 0.5),
        "flat": image.rotate(images[0, :, :, 0], 0.5),
        "moved": image.translate(images, [[1.0, 2.0], [-1.5, 0.5]], "BILINEAR"),
        "moved_one": image.translate(images[0], [1, -1]),
        "composed": image.compose_transforms(some[0], some[1]),
        "matrices": image.flat_transforms_to_matrices(some),
    }


def images_of_any_size(tf):
    images = tf.placeholder_with_default(values([1, 4, 4, 1], "i").astype("float32"), [None] * 4)
    return {"turned": tf.contrib.image.rotate(images, 1.0)}


def colours_in_yiq(tf):
    ops = deep(tf, "image.python.ops.distort_image_ops")
    images = tf.constant(values([2, 3, 2, 3], "images") + 0.5, tf.float32)
    return {
        "turned": ops.adjust_hsv_in_yiq(images, 0.7, 1.3, 0.9),
        "grey": ops.adjust_hsv_in_yiq(images[0], scale_saturation=0.0),
        "brighter": ops.adjust_hsv_in_yiq(images[1], scale_value=2.0),
        "bytes": ops.adjust_hsv_in_yiq(tf.cast(images * 200, tf.uint8), 0.3, 1.2, 1.1),
        "not_random": ops.random_hsv_in_yiq(images, 0, 0.5, 0.5, 1.5, 1.5),
    }


def warps(tf):
    image = tf.contrib.image
    images = tf.constant(values([2, 5, 4, 3], "images"), tf.float32)
    flow = tf.constant(values([2, 5, 4, 2], "flow") * 6, tf.float32)
    points = tf.constant(values([2, 3, 2], "points") * 8 + 1, tf.float32)
    bilinear = deep(tf, "image.python.ops.dense_image_warp")._interpolate_bilinear
    warped = image.dense_image_warp(images, flow)
    loss = tf.reduce_sum(warped * images)
    return {
        "between": bilinear(images, points),
        "by_column": bilinear(images, points, indexing="xy"),
        "warped": warped,
        "gradients": tf.gradients(loss, [images, flow]),
    }


def splines(tf):
    points = tf.constant(values([2, 6, 2], "points") * 5, tf.float32)
    found = tf.constant(values([2, 6, 1], "values"), tf.float32)
    asked = tf.constant(values([2, 3, 2], "asked") * 4, tf.float32)
    spline = tf.contrib.image.interpolate_spline
    return {str(order): spline(points, found, asked, order) for order in (1, 2, 3, 4, 6)}


def smooth_splines(tf):
    corners = [[0, 0, 0], [2, 0, 1], [0, 3, 1], [1, 1, 4], [2, 3, 0], [1, 4, 3]]
    points = tf.constant([corners], tf.float32)
    found = tf.constant(values([1, 6, 2], "values"), tf.float32)
    spline = tf.contrib.image.interpolate_spline
    return {"smooth": spline(points, found, points, 2, regularization_weight=0.1)}


def moved_points(tf):
    images = tf.constant(values([1, 6, 5, 2], "images"), tf.float32)
    start = tf.constant([[[1.0, 1.0], [4.0, 3.0], [2.0, 3.5]]])
    end = tf.constant([[[1.5, 2.0], [4.0, 2.0], [2.5, 3.0]]])
    warp = tf.contrib.image.sparse_image_warp
    free, free_flow = warp(images, start, end)
    held, held_flow = warp(images, start, end, 1, 0.01, num_boundary_points=2)
    return {"free": [free, free_flow], "held": [held, held_flow]}
