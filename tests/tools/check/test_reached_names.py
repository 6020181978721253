"""`e2s check --target tf2` tells what a program's run reaches, and TensorFlow 2 has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.check import reached_names

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PROGRAM = """\
import tensorflow as tf
from tensorflow.contrib import layers

flags = tf.flags


class Model:
    def loss(self, x):
        net = layers.fully_connected(x, 2)
        self.__own = tf.nn.relu(net)
        return tf.reduce_sum(self.__own, keep_dims=True)


if __name__ == "__main__":
    Model().loss(tf.placeholder(tf.float32, [None, 3]))
"""


def test_what_is_reached_is_compared_with_what_is_told(tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    reached = reached_names.reached_by(folder, ["train.py"], tmp_path / "reached.json")
    lacking = {"tensorflow.contrib", "tf.flags", "tf.placeholder", "tf.reduce_sum(keep_dims)"}
    assert set(reached_names.failures(reached)) == lacking
    assert reached_names.not_told(folder, reached) == (4, {})
    (folder / "train.py").write_text("import tensorflow as tf\n")
    assert set(reached_names.not_told(folder, reached)[1]) == lacking


@pytest.mark.slow
def test_all_that_an_example_reaches_is_told(tmp_path):
    command = ["cluster/ranker.py", "--max_steps=20", f"--model_dir={tmp_path / 'model'}"]
    reached = reached_names.reached_by(EXAMPLES, command, tmp_path / "reached.json")
    number, missed = reached_names.not_told(EXAMPLES, reached)
    assert number > 5
    assert missed == {}
