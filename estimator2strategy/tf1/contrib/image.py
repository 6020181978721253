"""`tf.contrib.image` of TF 1.15, written with plain ops, because TensorFlow has lost its kernels.

Images are [height, width], [height, width, channels] or [batch, height, width, channels]; those of
warps are [batch, height, width, channels], and a place in them is (row, column). A transform is [8]
or [batch, 8]; it maps points of the output to points of the input: (x, y) to
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1. What lies outside is 0.

Refused: `bipartite_match`, `connected_components` and `single_image_random_dot_stereograms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("image", globals())


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


def interpolate_bilinear(
    grid: Any, query_points: Any, name: str = "interpolate_bilinear", indexing: str = "ij"
) -> tf.Tensor:
    """The values of an image between its pixels; outside of it, those of its border.

    Args:
        grid: [batch, height, width, channels].
        query_points: [batch, points, 2].
        name: Of the name scope.
        indexing: "ij" if a point is (row, column), "xy" if it is (column, row). As in the original,
            "xy" takes the limits of an axis from the other one.

    Returns:
        [batch, points, channels]

    Raises:
        ValueError: `indexing` is neither, or `grid` has another rank.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError("Indexing mode must be 'ij' or 'xy'")
    with _v1.name_scope(name):
        grid, points = tf.convert_to_tensor(grid), tf.convert_to_tensor(query_points)
        if grid.shape.rank != 4:
            raise ValueError(f"Grid must be 4 dimensional. Received size: {grid.shape}")
        sizes = tf.shape(grid)[1:3]
        checks = [
            _v1.assert_equal(tf.rank(points), 3, message="Query points must be 3 dimensional."),
            _v1.assert_equal(
                tf.shape(points)[-1], 2, message="Query points must be size 2 in dim 2."
            ),
            _v1.assert_greater_equal(sizes, 2, message="Grid must be at least 2 in each axis."),
        ]
        order = [0, 1] if indexing == "ij" else [1, 0]
        with tf.control_dependencies([check for check in checks if check is not None]):
            points = tf.gather(points, order, axis=2)
            # The next pixel must be there, too.
            last = tf.cast(tf.gather(sizes, order) - 2, points.dtype)
        first = tf.clip_by_value(tf.floor(points), tf.zeros([], points.dtype), last)
        part = tf.clip_by_value(tf.cast(points - first, grid.dtype), 0.0, 1.0)
        rows, columns = tf.unstack(tf.cast(first, tf.int32), axis=2)
        down, right = tf.split(part, 2, axis=2)

        batch, height, width, channels = tf.unstack(tf.shape(grid))
        all_pixels = tf.reshape(grid, [-1, channels])
        images = (tf.range(batch) * height * width)[:, None]

        def pixels(row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
            return tf.gather(all_pixels, images + row * width + column)

        above = _between(right, pixels(rows, columns), pixels(rows, columns + 1))
        below = _between(right, pixels(rows + 1, columns), pixels(rows + 1, columns + 1))
        return _between(down, above, below)


def _between(part: tf.Tensor, one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    return part * (other - one) + one


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> tf.Tensor:
    """Images whose pixels come from their place minus `flow`.

    Args:
        image: [batch, height, width, channels].
        flow: [batch, height, width, 2].
        name: Of the name scope.
    """
    with _v1.name_scope(name):
        image, flow = tf.convert_to_tensor(image), tf.convert_to_tensor(flow)
        batch, height, width, _ = tf.unstack(tf.shape(image))
        rows, columns = tf.meshgrid(tf.range(height), tf.range(width), indexing="ij")
        places = tf.cast(tf.stack([rows, columns], 2), flow.dtype) - flow
        points = tf.reshape(places, [batch, height * width, 2])
        return tf.reshape(interpolate_bilinear(image, points), tf.shape(image))


def interpolate_spline(
    train_points: Any,
    train_values: Any,
    query_points: Any,
    order: int,
    regularization_weight: float = 0.0,
    name: str = "interpolate_spline",
) -> tf.Tensor:
    """A polyharmonic spline through some points, at other points.

    It is a linear function plus weights for the distances to all points that it goes through.

    Args:
        train_points: [batch, n, axes]: the points.
        train_values: [batch, n, values]: the values there.
        query_points: [batch, m, axes].
        order: 1: a distance itself; 2: thin plates; or more.
        regularization_weight: Above 0, the spline is smoother, and misses the values by a little.
        name: Of the name scope.

    Returns:
        [batch, m, values]

    Raises:
        ValueError: The number of axes or of values is not known.
    """
    with _v1.name_scope(name):
        known, values = tf.convert_to_tensor(train_points), tf.convert_to_tensor(train_values)
        asked = tf.convert_to_tensor(query_points)
        for what, tensor in (("input points (d)", known), ("output values (k)", values)):
            if tensor.shape.rank is None or tensor.shape[-1:].num_elements() is None:
                raise ValueError(f"The dimensionality of the {what} must be statically-inferrable.")
        weights, linear = _solved(known, values, order, regularization_weight)
        return tf.matmul(_radial(_squared_distances(asked, known), order), weights) + tf.matmul(
            _with_one(asked), linear
        )


def _solved(
    points: tf.Tensor, values: tf.Tensor, order: int, regularization: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Weights [batch, n, values] of the points, and [batch, axes + 1, values] of a linear part."""
    count, axes = tf.shape(points)[1], points.shape[-1:].num_elements()
    products = tf.matmul(points, points, transpose_b=True)
    squares = tf.linalg.diag_part(products)  # so a point has no distance from itself
    distances = squares[:, :, None] - 2 * products + squares[:, None]
    radial = _radial(distances, order)
    if regularization > 0:
        radial += regularization * tf.eye(count, dtype=points.dtype)
    linear = _with_one(points)
    # The weights add up to 0, and so do their products with the points.
    zeros = tf.zeros_like(tf.matmul(linear, linear, transpose_a=True))
    left = tf.concat([radial, tf.linalg.matrix_transpose(linear)], 1)
    system = tf.concat([left, tf.concat([linear, zeros], 1)], 2)
    rest = tf.zeros_like(values[:, :1])
    wanted = tf.concat([values, tf.tile(rest, [1, axes + 1, 1])], 1)
    solved = tf.linalg.solve(system, wanted)
    return solved[:, :count], solved[:, count:]


def _with_one(points: tf.Tensor) -> tf.Tensor:
    return tf.concat([points, tf.ones_like(points[..., :1])], 2)


def _squared_distances(points: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    of_points = tf.reduce_sum(tf.square(points), 2)[:, :, None]
    of_others = tf.reduce_sum(tf.square(others), 2)[:, None]
    return of_points - 2 * tf.matmul(points, others, transpose_b=True) + of_others


def _radial(squared: tf.Tensor, order: int) -> tf.Tensor:
    """The radial basis function of a squared distance; odd and even orders are of two kinds."""
    above = tf.maximum(squared, 1e-10)  # the gradients of a root and of a logarithm
    if order in (2, 4):
        return 0.5 * squared ** (order // 2) * tf.math.log(above)
    power = above ** (0.5 * order)
    return power if order % 2 else 0.5 * power * tf.math.log(above)


def sparse_image_warp(
    image: Any,
    source_control_point_locations: Any,
    dest_control_point_locations: Any,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Images in which some points move, and all others with them.

    Args:
        image: [batch, height, width, channels], of a known shape.
        source_control_point_locations: [batch, points, 2].
        dest_control_point_locations: Where these points move to.
        interpolation_order, regularization_weight: As for `interpolate_spline`.
        num_boundary_points: Above 0: the corners stay in place, and so many points less one on
            each border.
        name: Of the name scope.

    Returns:
        The images, and the flow [batch, height, width, 2] for `dense_image_warp`.
    """
    image = tf.convert_to_tensor(image)
    start = tf.convert_to_tensor(source_control_point_locations)
    end = tf.convert_to_tensor(dest_control_point_locations)
    flow = end - start
    with _v1.name_scope(name):
        batch, height, width, _ = image.shape.as_list()
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1)
        if num_boundary_points > 0:
            border = tf.constant(_border(height, width, num_boundary_points - 1), end.dtype)
            fixed = tf.tile(border[None], [batch, 1, 1])
            end = tf.concat([end, fixed], 1)
            flow = tf.concat([flow, tf.zeros_like(fixed)], 1)
        places = tf.tile(tf.constant(grid.reshape(1, -1, 2), image.dtype), [batch, 1, 1])
        flows = interpolate_spline(end, flow, places, interpolation_order, regularization_weight)
        flows = tf.reshape(flows, [batch, height, width, 2])
        return dense_image_warp(image, flows), flows


def _border(height: int, width: int, per_edge: int) -> np.ndarray:
    """The corners of an image, and so many points between two of them."""
    rows, columns = np.meshgrid(
        np.linspace(0, height - 1, per_edge + 2),
        np.linspace(0, width - 1, per_edge + 2),
        indexing="ij",
    )
    outside = (rows == 0) | (rows == height - 1) | (columns == 0) | (columns == width - 1)
    return np.stack([rows[outside], columns[outside]], axis=-1)
