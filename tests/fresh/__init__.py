"""A Python that has imported TensorFlow before it starts.

    ran = subprocess.run([fresh.python(), "-c", "import tensorflow as tf; print(tf.zeros([]))"])

Importing TensorFlow takes about five seconds of processor time. `python()` is an executable that
takes the arguments of a Python, and whose processes are forks of one that has imported TensorFlow
and this package, and has used neither: no device, graph or option exists. A test uses it where it
needs a process of its own, and `sys.executable` where it needs an interpreter of its own: because
of what is imported, of `sitecustomize`, of a terminal, or of a variable that TensorFlow reads while
it is imported.

A process that such a process starts by its `sys.executable` is a fork, too.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_START_SECONDS = 120


@functools.cache
def python() -> str:
    """The path of the executable; the first call starts the server, which ends with this process.

    Raises:
        RuntimeError: The server has not started; it has said why on stderr.
    """
    if not hasattr(os, "pidfd_open"):  # not Linux, where a fork may not use what was imported
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="e2s_fresh_", dir="/tmp"))  # short, as a socket's is
    address = str(folder / "socket")
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "server.py"), address],
        env={**os.environ, "PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,  # open while this process lives
        start_new_session=True,  # Ctrl-C is for the tests
    )
    atexit.register(_end, server, folder)
    deadline = time.monotonic() + _START_SECONDS
    while not os.path.exists(address):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{_HERE / 'server.py'} has not started.")
        time.sleep(0.05)
    return _write_executable(folder / "python", address)


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.communicate()
    shutil.rmtree(folder, ignore_errors=True)


def _write_executable(path: Path, address: str) -> str:
    relay = (_HERE / "relay.py").read_text()
    path.write_text(f"#!{sys.executable} -IS\n{relay}\nmain({address!r}, {sys.executable!r})\n")
    path.chmod(0o755)
    return str(path)
