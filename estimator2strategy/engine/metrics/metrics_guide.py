"""Writes the page of the migration guide that is about metrics, its table from `table.py`.

python -m estimator2strategy.engine.metrics.metrics_guide > migration_guide/metrics.md
"""

from __future__ import annotations

import sys

from estimator2strategy.engine.metrics.metric_table import MetricRow, Weights, rows

_PAGE = """\
# Metrics

<!-- Made by `python -m estimator2strategy.engine.metrics.metrics_guide > migration_guide/metrics.md`. -->

For you if your program has `eval_metric_ops` or a `metric_fn`. It keeps them, and `evaluate` gives
the numbers that it always gave. At the end of this page you have them as Keras metrics, to use in a
migrated program:

```python legacy
metrics = estimator.keras_metrics(input_fn)        # a dict from names to keras.metrics.Metric
```

## What `evaluate` does

It runs the ops that your functions have built: those of `tf.metrics`, a streaming metric of your
own, an F1 of a precision and a recall, a `tf.py_func`. Hooks that fetch the value or the update get
what they always got.

**One number over all examples.** A metric is updated once per step, on the host, with the batches
of all cores as one: core 0's examples first, then core 1's. It is never a mean of the cores'
means, nor of the batches'. A smaller last batch counts with the examples that it has. On cores all
batches have one size. A program that fills up the last one gives its padding a weight of 0, and the
padding then counts nothing.

**Mistakes have the same results.** NaN predictions, a total weight of 0 and an evaluation without a
batch give the same number (which may be NaN). Predictions and labels of different lengths, and
labels that are no class, end the evaluation with the same error as before. On cores, a `metric_fn`
that captures a tensor of `model_fn` as a closure is an error that names the tensor and the line.

## The metrics as objects

`keras_metrics` returns the metrics of a program. It calls input_fn and model_fn once, and neither
trains nor restores. A (value, update) pair of `tf.metrics` that the program passes on unchanged
becomes a Keras metric with the rule of its row below. A pair that the program made itself becomes
one that replays the recorded ops. Left out, with a warning, is a metric whose value is several
tensors or needs the last batch, and one that keeps its state elsewhere than in local variables of a
fixed shape: in a table, say.

```python
import keras
import numpy as np
import estimator2strategy.tf1 as tf

def model_fn(features, labels, mode):
    predictions = tf.layers.dense(features, 1, tf.sigmoid)
    loss = tf.losses.log_loss(labels, predictions)
    metrics = {{
        "auc": tf.metrics.auc(labels, predictions, num_thresholds=500),
        "error": tf.metrics.mean_absolute_error(labels, predictions),
    }}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

x = np.random.default_rng(0).normal(size=[64, 3]).astype("float32")
y = (x[:, :1] > 0).astype("float32")

def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(20)

metrics = tf.estimator.Estimator(model_fn).keras_metrics(input_fn)

model = keras.Sequential([keras.layers.Dense(1, "sigmoid")])
model.compile(loss="binary_crossentropy", metrics=[metrics["auc"], metrics["error"]])
results = model.evaluate(x, y, batch_size=20, return_dict=True)
assert {{"auc", "error"}} <= results.keys()
```

A metric of a row below takes the arguments of its function: `update_state(labels, predictions,
sample_weight)`. So the model has to return the tensors that the function got: classes for
`accuracy`, for example, if the legacy program took an `argmax` first. Put a metric whose function
got `weights` into `weighted_metrics`.

You can also make one without a program:

```python
from estimator2strategy.engine.metrics import keras_metric_for

precision = keras_metric_for("precision_at_thresholds", thresholds=[0.3, 0.7])
precision.update_state([0, 1, 1], [0.2, 0.9, 0.6])
assert [round(float(p), 6) for p in precision.result()] == [1.0, 1.0]
```

Any other metric is a `ReplayedMetric`. Its `update_state` takes the values of the recorded tensors
that `metric.inputs` names. Use it to compare with, not in `model.compile`.

## All functions

None of them becomes a plain Keras class, because no plain class has the legacy rule in every case.
In a new program, write the class of the column "nearest in Keras". The column "when plain Keras
differs" says when its number is another one. The column "weights" says how weights broadcast:

{weights}

All rules were read from TensorFlow 2.16 to 2.21, `tensorflow/python/ops/metrics_impl.py`. The tests
compare each with the function itself.

{table}
"""

_WEIGHTS_NAMES = {
    Weights.ELEMENT: "element",
    Weights.PRODUCT: "product",
    Weights.FLAT: "flat",
    Weights.FLAT_OR_SCALAR: "flat or scalar",
    Weights.ROW: "row",
}


def page() -> str:
    """The text of `migration_guide/metrics.md`."""
    weights = "\n".join(f"- *{name}*: {kind.value}." for kind, name in _WEIGHTS_NAMES.items())
    return _PAGE.format(weights=weights, table=_table())


def _table() -> str:
    head = ("function", "nearest in Keras", "weights", "when plain Keras differs", "source")
    lines = [head, ("---",) * len(head), *map(_cells, rows())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(row: MetricRow) -> tuple[str, ...]:
    keras_class = f"`{row.keras.removeprefix('keras.metrics.')}`" if row.keras else "none"
    weights = _WEIGHTS_NAMES[row.weights]
    source = f"`metrics_impl.{row.function}`"
    return f"`{row.function}`", keras_class, weights, row.differences, source


if __name__ == "__main__":
    sys.stdout.write(page())
