"""A TPU program without a mistake has no findings; with one mistake it has the finding for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checked_programs import write

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.settings import Settings

MODEL = """\
import tensorflow as tf

import layers


def model_fn(features, labels, mode, params):
    logits = layers.network(features["x"], mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    optimizer = tf.train.AdamOptimizer(params["rate"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""
LAYERS = """\
import tensorflow as tf


def network(x, training):
    hidden = tf.layers.dense(x, 16, activation=tf.nn.relu)
    return tf.layers.dense(hidden, 10)
"""
INPUT = """\
import tensorflow as tf


def parse(record):
    example = tf.parse_single_example(
        record, {"x": tf.FixedLenFeature([4], tf.float32), "y": tf.FixedLenFeature([], tf.int64)}
    )
    return {"x": example["x"]}, tf.cast(example["y"], tf.int32)


def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)
"""
MAIN = """\
import tensorflow as tf

from model import model_fn
from pipeline import input_fn


def main(_):
    config = tf.estimator.tpu.RunConfig(
        save_checkpoints_steps=200,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=100,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        config=config,
        params={"rate": 0.1, "use_tpu": True},
        train_batch_size=128,
        eval_batch_size=64,
    )
    estimator.train(input_fn, max_steps=1000)
    print(estimator.evaluate(input_fn, steps=10))
"""
PROGRAM = {"model": MODEL, "layers": LAYERS, "pipeline": INPUT, "main": MAIN}

# (file, what is there, what is put in its place, the rule that finds it)
MISTAKES = [
    ("model", "tf.tpu.CrossShardOptimizer(optimizer)", "tf.train.AdamOptimizer(1)", "E2S203"),
    ("model", ", global_step=tf.train.get_global_step()", "", "E2S219"),
    (
        "model",
        "tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
        "tf.metrics.mean(loss)",
        "E2S210",
    ),
    ("model", "eval_metrics=(metric_fn, [labels, logits])", "eval_metric_ops={}", "E2S209"),
    ("model", "mode, loss=loss, train_op", "mode, loss=tf.to_double(loss), train_op", "E2S404"),
    ("model", "    loss = tf", "    tf.summary.histogram('x', logits)\n    loss = tf", "E2S226"),
    ("layers", "    return tf", "    hidden = tf.Print(hidden, [hidden])\n    return tf", "E2S402"),
    ("layers", "    return tf", "    tf.py_func(print, [hidden], [])\n    return tf", "E2S401"),
    ("layers", "(hidden, 10)", "(tf.boolean_mask(hidden, x > 0), 10)", "E2S403"),
    ("pipeline", ", drop_remainder=True", "", "E2S206"),
    ("pipeline", 'params["batch_size"]', "128", "E2S201"),
    ("pipeline", "data = tf.data", "tf.Session()\n    data = tf.data", "E2S221"),
    ("pipeline", "batch(", 'padded_batch(padded_shapes={"x": [None]}, batch_size=', "E2S305"),
    ("pipeline", '{"x": example["x"]}, tf.cast(example["y"], tf.int32)', "example", "E2S303"),
    ("main", "save_checkpoints_steps=200", "save_checkpoints_steps=150", "E2S215"),
    ("main", '"rate": 0.1', '"rate": 0.1, "batch_size": 8', "E2S202"),
    ("main", "train_batch_size=128", "train_batch_size=100", "E2S216"),
    ("main", "        eval_batch_size=64,\n", "", "E2S217"),
    ("main", ", steps=10", "", "E2S213"),
    ("main", "max_steps=1000", "max_steps=1000, steps=10", "E2S214"),
    ("main", "estimator.train(input_fn", "estimator.train(input_fn({})", "E2S307"),
    ("main", "iterations_per_loop=100", "iterations_per_loop=100, num_cores=8", "E2S209"),
]


def rules_found(folder, program, at_least=Severity.WARNING):
    write(folder, **program)
    report = check([str(folder)], Settings(root=folder))
    return {f.rule for f in report.findings if f.severity >= at_least}


def test_program_without_a_mistake_has_no_findings(tmp_path):
    assert rules_found(tmp_path, PROGRAM) == set()


@pytest.mark.parametrize(("file", "before", "after", "rule"), MISTAKES)
def test_mistake_is_found(tmp_path, file, before, after, rule):
    assert before in PROGRAM[file]
    program = {**PROGRAM, file: PROGRAM[file].replace(before, after, 1)}
    found = rules_found(tmp_path, program, Severity.INFO)
    assert rule in found - rules_found(tmp_path, PROGRAM, Severity.INFO)


def test_a_program_that_falls_back_on_tensorflow_is_taken_for_one_of_the_facade():
    """`try: import estimator2strategy.tf1 as tf; except ImportError: import tensorflow as tf`."""
    example = Path(__file__).parents[3] / "examples" / "mnist_tpu" / "mnist_tpu.py"
    assert "except ImportError" in example.read_text()
    report = check([str(example)], Settings())
    assert [f for f in report.findings if f.severity is Severity.ERROR] == []
