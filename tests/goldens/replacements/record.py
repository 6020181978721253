"""Records TF 1.15's side of the table of Keras replacements, into tf115.json beside this file.

    python3.7 tests/goldens/replacements/record.py        # TensorFlow 1.15.5

Needs no other package: it reads the rows and the inputs from two files of the source tree.
JSON: legacy expression -> situation -> the numbers, flat; or the name of the error.
"""

import importlib.util
import json
import os
import sys

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "..", "..", "..", "benchmarks")


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(TABLES, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def arrays(values):
    found = {}
    for name, value in values.items():
        array = np.array(value)
        found[name] = array.astype(np.float32) if array.dtype == np.float64 else array
    return found


def flat(values):
    return [float(v) for value in values for v in np.ravel(np.asarray(value, np.float64))]


def train(row, situation):
    """The variable after each step, or after every so many, in one list."""
    case = inputs.TRAININGS[situation]
    rate = tf.placeholder(tf.float32, [])
    step = tf.train.get_or_create_global_step()
    optimizer = eval(row.legacy, {"tf": tf, "rate": rate, "step": step})
    variable = tf.get_variable("w", initializer=np.array(case.start, np.float32))
    gradient = tf.placeholder(tf.float32)
    ids = tf.placeholder(tf.int32, [None])
    if case.ids is None:
        given = tf.reshape(gradient, variable.shape)
    else:
        given = tf.IndexedSlices(tf.reshape(gradient, [-1, 2]), ids, [5, 2])
    op = optimizer.apply_gradients([(given, variable)], step)
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number, values in enumerate(case.gradients):
            feeds = {gradient: values, rate: case.rates[number]}
            feeds[ids] = case.ids[number] if case.ids else []
            session.run(op, feeds)
            if (number + 1) % case.every == 0:
                found.append(session.run(variable))
    return flat(found)


def schedule(row, values):
    step = tf.placeholder(tf.int64, [])
    rate = eval(row.legacy, {"tf": tf, "step": step})
    with tf.Session() as session:
        return [float(session.run(rate, {step: number})) for number in values["steps"]]


def loss(row, values):
    values = dict(values)
    reduction, _ = values.pop("reduction")
    tensors = {name: tf.constant(value) for name, value in arrays(values).items()}
    with tf.Session() as session:
        return flat([session.run(eval(row.legacy, {**tensors, "tf": tf, "reduction": reduction}))])


def layer(row, values):
    """The output of a training step, and the moving averages after it."""
    made = eval(row.legacy, {"tf": tf})
    output = made(tf.constant(arrays(values)["x"]), training=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        output, _ = session.run([output, made.updates])
        return flat([output, *session.run(made.non_trainable_variables)])


def column(row, values):
    """The id of each example; -1 if it has none."""
    made = eval(row.legacy, {"tf": tf})
    features = {name: tf.constant(value)[:, None] for name, value in arrays(values).items()}
    if not isinstance(
        made,
        type(tf.feature_column.bucketized_column(tf.feature_column.numeric_column("x"), [0.0])),
    ):
        made = tf.feature_column.indicator_column(made)
    hot = tf.feature_column.input_layer(features, [made])
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        rows = session.run(hot)
    return [float(np.argmax(row)) if row.any() else -1.0 for row in rows]


def metric(row, batches):
    shapes = {name: [None, *a.shape[1:]] for name, a in arrays(batches[0]).items()}
    fed = {
        name: tf.placeholder(tf.as_dtype(a.dtype), shapes[name])
        for name, a in arrays(batches[0]).items()
    }
    value, update = eval(row.legacy, {**fed, "tf": tf})
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for batch in batches:
            session.run(update, {fed[name]: value for name, value in arrays(batch).items()})
        return flat([session.run(value)])


KINDS = {"schedule": schedule, "loss": loss, "layer": layer, "column": column, "metric": metric}


def record(row, situation):
    with tf.Graph().as_default():
        try:
            if row.kind == "optimizer":
                return train(row, situation)
            return KINDS[row.kind](row, inputs.INPUTS[row.kind][situation])
        except (ValueError, TypeError, tf.errors.OpError) as error:
            return type(error).__name__


def main():
    found = {"tensorflow": tf.__version__}
    for row in replacements.rows():
        situations = inputs.TRAININGS if row.kind == "optimizer" else inputs.INPUTS[row.kind]
        found[row.legacy] = {name: record(row, name) for name in situations}
    with open(os.path.join(HERE, "tf115.json"), "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")
    print(len(found) - 1, "rows")


replacements, inputs = load("replacement_rows"), load("replacement_inputs")

if __name__ == "__main__":
    main()
