"""On a terminal one live line shows how far training is; elsewhere logs look as they always did."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
PROGRAM = """
import sys
import tensorflow as tf
from estimator2strategy import estimator

tf1 = tf.compat.v1
tf1.logging.set_verbosity("INFO")

def model_fn(features, labels, mode):
    weight = tf1.get_variable("weight", [])
    loss = tf.square(weight - 1.0) + 0.0 * tf.reduce_sum(features)
    step = tf1.train.get_global_step()
    train_op = tf1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

config = estimator.RunConfig(model_dir=sys.argv[1], log_step_count_steps=50)
model = estimator.Estimator(model_fn, config=config)
model.train(lambda: tf.data.Dataset.from_tensors([1.0]).repeat(), steps=200)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return [sys.executable, str(program), str(tmp_path / "model")]


def on_a_terminal(command: list[str]) -> str:
    """The output to a terminal of 100 columns while `command` runs."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        command, stdout=terminal, stderr=terminal, stdin=terminal, env=ENVIRONMENT
    )
    os.close(terminal)
    output = b""
    while True:
        try:
            chunk = os.read(controller, 4096)
        except OSError:  # the other end is closed
            break
        output += chunk
    assert process.wait() == 0, output.decode()
    return output.decode()


@pytest.mark.slow
def test_a_terminal_shows_compiling_and_then_progress(command):
    output = on_a_terminal(command)
    assert "compiling:   0%" in output
    assert "0/200" in output
    assert "training: " in output
    assert "loss = " in output  # the log is still there, above the line


@pytest.mark.slow
def test_a_log_file_gets_estimators_lines_and_no_live_line(command):
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    lines = result.stderr.splitlines()
    assert any(line.startswith("INFO:tensorflow:loss = ") for line in lines)
    assert any(line.startswith("INFO:tensorflow:global_step/sec: ") for line in lines)
    assert any("INFO:tensorflow:Saving checkpoints for 200 into" in line for line in lines)
    assert any(line.startswith("INFO:tensorflow:Loss for final step: ") for line in lines)
    assert "compiling" not in result.stderr
    assert "\\r" not in result.stderr
