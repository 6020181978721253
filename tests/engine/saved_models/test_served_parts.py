"""A served model, split into parsing, numbers and texts that together say what it said."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.saved_models import model_files, served_parts
from estimator2strategy.errors import SavedModelError
from tests.engine.saved_models.small_exports import (
    answers,
    exported,
    towns_and_numbers,
    two_examples,
)

tf1 = tf.compat.v1


def split(tmp_path, build):
    source = exported(tmp_path / "source", build)
    made = served_parts.split(model_files.read(source), ["serve"])
    for name, part in made.items():
        model_files.write(part, source, str(tmp_path / name), variables=name == "numbers")
    return source, made


def test_the_parts_together_are_the_model(tmp_path):
    source, made = split(tmp_path, towns_and_numbers)
    assert list(made) == ["parsing", "numbers", "texts"]
    expected = answers(source, examples=two_examples())
    known = {"examples": two_examples()}
    for name, part in made.items():
        signature = part.meta_graphs[0].signature_def["serving_default"]
        known |= answers(str(tmp_path / name), **{key: known[key] for key in signature.inputs})
    assert known["names"].tolist() == [b"high", b"low"]
    assert known["town"].tolist() == [b"oslo", b"bonn"]
    for name in expected:
        np.testing.assert_array_equal(known[name], expected[name])


def test_numbers_hold_all_weights_and_no_strings(tmp_path):
    split(tmp_path, towns_and_numbers)
    loaded = tf.saved_model.load(str(tmp_path / "numbers"))
    assert [variable.name for variable in loaded.variables] == ["weights:0"]
    call = loaded.signatures["serving_default"]
    types = {tensor.dtype for op in call.graph.get_operations() for tensor in op.outputs}
    assert tf.string not in types
    assert not (tmp_path / "parsing" / "variables").exists()
    assert not (tmp_path / "texts" / "variables").exists()


def test_tflite_converts_the_numbers(tmp_path):
    split(tmp_path, towns_and_numbers)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "numbers"))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    runner = interpreter.get_signature_runner()
    found = runner(concat=np.array([[0.0, 1.0, 1.0, 2.0]], np.float32))
    np.testing.assert_allclose(found["scores"], [[2.0, 3.0]])


def numbers_alone():
    x = tf1.placeholder(tf.float32, [None, 2], "x")
    return {"x": x}, {"y": tf.matmul(x, tf1.get_variable("w", initializer=[[1.0], [2.0]]))}


def strings_alone():
    text = tf1.placeholder(tf.string, [None], "text")
    return {"text": text}, {"length": tf.strings.length(text)}


def both_in_a_loop():
    text = tf1.placeholder(tf.string, [None], "text")
    weight = tf1.get_variable("w", initializer=2.0)

    def of_one(one):
        return tf.strings.to_number(one) * weight

    return {"text": text}, {"y": tf.map_fn(of_one, text, fn_output_signature=tf.float32)}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (numbers_alone, "no strings, tables or parsers"),
        (strings_alone, "no weight is used"),
        (both_in_a_loop, "'map/while' computes with weights and with .* which is no number"),
    ],
)
def test_a_model_that_cannot_be_split_is_refused(tmp_path, build, message):
    with pytest.raises(SavedModelError, match=message):
        served_parts.split(model_files.read(exported(tmp_path / "source", build)), ["serve"])


def test_a_wrong_signature_is_told_beside_those_that_there_are(tmp_path):
    model = model_files.read(exported(tmp_path / "source", towns_and_numbers))
    with pytest.raises(SavedModelError, match="no signature 'x': there are serving_default"):
        served_parts.split(model, ["serve"], "x")
