"""Warps of `tf.contrib.image` of TF 1.15: images whose pixels come from other places.

Images are [batch, height, width, channels]; a place is (row, column).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_v1 = tf.compat.v1


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
