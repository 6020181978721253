"""Inputs that begin well and then fail: the mistakes of files, generators and batches."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import tensorflow as tf

from tests.hostile.usages.programs import finite, model, tf1, tpu_model, trained
from tests.hostile.usages.usage import Usage

WIDTH, EXAMPLES = 2, 20
RECORD = 16 + 4 * WIDTH  # bytes: header, data, checksum
_TYPES, _SHAPES = (tf.float32, tf.float32), ((WIDTH,), (1,))
_WRONG_FROM = 9


def row(value=1.0, width=WIDTH):
    return np.full(width, value, "float32"), np.ones(1, "float32")


def raises():
    for i in range(EXAMPLES):
        yield row({}["missing"] if i == _WRONG_FROM else 1.0)


def widens():
    yield from (row(width=WIDTH + (i > _WRONG_FROM)) for i in range(EXAMPLES))


def turns_into_words():
    for i in range(EXAMPLES):
        yield (["a", "b"], [1.0]) if i > _WRONG_FROM else row()


def generated(generator):
    return tf.data.Dataset.from_generator(generator, _TYPES, _SHAPES).batch(4)


def ragged(size=4):
    def example(i):
        return tf.ones([WIDTH + tf.cast(i > _WRONG_FROM, tf.int32)]), tf.ones([1])

    widening = tf.data.Dataset.range(EXAMPLES).map(example).batch(size, drop_remainder=True)
    return widening.map(lambda x, y: (tf.ensure_shape(x, [size, WIDTH]), y))


def of_python(result):
    """Batches of what a Python function makes of the number of an example."""

    def example(i):
        x = tf1.py_func(result, [i], tf.float32)
        x.set_shape([WIDTH])
        return x, tf.ones([1])

    return tf.data.Dataset.range(EXAMPLES).map(example).batch(1)


def other_shape(i):
    return np.ones([WIDTH + (i > _WRONG_FROM)], "float32")


def other_type(i):
    return np.ones([WIDTH], "int64" if i > _WRONG_FROM else "float32")


def fails(i):
    return np.full([WIDTH], 1.0 / {0: 1.0}[max(0, i - _WRONG_FROM)], "float32")


def records(cut=0):
    path = os.path.join(tempfile.mkdtemp(), "examples")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(EXAMPLES):
            writer.write(row()[0].tobytes())
    with open(path, "r+b") as file:
        file.truncate(EXAMPLES * RECORD - cut)
    return path


def decoded(record):
    return tf.ensure_shape(tf.io.decode_raw(record, tf.float32), [WIDTH]), tf.ones([1])


def parsed(record):
    spec = {"x": tf.io.FixedLenFeature([WIDTH], tf.float32)}
    return tf.io.parse_single_example(record, spec)["x"], tf.ones([1])


def read(path, example=decoded):
    return tf.data.TFRecordDataset(path).map(example).batch(4)


def read_several(path):
    files = tf.data.Dataset.from_tensor_slices([records(), path])
    return files.interleave(tf.data.TFRecordDataset, cycle_length=2).map(decoded).batch(4)


IN_HEADER = RECORD - 5  # leaves the first five bytes of the last record's header
IN_DATA = 6

FAILING = (
    Usage("a generator raises", "input_fn", lambda d: model(d).train(lambda: generated(raises))),
    Usage(
        "a generator raises: evaluate",
        "input_fn",
        lambda d: trained().evaluate(lambda: generated(raises)),
    ),
    Usage(
        "a generator raises: predict",
        "input_fn",
        lambda d: list(trained().predict(lambda: generated(raises))),
    ),
    Usage(
        "a generator yields another shape",
        "input_fn",
        lambda d: model(d).train(lambda: generated(widens)),
    ),
    Usage(
        "a generator yields another type",
        "input_fn",
        lambda d: model(d).train(lambda: generated(turns_into_words)),
    ),
    Usage("examples of other shapes", "input_fn", lambda d: model(d).train(ragged)),
    Usage("examples of other shapes: evaluate", "input_fn", lambda d: trained().evaluate(ragged)),
    Usage(
        "examples of other shapes: predict", "input_fn", lambda d: list(trained().predict(ragged))
    ),
    Usage(
        "examples of other shapes: cores",
        "input_fn",
        lambda d: tpu_model(d).train(lambda params: ragged(params["batch_size"]), steps=9),
    ),
    Usage(
        "py_func returns another shape",
        "input_fn",
        lambda d: model(d).train(lambda: of_python(other_shape)),
    ),
    Usage(
        "py_func returns another type",
        "input_fn",
        lambda d: model(d).train(lambda: of_python(other_type)),
    ),
    Usage("py_func raises", "input_fn", lambda d: model(d).train(lambda: of_python(fails))),
    Usage(
        "a TFRecord file is cut in an example",
        "input_fn",
        lambda d: model(d).train(lambda: read(records(IN_DATA))),
    ),
    Usage(
        "one of several TFRecord files is cut in an example",
        "input_fn",
        lambda d: model(d).train(lambda: read_several(records(IN_DATA))),
    ),
    Usage(
        "a TFRecord file is cut in a header",
        "input_fn",
        lambda d: model(d).train(lambda: read(records(IN_HEADER))),
    ),
    Usage(
        "one of several TFRecord files is cut in a header",
        "input_fn",
        lambda d: trained().evaluate(lambda: read_several(records(IN_HEADER))),
    ),
    Usage(
        "a TFRecord file that is cut in a header, predicted from",
        "input_fn",
        lambda d: list(trained().predict(lambda: read(records(IN_HEADER)))),
    ),
    Usage(
        "there is no such file",
        "input_fn",
        lambda d: model(d).train(lambda: read("/no/such/file")),
    ),
    Usage(
        "what is no Example is parsed",
        "input_fn",
        lambda d: model(d).train(lambda: read(records(), parsed)),
    ),
    Usage(
        "an empty Dataset, predicted from",
        "input_fn",
        lambda d: list(trained().predict(lambda: finite().take(0))),
    ),
)

TABLES = {"inputs that fail midway": FAILING}
