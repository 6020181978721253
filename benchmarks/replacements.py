"""Keras beside TensorFlow 1.15, part by part: makes the table of migration_guide/codemods.md.

    python -m benchmarks.replacements        # measures; `python -m pages` writes the page

TensorFlow 1.15's numbers are recorded: tests/goldens/replacements/record.py. The others are
computed here, by the installed Keras 3 and tf-keras.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks import replacement_inputs, replacement_rows
from benchmarks.replacement_rows import MEASURED, Replacement
from estimator2strategy.engine.metrics import keras_metric_for
from estimator2strategy.tf1.facade import namespace
from examples import tf1_layers, tf1_optimizers
from pages.replacements import ALL_DIGITS

_ROOT = Path(__file__).resolve().parents[1]
GOLDEN = _ROOT / "tests" / "goldens" / "replacements" / "tf115.json"

Numbers = list[float] | str


@functools.cache
def golden() -> dict[str, Any]:
    """TF 1.15's numbers, by legacy expression and situation."""
    return json.loads(GOLDEN.read_text())


def situations(row: Replacement) -> Mapping[str, Any]:
    """The inputs of a row, by situation."""
    if row.kind == "optimizer":
        return replacement_inputs.TRAININGS
    return replacement_inputs.INPUTS[row.kind]


def computed(row: Replacement, text: str, situation: str, legacy_keras: bool = False) -> Numbers:
    """The numbers that an expression gives, or the error that it raises."""
    case = situations(row)[situation]
    try:
        if legacy_keras:
            return _KINDS_OF_MODEL_FN[row.kind](row, text, case)
        return _KINDS[row.kind](row, text, case)
    except (ValueError, TypeError, tf.errors.OpError) as error:
        return type(error).__name__


def digits(legacy: Numbers, found: Numbers, each: bool = False) -> int:
    """The number of leading digits in which all numbers are equal, at most ALL_DIGITS.

    Args:
        legacy: TF 1.15's numbers.
        found: The numbers beside them.
        each: True if a number is compared by its own size, not by that of the largest.
    """
    if isinstance(legacy, str) or isinstance(found, str) or len(legacy) != len(found):
        return 0
    expected, actual = np.array(legacy), np.array(found)
    size = np.abs(expected) if each else np.abs(expected).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(expected == actual, 0.0, np.abs(actual - expected) / size)
    worst = float(errors.max())
    if not worst < 1:
        return 0
    return ALL_DIGITS if worst <= 2 * 10**-ALL_DIGITS else int(-math.log10(worst))


def cell(legacy: Numbers, found: Numbers, each: bool) -> dict[str, Any]:
    """The digits that are equal, and the first numbers that are not."""
    equal = digits(legacy, found, each)
    result: dict[str, Any] = {"digits": equal}
    if equal == ALL_DIGITS:
        return result
    if isinstance(legacy, str) or isinstance(found, str):
        shown = [v if isinstance(v, str) else f"{v[0]:.6g}" for v in (legacy, found)]
        return {**result, "legacy": shown[0], "keras": shown[1]}
    if len(legacy) != len(found):
        return {**result, "legacy": f"{len(legacy)} numbers", "keras": f"{len(found)}"}
    at = next(
        number
        for number in range(len(legacy))
        if digits(legacy[: number + 1], found[: number + 1], each) <= equal
    )
    return {**result, "legacy": f"{legacy[at]:.6g}", "keras": f"{found[at]:.6g}"}


def _array(value: Any) -> np.ndarray:
    array = np.array(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _flat(values: Any) -> list[float]:
    return [float(v) for value in values for v in np.ravel(np.asarray(value, np.float64))]


def _names(**others: Any) -> dict[str, Any]:
    return {
        "tf": tf, "keras": keras, "math": math, "keras_metric_for": keras_metric_for, **others,
    }  # fmt: skip


def _gradient(values: Any, ids: Any) -> Any:
    return values if ids is None else tf.IndexedSlices(values, ids, tf.constant([5, 2]))


def _steps(case: Any) -> Iterator[tuple[float, np.ndarray, Any]]:
    """The learning rate, the gradients and the ids of each step."""
    for number, rate in enumerate(case.rates):
        ids = None if case.ids is None else np.array(case.ids[number], np.int32)
        yield rate, _array(case.gradients[number]), ids


def _train(row: Replacement, text: str, case: Any) -> list[float]:
    optimizer = eval(text, _names(rate=case.rates[0], **vars(tf1_optimizers)))
    variable = keras.Variable(np.array(case.start, np.float32))
    optimizer.build([variable])

    def step(values: Any, ids: Any) -> None:
        optimizer.apply([_gradient(values, ids)], [variable])

    apply = tf.function(step) if case.every > 1 else step
    found = []
    for number, (rate, values, ids) in enumerate(_steps(case), 1):
        if float(optimizer.learning_rate) != np.float32(rate):
            optimizer.learning_rate = rate
        apply(tf.constant(values), ids)
        if number % case.every == 0:
            found.append(variable.numpy())
    return _flat(found)


def _train_in_graph(row: Replacement, text: str, case: Any) -> list[float]:
    """The same by an optimizer of the facade's tf.keras, as a model_fn has it."""
    found = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rate = tf.compat.v1.placeholder(tf.float32, [])
        optimizer = eval(text, {"tf": namespace.resolve("tf"), "rate": rate})
        variable = tf.compat.v1.get_variable("w", initializer=_array(case.start), use_resource=True)
        given = tf.compat.v1.placeholder(tf.float32, [4] if case.ids is None else [None, 2])
        rows = tf.compat.v1.placeholder(tf.int32, [None])
        gradient = _gradient(given, None if case.ids is None else rows)
        step = optimizer.apply_gradients([(gradient, variable)])
        session.run(tf.compat.v1.global_variables_initializer())
        for number, (now, values, ids) in enumerate(_steps(case), 1):
            session.run(step, {rate: now, given: values, rows: [] if ids is None else ids})
            if number % case.every == 0:
                found.append(session.run(variable))
    return _flat(found)


def _schedule(row: Replacement, text: str, values: Any) -> list[float]:
    return [float(eval(text, _names(step=tf.constant(step, tf.int64)))) for step in values["steps"]]


def _schedule_in_graph(row: Replacement, text: str, values: Any) -> list[float]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        step = tf.compat.v1.placeholder(tf.int64, [])
        rate = eval(text, {"tf": namespace.resolve("tf"), "math": math, "step": step})
        return [float(session.run(rate, {step: number})) for number in values["steps"]]


def _loss(row: Replacement, text: str, values: Any) -> list[float]:
    legacy, reduction = values["reduction"]
    tensors = {k: tf.constant(_array(v)) for k, v in values.items() if k != "reduction"}
    used = legacy if ".v1." in text else reduction
    return _flat([eval(text, _names(reduction=used, **tensors))])


def _layer(row: Replacement, text: str, values: Any) -> list[float]:
    layer = eval(text, _names(**vars(tf1_layers)))
    output = layer(_array(values["x"]), training=True)
    return _flat([output, *(weight.numpy() for weight in layer.non_trainable_weights)])


def _layer_in_graph(row: Replacement, text: str, values: Any) -> list[float]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        layer = eval(text, {"tf": namespace.resolve("tf")})
        output = layer(tf.constant(_array(values["x"])), training=True)
        session.run(tf.compat.v1.global_variables_initializer())
        output, _ = session.run([output, layer.updates])
        return _flat([output, *session.run(layer.non_trainable_weights)])


def _column(row: Replacement, text: str, values: Any) -> list[float]:
    tensors = {name: tf.constant(value) for name, value in values.items()}
    return _flat([eval(text, _names(**tensors))])


def _metric(row: Replacement, text: str, batches: Any) -> list[float]:
    metric = eval(text, _names())
    for batch in batches:
        tensors = {name: tf.constant(_array(value)) for name, value in batch.items()}
        metric.update_state(*eval(f"({row.values},)", _names(**tensors)))
    return _flat([metric.result()])


def _metric_in_graph(row: Replacement, text: str, batches: Any) -> list[float]:
    """The same by a metric of tf-keras; its rules are those of the facade's tf.keras."""
    return _metric(row, text.replace("tf.keras.", "__import__('tf_keras')."), batches)


_KINDS: dict[str, Callable[[Replacement, str, Any], list[float]]] = {
    "optimizer": _train,
    "schedule": _schedule,
    "loss": _loss,
    "layer": _layer,
    "column": _column,
    "metric": _metric,
}
_KINDS_OF_MODEL_FN = {
    "optimizer": _train_in_graph,
    "schedule": _schedule_in_graph,
    "layer": _layer_in_graph,
    "metric": _metric_in_graph,
}


def measured(row: Replacement) -> dict[str, Any]:
    """The cells of a row, by column and situation."""
    found: dict[str, Any] = {}
    for column in ("keras3", "keras2", "written"):
        text = getattr(row, column)
        if text:
            found[column] = {
                situation: cell(
                    golden()[row.legacy][situation],
                    computed(row, text, situation, column == "keras2"),
                    getattr(case, "each", False),
                )
                for situation, case in situations(row).items()
            }
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [{"legacy": row.legacy, **measured(row)} for row in replacement_rows.rows()]
    made = {"tensorflow": tf.__version__, "keras": keras.__version__, "rows": rows}
    MEASURED.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(rows)} rows in {MEASURED}; now run `python -m pages`\n")


if __name__ == "__main__":
    main()
