"""Programs that the tests of the check read."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests import fresh

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}

# One error (E2S219) and one warning (E2S212).
PROGRAM = """\
import tensorflow as tf

def input_fn():
    return tf.data.TFRecordDataset("train.tfrecord").repeat().batch(8)

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
"""


def write(folder: Path, **files: str) -> None:
    """Writes modules; `a__b` is the file a/b.py."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def e2s(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own."""
    return subprocess.run(
        [fresh.python(), "-m", "estimator2strategy", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Runs what follows in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
