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

from estimator2strategy.engine.runtime import console

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


def test_plain_lines_come_once_a_while(capsys):
    seconds = iter([0.0, 30.0, 61.0, 90.0, 122.0])
    lines = console.PlainLines(100, 700, every=60, clock=lambda: next(seconds))
    for step in (150, 222, 300, 400):
        lines.show(step, 0.25)
    assert capsys.readouterr().err.splitlines() == [
        "e2s: step 222 of 700, loss 0.25, 2 steps/s, 03:59 left",
        "e2s: step 400 of 700, loss 0.25, 2.92 steps/s, 01:42 left",
    ]


def test_plain_lines_of_a_training_without_end_do_not_say_what_is_left(capsys):
    seconds = iter([0.0, 60.0])
    lines = console.PlainLines(0, float("inf"), every=60, clock=lambda: next(seconds))
    lines.show(120, 1.0)
    assert capsys.readouterr().err == "e2s: step 120, loss 1, 2 steps/s\n"


@pytest.mark.parametrize(("every", "kind"), [(60.0, console.PlainLines), (None, console.LiveLine)])
def test_where_there_is_no_terminal_lines_are_plain_if_they_are_asked_for(every, kind):
    console.show_plain_lines(every)
    try:
        with console.live_line(0, 10) as progress:
            assert type(progress) is kind
    finally:
        console.show_plain_lines(None)
