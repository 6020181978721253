"""Wrong results of an input_fn, and wrong arguments of those that TensorFlow made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import tensorflow as tf

from estimator2strategy import estimator
from tests.hostile.usages.programs import LABELS, ROWS, dataset, finite, input_fn, model, trained
from tests.hostile.usages.usage import Usage

numpy_input_fn = estimator.inputs.numpy_input_fn
pandas_input_fn = estimator.inputs.pandas_input_fn
FRAME = pd.DataFrame({"x": [1.0, 2.0]})


def forgets_to_return():
    dataset()


def generator():
    yield ROWS, LABELS


RESULTS = (
    Usage("nothing", "input_fn", lambda d: model(d).train(forgets_to_return, steps=1)),
    Usage("a number", "input_fn", lambda d: model(d).train(lambda: 3, steps=1)),
    Usage("a string", "input_fn", lambda d: model(d).train(lambda: "data.csv", steps=1)),
    Usage("three values", "input_fn", lambda d: model(d).train(lambda: (1, 2, 3), steps=1)),
    Usage("one in a tuple", "input_fn", lambda d: model(d).train(lambda: (ROWS,), steps=1)),
    Usage("a function", "input_fn", lambda d: model(d).train(lambda: input_fn, steps=1)),
    Usage("a generator", "input_fn", lambda d: model(d).train(generator, steps=1)),
    Usage("an iterator", "input_fn", lambda d: model(d).train(lambda: iter([ROWS]), steps=1)),
    Usage(
        "two Datasets",
        "input_fn",
        lambda d: model(d).train(lambda: (dataset(), dataset()), steps=1),
    ),
    Usage(
        "a Dataset of three",
        "input_fn",
        lambda d: model(d).train(lambda: tf.data.Dataset.from_tensors((ROWS, ROWS, ROWS)), steps=1),
    ),
    Usage(
        "no labels",
        "labels",
        lambda d: model(d).train(lambda: dataset().map(lambda x, y: x), steps=1),
    ),
    Usage(
        "an argument nobody passes",
        "input_fn",
        lambda d: model(d).train(lambda size: dataset(size), steps=1),
    ),
    Usage(
        "labels that model_fn does not take",
        "labels",
        lambda d: model(d, model_fn=lambda features, mode: None).train(input_fn, steps=1),
    ),
    Usage(
        "evaluate: nothing", "input_fn", lambda d: trained().evaluate(forgets_to_return, steps=1)
    ),
    Usage(
        "evaluate: a list of rows",
        "input_fn",
        lambda d: trained().evaluate(lambda: [1.0, 2.0, 3.0], steps=1),
    ),
    Usage("predict: nothing", "input_fn", lambda d: next(trained().predict(forgets_to_return))),
    Usage("predict: a number", "input_fn", lambda d: next(trained().predict(lambda: 3))),
    Usage(
        "arrays",
        "input_fn",
        lambda d: model(d).train(lambda: (ROWS, LABELS), steps=1),
        taken="the original hands them to model_fn, where TensorFlow converts them",
    ),
    Usage(
        "an empty Dataset",
        "input_fn",
        lambda d: model(d).train(lambda: finite().take(0), steps=1),
    ),
    Usage(
        "an empty Dataset, evaluated",
        "input_fn",
        lambda d: trained().evaluate(lambda: finite().take(0)),
    ),
)

MADE = (
    Usage("numpy: shuffle is left out", "shuffle", lambda d: numpy_input_fn(ROWS, LABELS)),
    Usage(
        "numpy: shuffle is a string",
        "shuffle",
        lambda d: numpy_input_fn(ROWS, LABELS, shuffle="False"),
    ),
    Usage(
        "numpy: x is a list",
        "x",
        lambda d: model(d).train(numpy_input_fn([[1.0, 2.0]], LABELS, shuffle=False), steps=1),
    ),
    Usage(
        "numpy: x is empty",
        "x",
        lambda d: model(d).train(numpy_input_fn({}, LABELS, shuffle=False), steps=1),
    ),
    Usage(
        "numpy: y is shorter",
        "y",
        lambda d: model(d).train(numpy_input_fn(ROWS, LABELS[:3], shuffle=False), steps=1),
    ),
    Usage(
        "numpy: batch_size is a string",
        "batch_size",
        lambda d: numpy_input_fn(ROWS, LABELS, "8", shuffle=False),
    ),
    Usage(
        "numpy: batch_size is 0",
        "batch_size",
        lambda d: numpy_input_fn(ROWS, LABELS, 0, shuffle=False),
    ),
    Usage(
        "numpy: num_epochs is a string",
        "num_epochs",
        lambda d: numpy_input_fn(ROWS, LABELS, num_epochs="1", shuffle=False),
    ),
    Usage(
        "numpy: num_threads is 0",
        "num_threads",
        lambda d: numpy_input_fn(ROWS, LABELS, shuffle=False, num_threads=0),
    ),
    Usage(
        "numpy: queue_capacity is a string",
        "queue_capacity",
        lambda d: numpy_input_fn(ROWS, LABELS, shuffle=True, queue_capacity="9"),
    ),
    Usage(
        "numpy: one key in both",
        "x",
        lambda d: model(d).train(numpy_input_fn({"a": ROWS}, {"a": ROWS}, shuffle=False), steps=1),
    ),
    Usage("pandas: x is an array", "x", lambda d: pandas_input_fn(np.ones([2, 2]), shuffle=False)),
    Usage("pandas: shuffle is left out", "shuffle", lambda d: pandas_input_fn(FRAME)),
    Usage(
        "pandas: target_column is a number",
        "target_column",
        lambda d: pandas_input_fn(FRAME, shuffle=False, target_column=3),
    ),
)

TABLES = {"what an input_fn returns": RESULTS, "`numpy_input_fn`, `pandas_input_fn`": MADE}
