"""What becomes of an input when the call, or the process, that used it ends."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import tensorflow as tf
from tests.engine.runtime.programs import host_estimator

model = host_estimator(sys.argv[1])
data = lambda: tf.data.Dataset.from_tensors([1.0]).repeat().prefetch(tf.data.AUTOTUNE)
model.train(data, steps=3000)
predictions = model.predict(data)
print(next(predictions), flush=True)
"""


def test_a_process_that_closes_no_prediction_ends_in_silence(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr
    assert "Traceback" not in done.stderr
