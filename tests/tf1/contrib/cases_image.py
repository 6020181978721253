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
