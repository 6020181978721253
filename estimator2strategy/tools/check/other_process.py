"""What `e2s doctor` asks in another process, which may fail or hang without harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys

# Facts of TensorFlow about itself, as JSON.
TENSORFLOW = """
import json, time
start = time.time()
import tensorflow as tf
seconds = time.time() - start
try:
    keras = tf.keras.__version__
except Exception as error:
    keras = f"{type(error).__name__}: {error}"
print(json.dumps({
    "tensorflow": tf.__version__,
    "seconds": round(seconds, 1),
    "tf.keras": keras,
    "devices": sorted({d.device_type for d in tf.config.list_physical_devices()}),
}))
"""


def probe(seconds: float, program: str = TENSORFLOW) -> dict[str, object]:
    """TensorFlow's facts about itself, from another process; {"error": why} if it fails.

    Args:
        seconds: How long it may take.
        program: Prints the facts as JSON in its last line.
    """
    try:
        result = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"`import tensorflow` was not done after {seconds:g} s"}
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
        return {"error": f"`import tensorflow` failed: {lines[-1]}"}
    return json.loads(result.stdout.strip().splitlines()[-1])
