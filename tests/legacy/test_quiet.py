"""A legacy run prints what its author saw, and little more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fresh

ROOT = Path(__file__).parents[2]

LAYERS = """\
import warnings
import tensorflow as tf

column = tf.feature_column.numeric_column("x")
layer = tf.feature_column.input_layer({"x": tf.ones([2, 1])}, [column])
tf.layers.dense(layer, 3)
tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(3)])
tf.logging.warning("From here: %s", "the program's own, deprecated or not")
warnings.warn("the program's own")
"""

REFUSED = """\
import tensorflow as tf

def build(x):
    return tf.contrib.eager.Iterator(x)

def model_fn(features, labels, mode):
    build(1.0)

try:
    {}["missing"]
except KeyError:
    data = lambda: tf.data.Dataset.from_tensors(([1.0], [1.0]))
    tf.estimator.Estimator(model_fn).train(data, steps=1)
"""

FAILING = """\
import tensorflow as tf

def model_fn(features, labels, mode):
    raise KeyError("the program's own")

data = lambda: tf.data.Dataset.from_tensors(([1.0], [1.0]))
tf.estimator.Estimator(model_fn).train(data, steps=1)
"""

# Asks Google's client, which is not installed, and not the network.
LOST = """\
import tensorflow as tf

resolver = tf.contrib.cluster_resolver.TPUClusterResolver("mine", zone="a", project="b")
tf.contrib.tpu.RunConfig(cluster=resolver)
"""

# Prints each line as often as TF 1.15.5 with absl 2.1 does: twice under absl, which adds a handler
# to the root logger, and once where the program configures the root logger before it imports us.
LOGGED = """\
import sys

def main(argv):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("one line")

if sys.argv.pop(1) == "basicConfig":
    import logging

    logging.basicConfig(level=logging.INFO)
    import tensorflow as tf

    main([])
else:
    import tensorflow as tf
    from absl import app

    app.run(main)
"""


def printed(
    folder: Path, source: str, *arguments: str, python: str | None = None, **variables: str
) -> str:
    """What a program writes to stderr under `e2s run`."""
    program = folder / "program.py"
    program.write_text(source)
    ran = subprocess.run(
        [python or fresh.python(), "-m", "estimator2strategy", "run", str(program), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return ran.stderr


MIXED = """\
import estimator2strategy.tf1 as tf
import modern

tf.layers
column = tf.feature_column.numeric_column("mine")
modern.column()
with tf.Graph().as_default():
    tf.feature_column.input_layer({"mine": tf.ones([2, 1])}, [column])
"""


def test_notices_are_one_line_where_the_import_has_changed_and_stay_for_modern_code(tmp_path):
    modern = "import tensorflow as tf\ndef column():\n    tf.feature_column.bucketized_column"
    (tmp_path / "modern.py").write_text(modern + "(tf.feature_column.numeric_column('x'), [1.0])\n")
    (tmp_path / "program.py").write_text(MIXED)
    ran = subprocess.run(
        [fresh.python(), str(tmp_path / "program.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert ran.stderr.count("E2S_DEPRECATIONS=1") == 1
    assert "bucketized_column (from" in ran.stderr
    assert "input_layer (from" not in ran.stderr
    assert "program.py" not in ran.stderr


def test_notices_of_deprecation_are_one_line_that_says_how_to_see_them(tmp_path):
    errors = printed(tmp_path, LAYERS)
    assert errors.count("E2S_DEPRECATIONS=1") == 1
    assert "will be removed" not in errors
    assert "will be replaced" not in errors
    assert "Instructions for updating" not in errors


def test_what_the_program_itself_says_is_shown(tmp_path):
    errors = printed(tmp_path, LAYERS)
    assert "From here: the program's own, deprecated or not" in errors
    assert "UserWarning: the program's own" in errors


def test_notices_of_deprecation_are_shown_where_they_are_asked_for(tmp_path):
    errors = printed(tmp_path, LAYERS, E2S_DEPRECATIONS="1")
    assert "numeric_column (from tensorflow.python.feature_column" in errors
    assert "`tf.nn.rnn_cell.LSTMCell` is deprecated" in errors
    assert "`tf.nn.rnn_cell.MultiRNNCell` is deprecated" in errors


def test_a_refusal_ends_in_its_message_and_shows_lines_of_the_program_only(tmp_path):
    errors = printed(tmp_path, REFUSED)
    files = {line for line in errors.splitlines() if line.startswith("  File ")}
    assert len(files) == 3
    assert all('program.py", line' in line for line in files)
    assert "KeyError" not in errors  # what the program was handling has no part in it
    assert "tf.contrib.eager.Iterator" in errors.splitlines()[-1]


def test_a_refusal_says_what_it_quotes_once(tmp_path):
    errors = printed(tmp_path, LOST)
    assert errors.count("Traceback") == 1
    assert errors.count("RuntimeError: Missing") == 1
    assert "network_endpoints" in printed(tmp_path, LOST, E2S_TRACEBACK="full")


def test_a_full_traceback_is_a_variable_away(tmp_path):
    errors = printed(tmp_path, REFUSED, E2S_TRACEBACK="full")
    assert "estimator2strategy/estimator/estimator.py" in errors
    assert "KeyError" in errors


def test_an_error_of_the_program_shows_none_of_our_frames(tmp_path):
    errors = printed(tmp_path, FAILING)
    assert 'program.py", line 4, in model_fn' in errors
    assert "estimator2strategy/" not in errors


def test_absl_s_handler_prints_a_line_again_as_in_tf_1_15(tmp_path):
    assert printed(tmp_path, LOGGED, "absl").count("one line") == 2


@pytest.mark.slow
def test_a_program_s_own_handler_is_the_only_one_as_in_tf_1_15(tmp_path):
    # A fork of one that has imported TensorFlow would have TensorFlow's handler already.
    errors = printed(tmp_path, LOGGED, "basicConfig", python=sys.executable)
    assert errors.count("one line") == 1
