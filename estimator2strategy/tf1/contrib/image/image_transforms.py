"""`tf.contrib.image` of TF 1.15: projective transforms, and colours in YIQ.

Images are [height, width], [height, width, channels] or [batch, height, width, channels]. A
transform is [8] or [batch, 8]; it maps points of the output to points of the input: (x, y) to
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1. What lies outside is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_v1 = tf.compat.v1


_DTYPES = (tf.uint8, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> tf.Tensor:
    """The images under projective transforms; there is no gradient for `transforms`.

    Args:
        images: Of an integer or floating point type.
        transforms: [8] or [batch, 8].
        interpolation: "NEAREST" or "BILINEAR".
        output_shape: [height, width], by default that of the images.
        name: Of the name scope.

    Raises:
        TypeError: A type or a rank does not fit.
        ValueError: `output_shape` does not have two elements.
    """
    with _v1.name_scope(name, "transform"):
        given = tf.convert_to_tensor(images, name="images")
        batch = _as_batch(given)
        transforms = tf.convert_to_tensor(transforms, tf.float32, name="transforms")
        if transforms.shape.rank is None:
            raise TypeError("transform_or_transforms rank must be statically known")
        if transforms.shape.rank not in (1, 2):
            raise TypeError("Transforms should have rank 1 or 2.")
        if transforms.shape.rank == 1:
            transforms = transforms[None]
        if output_shape is None:
            static = batch.shape[1:3]
            output_shape = static if static.is_fully_defined() else tf.shape(batch)[1:3]
        output_shape = tf.convert_to_tensor(output_shape, tf.int32, name="output_shape")
        if not output_shape.shape.is_compatible_with([2]):
            raise ValueError(
                "output_shape must be a 1-D Tensor of 2 elements: new_height, new_width"
            )
        made = _projective(batch, transforms, output_shape, interpolation.upper())
        return {2: made[0, :, :, 0], 3: made[0], 4: made}[given.shape.rank]


def _projective(
    images: tf.Tensor, transforms: tf.Tensor, output_shape: tf.Tensor, interpolation: str
) -> tf.Tensor:
    """The kernel, with the gradient that tf.contrib gave it: the inverse transform."""

    def kernel(images: tf.Tensor, transforms: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.ImageProjectiveTransformV2(
            images=images, transforms=transforms, output_shape=shape, interpolation=interpolation
        )

    @tf.custom_gradient
    def forward(images: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> Any:
            inverse = tf.linalg.inv(flat_transforms_to_matrices(transforms))
            shape = tf.shape(images)[1:3]
            return kernel(upstream, matrices_to_flat_transforms(inverse), shape)

        return kernel(images, transforms, output_shape), gradient

    return forward(images)


def _as_batch(images: tf.Tensor) -> tf.Tensor:
    if images.dtype.base_dtype not in _DTYPES:
        raise TypeError(f"Invalid dtype {images.dtype}.")
    if images.shape.rank is None:
        raise TypeError("image_or_images rank must be statically known")
    if images.shape.rank not in (2, 3, 4):
        raise TypeError("Images should have rank between 2 and 4.")
    if images.shape.rank == 2:
        return images[None, :, :, None]
    return images[None] if images.shape.rank == 3 else images


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """The images, turned counterclockwise about their centres by radians, [] or [batch]."""
    with _v1.name_scope(name, "rotate"):
        images = tf.convert_to_tensor(images)
        shape = tf.cast(tf.shape(_as_batch(images)), tf.float32)
        turns = angles_to_projective_transforms(angles, shape[1:2], shape[2:3])
        return transform(images, turns, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """The images, moved by `translations`, [dx, dy] or one such row for each image."""
    with _v1.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> tf.Tensor:
    """Transforms [batch, 8] that turn images of a size about their centres.

    Raises:
        TypeError: `angles` is neither a scalar nor a vector.
    """
    with _v1.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.convert_to_tensor(angles, tf.float32, name="angles")
        if angles.shape.rank not in (0, 1):
            raise TypeError("Angles should have rank 0 or 1.")
        angles = tf.reshape(angles, [-1])
        cos, sin = tf.cos(angles), tf.sin(angles)
        right, bottom = image_width - 1, image_height - 1
        x_offset = (right - (cos * right - sin * bottom)) / 2
        y_offset = (bottom - (sin * right + cos * bottom)) / 2
        zeros = tf.zeros_like(angles)
        return tf.stack([cos, -sin, x_offset, sin, cos, y_offset, zeros, zeros], 1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> tf.Tensor:
    """Transforms [batch, 8] that move images by [dx, dy].

    Raises:
        TypeError: `translations` is neither a vector nor a matrix.
    """
    with _v1.name_scope(name, "translations_to_projective_transforms"):
        translations = tf.convert_to_tensor(translations, tf.float32, name="translations")
        if translations.shape.rank is None:
            raise TypeError("translation_or_translations rank must be statically known")
        if translations.shape.rank not in (1, 2):
            raise TypeError("Translations should have rank 1 or 2.")
        dx, dy = tf.unstack(tf.reshape(translations, [-1, 2]), axis=1)
        zeros, ones = tf.zeros_like(dx), tf.ones_like(dx)
        return tf.stack([ones, zeros, -dx, zeros, ones, -dy, zeros, zeros], 1)


def compose_transforms(*transforms: Any) -> tf.Tensor:
    """One transform that has the effect of all, in their order; at least one is given."""
    assert transforms, "transforms cannot be empty"
    with _v1.name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for other in transforms[1:]:
            composed = tf.matmul(composed, flat_transforms_to_matrices(other))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> tf.Tensor:
    """Transforms [8] or [batch, 8] as matrices [batch, 3, 3].

    Raises:
        ValueError: They have another rank.
    """
    with _v1.name_scope("flat_transforms_to_matrices"):
        transforms = tf.convert_to_tensor(transforms, name="transforms")
        if transforms.shape.rank not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {transforms}")
        transforms = tf.reshape(transforms, [-1, 8])
        ones = tf.ones([tf.shape(transforms)[0], 1], transforms.dtype)
        return tf.reshape(tf.concat([transforms, ones], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> tf.Tensor:
    """Matrices [3, 3] or [batch, 3, 3] as transforms [batch, 8].

    Raises:
        ValueError: They have another rank.
    """
    with _v1.name_scope("matrices_to_flat_transforms"):
        matrices = tf.convert_to_tensor(transform_matrices, name="transform_matrices")
        if matrices.shape.rank not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        transforms = tf.reshape(matrices, [-1, 9])
        return (transforms / transforms[:, 8:9])[:, :8]


# Luminance and two axes of colour, from red, green and blue; and back.
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]], "f4")
_FROM_YIQ = np.linalg.inv(_TO_YIQ)


def adjust_hsv_in_yiq(
    image: Any,
    delta_hue: Any = 0,
    scale_saturation: Any = 1,
    scale_value: Any = 1,
    name: str | None = None,
) -> tf.Tensor:
    """RGB images with other colours: their hue, saturation and value are changed in YIQ.

    Args:
        image: One image or several; the last axis has size 3.
        delta_hue: The angle by which colours turn around the luminance, in radians.
        scale_saturation: Factor of the two axes of colour.
        scale_value: Factor of all three axes.
        name: Of the name scope.
    """
    with _v1.name_scope(name, "adjust_hsv_in_yiq", [image]):
        image = tf.convert_to_tensor(image, name="image")
        angle = tf.cast(delta_hue, tf.float32)
        saturation, value = tf.cast(scale_saturation, tf.float32), tf.cast(scale_value, tf.float32)
        cos, sin = saturation * tf.cos(angle), saturation * tf.sin(angle)
        turn = tf.stack([[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]])
        change = value * tf.matmul(tf.matmul(_FROM_YIQ, turn), _TO_YIQ)
        pixels = tf.image.convert_image_dtype(image, tf.float32)
        changed = tf.tensordot(pixels, change, [[-1], [1]])
        changed.set_shape(image.shape)
        return tf.image.convert_image_dtype(changed, image.dtype)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: int | None = None,
) -> tf.Tensor:
    """`adjust_hsv_in_yiq` by random amounts.

    Args:
        image: One image or several; the last axis has size 3.
        max_delta_hue: The largest angle, in both directions.
        lower_saturation, upper_saturation, lower_value, upper_value: The ranges of the factors.
        seed: Of the random ops.

    Raises:
        ValueError: An argument is negative, or a range is empty.
    """
    if max_delta_hue < 0:
        raise ValueError("max_delta must be non-negative.")
    for what, low, high in (
        ("saturation", lower_saturation, upper_saturation),
        ("value", lower_value, upper_value),
    ):
        if low < 0:
            raise ValueError(f"lower_{what} must be non-negative.")
        if low > high:
            raise ValueError(f"lower_{what} must be < upper_{what}.")

    def between(low: float, high: float) -> Any:
        return low if low == high else tf.random.uniform([], low, high, seed=seed)

    return adjust_hsv_in_yiq(
        image,
        between(-max_delta_hue, max_delta_hue),
        between(lower_saturation, upper_saturation),
        between(lower_value, upper_value),
    )
