"""Datasets that are made outside of the input_fn that uses them."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check, check_text
from estimator2strategy.tools.check.settings import Settings

START = """\
import tensorflow as tf


def build():
    return tf.estimator.Estimator(model_fn=None)


def read(path):
    data = tf.data.TextLineDataset(path)
    data = data.map(int)
    return data


def batches(data, size):
    return data.batch(size).make_one_shot_iterator().get_next()


def main():
    model = build()
"""


def found(*lines, after=""):
    text = START + "".join(f"    {line}\n" for line in lines) + after
    return [f.message for f in check_text(text, Settings()).findings if f.rule == "E2S307"]


@pytest.mark.parametrize(
    "lines",
    [
        ("data = read('a')", "model.train(input_fn=lambda: batches(data, 8))"),
        ("data = read('a')", "model.evaluate(input_fn=lambda: data.batch(8))"),
        (
            "data = read('a').shuffle(8)",
            "data = data.repeat()",
            "model.train(input_fn=lambda: data)",
        ),
        ("data = read('a')", "spec = tf.estimator.TrainSpec(lambda: data, input_fn=lambda: data)"),
        (
            "data = read('a')",
            "def give():",
            "    return batches(data, 8)",
            "model.train(input_fn=give)",
        ),
    ],
)
def test_a_dataset_that_an_input_fn_finds_is_an_error(lines):
    assert found(*lines) == ["data is made outside of the function that uses it"]


@pytest.mark.parametrize(
    "lines",
    [
        ("model.train(input_fn=lambda: batches(read('a'), 8))",),
        ("data = ['a']", "model.train(input_fn=lambda: batches(read(data), 8))"),
        ("data = read('a') if model else None", "model.train(input_fn=lambda: batches(data, 8))"),
        ("data = tf.data.Options()", "model.train(input_fn=lambda: read('a').with_options(data))"),
        ("data = read('a')", "model.train(lambda: data)"),
        ("def give():", "    data = read('a')", "    return data", "model.train(input_fn=give)"),
    ],
)
def test_what_the_input_fn_makes_itself_is_no_finding(lines):
    assert found(*lines) == []


def test_a_function_that_makes_an_input_fn_may_not_make_the_dataset():
    maker = "\n\ndef maker(path):\n    data = read(path)\n    def give():\n        return data\n"
    maker += "    return give\n"
    line = "model.train(input_fn=maker('a'))"
    assert found(line, after=maker) == ["data is made outside of the function that uses it"]
    inside = maker.replace("    data = read(path)\n", "").replace(
        "return data", "return read(path)"
    )
    assert found(line, after=inside) == []


def test_a_lambda_that_has_a_name_is_an_input_fn_of_its_file(tmp_path):
    lines = "data = read('a')\ngive = lambda: batches(data, 8)\nmake = lambda: read('a')\n"
    (tmp_path / "inputs.py").write_text(START.partition("def main")[0] + lines)
    train = "import tensorflow as tf\nfrom inputs import give, make\n\nmodel = build(None)\n"
    train += "model.train(input_fn=give)\nmodel.train(input_fn=make)\n"
    (tmp_path / "train.py").write_text(train)
    report = check([str(tmp_path)], Settings())
    assert [(f.line, f.message) for f in report.findings if f.rule == "E2S307"] == [
        (5, "data is made outside of the function that uses it")
    ]
