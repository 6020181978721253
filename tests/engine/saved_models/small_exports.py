"""Small graphs of TF 1 as SavedModels, for tests that rewrite them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
Tensors = Mapping[str, tf.Tensor]


def exported(
    folder: Any,
    build: Callable[[], tuple[Tensors, Tensors]],
    *,
    strip_default_attrs: bool = True,
) -> str:
    """Writes the graph of `build`, which returns inputs and outputs, with its variables."""
    with tf.Graph().as_default(), tf1.Session() as session:
        inputs, outputs = build()
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        signature = tf1.saved_model.predict_signature_def(dict(inputs), dict(outputs))
        builder = tf1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            main_op=tf1.tables_initializer(),
            strip_default_attrs=strip_default_attrs,
        )
        builder.save()
    return str(folder)


def answers(folder: str, **feeds: Any) -> dict[str, np.ndarray]:
    """The results of the default signature in a Session."""
    with tf.Graph().as_default(), tf1.Session() as session:
        graph = tf1.saved_model.load(session, ["serve"], folder)
        signature = graph.signature_def["serving_default"]
        fed = {signature.inputs[name].name: value for name, value in feeds.items()}
        return session.run({key: info.name for key, info in signature.outputs.items()}, fed)


def towns_and_numbers() -> tuple[Tensors, Tensors]:
    """tf.Examples with a town and two numbers; a class as a string."""
    examples = tf1.placeholder(tf.string, [None], "examples")
    town, x = tf.io.FixedLenFeature([], tf.string), tf.io.FixedLenFeature([2], tf.float32)
    parsed = tf.io.parse_example(examples, {"town": town, "x": x})
    keys = tf.lookup.KeyValueTensorInitializer(["rome", "oslo"], tf.constant([0, 1], tf.int64))
    town = tf.lookup.StaticHashTable(keys, -1).lookup(parsed["town"])
    inputs = tf.concat([tf.one_hot(town, 2), parsed["x"]], 1)
    weights = tf1.get_variable("weights", initializer=np.eye(4, 2, dtype=np.float32) + 0.5)
    scores = tf.matmul(inputs, weights)
    names = tf.gather(tf.constant(["low", "high"]), tf.argmax(scores, 1))
    return {"examples": examples}, {"scores": scores, "names": names, "town": parsed["town"]}


def two_examples() -> np.ndarray:
    """Of oslo and a town that no table has."""
    made = []
    for town, numbers in ((b"oslo", [1.0, 2.0]), (b"bonn", [3.0, -4.0])):
        example = tf.train.Example()
        example.features.feature["town"].bytes_list.value.append(town)
        example.features.feature["x"].float_list.value.extend(numbers)
        made.append(example.SerializeToString())
    return np.array(made, object)
