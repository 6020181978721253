"""The facts that TensorFlow and JAX tell of themselves, in processes that `e2s doctor` starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

OF_TENSORFLOW = """
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

OF_JAX = """
import json, os, time
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
start = time.time()
import jax
try:
    found = [(device.platform, device.device_kind) for device in jax.local_devices()]
    devices = ", ".join(f"{found.count(d)} x {d[1]} ({d[0]})" for d in dict.fromkeys(found))
except Exception as error:
    devices = f"none: {(str(error).splitlines() or [type(error).__name__])[0]}"
print(json.dumps({
    "jax": jax.__version__,
    "jax seconds": round(time.time() - start, 1),
    "jax devices": devices,
}))
"""

# JAX starts its devices in a few seconds, but libtpu waits for a TPU that another process holds.
SECONDS = 20


def probe(
    seconds: float, program: str = OF_TENSORFLOW, module: str = "tensorflow"
) -> dict[str, object]:
    """A module's facts about itself, from another process; {"error": why} if it fails.

    Args:
        seconds: How long it may take.
        program: Imports it, and prints the facts as JSON in its last line.
        module: Its name.
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
        return {"error": f"`import {module}` was not done after {seconds:g} s"}
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
        return {"error": f"`import {module}` failed: {lines[-1]}"}
    facts: dict[str, object] = json.loads(result.stdout.strip().splitlines()[-1])
    return facts


def what_does_not_fit(found: Mapping[str, object], jaxlib: str | None) -> str:
    """The fault that a probe has found; "" if there is none."""
    if "error" in found:
        return str(found["error"])
    if str(found["jax devices"]).startswith("none"):
        return f"jax {found['jax']} with jaxlib {jaxlib} has no device: {found['jax devices']}"
    return ""
