"""Cases for `tf.contrib.image`."""

from parity import values


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
