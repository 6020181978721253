"""`tf.compat.v2.summary.scalar` and its kin, also where TensorBoard is not installed.

TensorFlow's own call TensorBoard's, which is no dependency of TensorFlow since 2.21. The events are
those that TensorBoard's plugins read.
"""

from __future__ import annotations

from typing import Any, cast

import tensorflow as tf

_Metadata = tf.compat.v1.SummaryMetadata


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> tf.Tensor:
    """Writes a number; returns whether there was a writer.

    Source: `scalar`, tensorboard 2.15 plugins/scalar/summary_v2.py.
    """
    with _scope(name, "scalar_summary", [data, step]) as tag:
        value = tf.cast(tf.reshape(data, []), tf.float32)
        return tf.summary.write(tag, value, step, _metadata("scalars", description))


def histogram(
    name: str, data: Any, step: Any = None, buckets: int = 30, description: str | None = None
) -> tf.Tensor:
    """Writes how the values of a tensor are distributed, in `buckets` of equal width.

    Source: `histogram` and `_buckets`, tensorboard 2.15 plugins/histogram/summary_v2.py.
    """
    with _scope(name, "histogram_summary", [data, buckets, step]) as tag:
        value = lambda: _buckets(tf.cast(tf.reshape(data, [-1]), tf.float64), buckets)  # noqa: E731
        return tf.summary.write(tag, value, step, _metadata("histograms", description))


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> tf.Tensor:
    """Writes the first `max_outputs` images of [k, height, width, channels] as PNG.

    Floats are in [0, 1].

    Source: `image`, tensorboard 2.15 plugins/image/summary_v2.py.
    """

    def encoded() -> tf.Tensor:
        images = tf.image.convert_image_dtype(data, tf.uint8, saturate=True)[:max_outputs]
        png = tf.map_fn(tf.image.encode_png, images, fn_output_signature=tf.string)
        shape = tf.shape(images)
        return tf.concat([tf.strings.as_string([shape[2], shape[1]]), png], axis=0)

    with _scope(name, "image_summary", [data, max_outputs, step]) as tag:
        return tf.summary.write(tag, encoded, step, _metadata("images", description))


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> tf.Tensor:
    """Writes a tensor of strings.

    Source: `text`, tensorboard 2.15 plugins/text/summary_v2.py.
    """
    with _scope(name, "text_summary", [data, step]) as tag:
        value = tf.convert_to_tensor(data, tf.string)
        return tf.summary.write(tag, value, step, _metadata("text", description))


def _scope(name: str, default: str, values: list[Any]) -> Any:
    return _Tag(tf.summary.experimental.summary_scope(name, default, values))


class _Tag:
    """A summary scope of which only the tag is wanted."""

    def __init__(self, scope: Any):
        self._scope = scope

    def __enter__(self) -> str:
        return cast(str, self._scope.__enter__()[0])

    def __exit__(self, *error: Any) -> Any:
        return self._scope.__exit__(*error)


def _metadata(plugin: str, description: str | None) -> Any:
    data = _Metadata.PluginData(plugin_name=plugin)
    return _Metadata(plugin_data=data, summary_description=description)


def _buckets(values: tf.Tensor, count: int) -> tf.Tensor:
    """Rows of (left edge, right edge, number of values): float64, [count, 3]; no values: [0, 3]."""

    def spread() -> tf.Tensor:
        low, high = tf.reduce_min(values), tf.reduce_max(values)
        width = (high - low) / count

        def several() -> tf.Tensor:
            index = tf.cast((values - low) / width, tf.int32)
            index = tf.minimum(index, count - 1)  # the highest value closes the last bucket
            counts = tf.math.bincount(index, minlength=count, dtype=tf.float64)
            edges = tf.linspace(low, high, count + 1)
            return tf.stack([edges[:-1], edges[1:], counts], axis=1)

        def one() -> tf.Tensor:
            edges = tf.stack([low - 0.5, high + 0.5, tf.cast(tf.size(values), tf.float64)])
            return tf.concat([tf.zeros([count - 1, 3], tf.float64), edges[None]], axis=0)

        return tf.cond(width > 0, several, one)

    return tf.cond(tf.size(values) > 0, spread, lambda: tf.zeros([0, 3], tf.float64))
