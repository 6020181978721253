"""Starts processes of its own; run as a module: `-m package.workers`."""

import json
import multiprocessing
import subprocess
import sys

from . import task

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(task.run, [task.Work(3)])
    script = subprocess.run(
        [sys.executable, "package/script.py"], capture_output=True, text=True, check=True
    )
    print(json.dumps({"spawned": spawned, "script": script.stdout.strip(), "package": __package__}))
    sys.exit(3)
