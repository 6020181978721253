"""Gives exports of this package to those who read SavedModels, and writes the table of the guide.

    python -m tests.exports --tf115 PYTHON --tf215 PYTHON    # all, and kept in results.json
    python -m tests.exports onnx openvino                    # some
    python -m tests.exports --page                           # only the table, from results.json

Consumers that cannot be installed beside the tests get environments below build/exports: 6 GB, and
half an hour of two cores. `--tf115` is a Python 3.7 with TensorFlow 1.15.5, `--tf215` one with
2.15.1; without them their rows stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.exports import consumers_table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "exports"
RESULTS = HERE / "results.json"

# Environment -> what is installed there, with Python 3.11.
ENVIRONMENTS = {
    "consumers": (
        "tensorflow==2.21.0 tf_keras==2.21.0 tensorflow-serving-api==2.21.0 ai-edge-litert==2.3.0 "
        "tf2onnx==1.17.0 onnxruntime==1.32.0 openvino==2026.4.1"
    ),
    "tfjs": "tensorflowjs==4.22.0 tensorflow==2.19.0 ydf==0.11.0 setuptools<81",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(consumers_table.ROWS)}")
    parser.add_argument("--page", action="store_true", help="write the table, run nothing")
    parser.add_argument("--tf115", metavar="PYTHON", help="a Python with TensorFlow 1.15.5")
    parser.add_argument("--tf215", metavar="PYTHON", help="a Python with TensorFlow 2.15.1")
    asked = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    pythons = {"tf115": asked.tf115, "tf215": asked.tf215}
    if not asked.page:
        _make_exports(asked.tf115)
        for name in asked.rows or consumers_table.ROWS:
            row = consumers_table.ROWS[name]
            python = pythons.get(row.environment, "")
            exports = BUILD / "made" / row.exports
            if python is None or not exports.exists():
                print(f"{name}: left as it is, because there is no {row.environment}")
                continue
            results[name] = _asked(python or _python_of(row.environment), row, exports)
            print(name, results[name], flush=True)
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    consumers_table.write(results)
    return 0


def _make_exports(tf115: str | None) -> None:
    """Makes all exports that are not there yet, each set in a process of its own."""
    models = str(HERE / "models.py")
    made = BUILD / "made"
    makers = {
        "plain": [sys.executable, models, "FOLDER"],
        "for_tf115": [sys.executable, models, "FOLDER", "--for-tf=1.15"],
        "of_tf115": [tf115, models, "FOLDER"],
        "remedied": [sys.executable, "-m", "tests.exports.remedies", str(made)],
    }
    for name, (python, *arguments) in makers.items():
        folder = made / name
        if python is not None and not folder.exists():
            _run([python, *(str(folder) if word == "FOLDER" else word for word in arguments)])


def _asked(python: str, row: consumers_table.Row, exports: Path) -> dict[str, float | str | None]:
    script = "session_reader.py" if row.consumer == "session" else "consumers.py"
    arguments = [] if row.consumer == "session" else [row.consumer]
    return json.loads(_run([python, str(HERE / script), *arguments, str(exports)]).splitlines()[-1])


def _python_of(environment: str) -> str:
    folder = BUILD / environment
    python = str(folder / "bin" / "python")
    if not folder.exists():
        _run(["python3.11", "-m", "venv", str(folder)])
        _run([python, "-m", "pip", "install", "-qq", *ENVIRONMENTS[environment].split()])
    return python


def _run(command: list[str]) -> str:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stderr[-3000:]}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
