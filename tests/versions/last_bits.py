"""Prints a digest of the results of some 170 ops of TensorFlow alone, as one line of JSON.

    python tests/versions/last_bits.py

Two releases that print one digest for an op gave the same bits. The inputs are made by NumPy's
MT19937, whose stream does not change. It needs nothing of this package.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_STREAM = np.random.RandomState(1)
ANY = tf.constant(_STREAM.uniform(-4, 4, (257,)).astype(np.float32))
OTHER = tf.constant(_STREAM.uniform(0.5, 3, (257,)).astype(np.float32))
POSITIVE = tf.constant(_STREAM.uniform(0.1, 6, (257,)).astype(np.float32))
UNIT = tf.constant(_STREAM.uniform(-0.99, 0.99, (257,)).astype(np.float32))
FRACTION = tf.constant(_STREAM.uniform(0.01, 0.99, (257,)).astype(np.float32))
ROWS = tf.constant(_STREAM.normal(size=(33, 17)).astype(np.float32))
SQUARE = tf.constant(_STREAM.normal(size=(12, 12)).astype(np.float32))
DEFINITE = tf.constant((np.eye(12) * 12 + np.ones((12, 12))).astype(np.float32) + SQUARE * 0.01)
DEFINITE = (DEFINITE + tf.transpose(DEFINITE)) / 2
LABELS = tf.constant(_STREAM.randint(0, 17, 33))
SEGMENTS = tf.constant(np.sort(_STREAM.randint(0, 5, 33)))
IMAGES = tf.constant(_STREAM.uniform(0, 1, (2, 16, 16, 3)).astype(np.float32))
KERNEL = tf.constant(_STREAM.normal(size=(3, 3, 3, 4)).astype(np.float32))
VOLUME = tf.constant(_STREAM.normal(size=(2, 6, 6, 6, 3)).astype(np.float32))
KERNEL3 = tf.constant(_STREAM.normal(size=(2, 2, 2, 3, 4)).astype(np.float32))
SIGNAL = tf.constant(_STREAM.normal(size=(2, 256)).astype(np.float32))
CHANNELS = tf.constant([0.5, 1.5, 2.5])

# Names below tf.math, by the input that they take.
_MATH = {
    "abs ceil cos cosh sin sinh tan tanh exp expm1 erf erfc floor negative rint round sigmoid sign "
    "softplus softsign square atan asinh log_sigmoid cumsum cumprod cumulative_logsumexp": (ANY,),
    "log log1p sqrt rsqrt reciprocal digamma lgamma acosh bessel_i0 bessel_i0e bessel_i1 "
    "bessel_i1e reciprocal_no_nan": (POSITIVE,),
    "acos asin atanh erfinv": (UNIT,),
    "ndtri": (FRACTION,),
    "add subtract multiply divide maximum minimum floordiv floormod squared_difference atan2 "
    "divide_no_nan multiply_no_nan xdivy": (ANY, OTHER),
    "pow xlogy xlog1py zeta igamma igammac polygamma": (POSITIVE + 1, OTHER + 1),
    "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_std reduce_variance "
    "reduce_logsumexp reduce_euclidean_norm l2_normalize": (ROWS, 1),
    "segment_sum segment_mean segment_max segment_min segment_prod": (ROWS, SEGMENTS),
    "unsorted_segment_sum unsorted_segment_mean unsorted_segment_sqrt_n": (ROWS, SEGMENTS, 5),
    "top_k": (ROWS, 5),
}
_NN = {
    "relu relu6 elu selu gelu silu leaky_relu softplus softsign log_softmax softmax crelu": (ROWS,),
    "avg_pool2d max_pool2d": (IMAGES, 2, 2, "SAME"),
    "l2_loss": (ROWS,),
    "local_response_normalization": (IMAGES,),
    "moments": (ROWS, [0]),
    "sparse_softmax_cross_entropy_with_logits": (LABELS, ROWS),
}
_LINALG = {
    "matmul": (ROWS, tf.transpose(ROWS)),
    "cholesky eigvalsh": (DEFINITE,),
    "inv det logdet expm qr svd lu pinv": (DEFINITE,),
    "solve": (DEFINITE, SQUARE),
    "triangular_solve": (tf.linalg.band_part(DEFINITE, -1, 0), SQUARE),
    "norm trace diag_part": (SQUARE,),
}
_IMAGE = {
    "rgb_to_hsv hsv_to_rgb rgb_to_grayscale rgb_to_yuv per_image_standardization "
    "image_gradients total_variation sobel_edges": (IMAGES,),
    "adjust_brightness adjust_contrast adjust_hue adjust_saturation adjust_gamma": (IMAGES, 0.3),
}
_RANDOM = {
    "uniform normal truncated_normal": ((64,),),
    "stateless_uniform stateless_normal stateless_truncated_normal": ((64,), (1, 2)),
}


def _tables() -> Iterator[tuple[str, Callable[[], Any]]]:
    tables = {"math": _MATH, "nn": _NN, "linalg": _LINALG, "image": _IMAGE}
    for module, table in tables.items():
        for names, arguments in table.items():
            for name in names.split():
                function = getattr(getattr(tf, module), name)
                yield f"{module}.{name}", lambda f=function, a=arguments: f(*a)


def _layers_of_networks() -> Iterator[tuple[str, Callable[[], Any]]]:
    logits, wanted = ROWS, tf.one_hot(LABELS, 17)
    norm = (IMAGES, CHANNELS, CHANNELS)
    yield "nn.conv2d", lambda: tf.nn.conv2d(IMAGES, KERNEL, 1, "SAME")
    yield "nn.conv2d_strided", lambda: tf.nn.conv2d(IMAGES, KERNEL, 2, "VALID")
    yield "nn.conv2d_dilated", lambda: tf.nn.conv2d(IMAGES, KERNEL, 1, "SAME", dilations=2)
    yield "nn.conv3d", lambda: tf.nn.conv3d(VOLUME, KERNEL3, [1] * 5, "SAME")
    yield (
        "nn.conv2d_transpose",
        lambda: tf.nn.conv2d_transpose(
            tf.nn.conv2d(IMAGES, KERNEL, 2, "SAME"), KERNEL, (2, 16, 16, 3), 2
        ),
    )
    yield (
        "nn.depthwise_conv2d",
        lambda: tf.nn.depthwise_conv2d(IMAGES, KERNEL, [1, 1, 1, 1], "SAME"),
    )
    yield "nn.batch_norm_training", lambda: tf1.nn.fused_batch_norm(*norm)[0]
    yield (
        "nn.batch_norm_inference",
        lambda: tf1.nn.fused_batch_norm(*norm, CHANNELS, CHANNELS, is_training=False)[0],
    )
    yield (
        "nn.softmax_cross_entropy",
        lambda: tf.nn.softmax_cross_entropy_with_logits(wanted, logits),
    )
    yield (
        "nn.sigmoid_cross_entropy",
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(wanted, logits),
    )
    yield "nn.embedding_lookup", lambda: tf.nn.embedding_lookup(ROWS, LABELS)
    yield "nn.dropout", lambda: tf1.nn.dropout(ROWS, rate=0.5, seed=7)
    yield (
        "nn.conv2d_gradient",
        lambda: _gradient(lambda k: tf.nn.conv2d(IMAGES, k, 1, "SAME"), KERNEL),
    )
    yield "nn.softmax_gradient", lambda: _gradient(tf.nn.log_softmax, ROWS)
    yield "nn.gelu_gradient", lambda: _gradient(tf.nn.gelu, ROWS)
    yield "math.tanh_gradient", lambda: _gradient(tf.math.tanh, ROWS)
    yield "math.erf_gradient", lambda: _gradient(tf.math.erf, ROWS)
    yield "einsum", lambda: tf.einsum("ij,kj->ik", ROWS, ROWS)
    yield "tensordot", lambda: tf.tensordot(ROWS, ROWS, [[1], [1]])
    yield "signal.rfft", lambda: tf.signal.rfft(SIGNAL)
    yield "signal.dct", lambda: tf.signal.dct(SIGNAL)
    yield "signal.stft", lambda: tf.signal.stft(SIGNAL, 64, 32)
    yield "image.resize_bilinear", lambda: tf1.image.resize_bilinear(IMAGES, (9, 23))
    yield "image.resize_bicubic", lambda: tf1.image.resize_bicubic(IMAGES, (9, 23))
    yield "image.resize_area", lambda: tf1.image.resize_area(IMAGES, (9, 23))
    yield "image.ssim", lambda: tf.image.ssim(IMAGES, IMAGES * 0.9, 1.0, filter_size=5)


def _gradient(function: Callable[[tf.Tensor], tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(value)
        result = tf.reduce_sum(function(value) * 0.37)
    return tape.gradient(result, value)


def _random() -> Iterator[tuple[str, Callable[[], Any]]]:
    def drawn(function: Callable[..., Any], *arguments: Any, **named: Any) -> Callable[[], Any]:
        def draw() -> Any:
            tf.random.set_seed(3)
            return function(*arguments, **named)

        return draw

    for names, arguments in _RANDOM.items():
        for name in names.split():
            seed = {} if name.startswith("stateless") else {"seed": 5}
            yield f"random.{name}", drawn(getattr(tf.random, name), *arguments, **seed)
    yield "random.gamma", drawn(tf.random.gamma, (64,), 1.5, seed=5)
    yield "random.poisson", drawn(tf.random.poisson, (64,), 2.5, seed=5)
    yield "random.shuffle", drawn(tf.random.shuffle, LABELS, seed=5)
    yield "random.categorical", drawn(tf.random.categorical, ROWS, 9, seed=5)
    for name in [
        "glorot_uniform",
        "glorot_normal",
        "he_normal",
        "he_uniform",
        "lecun_normal",
        "random_normal",
        "random_uniform",
        "truncated_normal",
        "orthogonal",
        "variance_scaling",
        "uniform_unit_scaling",
    ]:
        made = getattr(tf1.initializers, name)
        yield f"initializers.{name}", drawn(lambda m=made: m(seed=5)((24, 12), tf.float32))


def digests() -> dict[str, str]:
    """Op -> eight digits of the digest of its results."""
    found = {}
    for part in (_tables, _layers_of_networks, _random):
        for name, call in part():
            try:
                results = [np.asarray(value) for value in tf.nest.flatten(call())]
            except (AttributeError, tf.errors.OpError) as error:
                found[name] = type(error).__name__
                continue
            content = b"".join(str(r.shape).encode() + r.tobytes() for r in results)
            found[name] = hashlib.sha256(content).hexdigest()[:8]
    return found


if __name__ == "__main__":
    print(json.dumps(digests(), sort_keys=True))
