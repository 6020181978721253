"""Proves that a migrated model answers on another backend of Keras as TensorFlow 1 did.

The golden's last checkpoint becomes weights of the new model. A process without TensorFlow loads
them, predicts and evaluates the golden's batches, and its answers are compared with the golden's.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import on_backend
from estimator2strategy.tools.checkpoint.conversion import convert
from estimator2strategy.tools.checkpoint.opening import open_store
from estimator2strategy.tools.checkpoint.store import Format
from estimator2strategy.tools.golden.opened import read
from estimator2strategy.tools.golden.recorder import structures
from estimator2strategy.tools.golden.recorder.folder import RecordError
from estimator2strategy.tools.golden.result import Check, CheckStatus, Tolerance, compared

ROWS = Tolerance(1e-5, 1e-5)
LOSS = Tolerance(1e-5, 1e-6)


def checks(
    golden: str,
    model: str,
    backend: str,
    rows: list[Any] | None = None,
    factor: float = 1.0,
    python: str | None = None,
) -> list[Check]:
    """Compares predictions and losses with those of a golden.

    Args:
        golden: The folder of the golden.
        model: `module:function` that builds the Keras model.
        backend: The backend of Keras: "jax" or "torch".
        rows: A mapping of the variables; None: it is inferred.
        factor: The factor by which tolerances are widened.
        python: The Python that has the backend; None: this one.

    Raises:
        CheckpointError: The weights do not fit, or the model fails on that backend.
    """
    try:
        found: Any = read(golden)
    except RecordError as error:
        raise CheckpointError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="e2s_backend_") as folder:
        weights = os.path.join(folder, "model.weights.h5")
        convert(open_store(found.checkpoint("last")), weights, Format.KERAS, model=model, rows=rows)
        batches = {"predict": _features(found), "eval": _examples(found)}
        Path(folder, "batches.pickle").write_bytes(pickle.dumps(batches))
        answers = _answers(folder, model, backend, python or sys.executable)
    made = [*_predictions(found, answers["predictions"], ROWS.times(factor))]
    if answers["losses"]:
        loss = found.result("evaluate/losses")
        here = np.array(answers["losses"])
        made.append(compared("loss of each evaluation batch", loss, here, LOSS.times(factor)))
    if not made:
        raise CheckpointError(f"{golden} has neither predictions nor an evaluation to compare with")
    return made


# Written for Python 3.6, without types.
_rebuilt: Any = structures.rebuilt


def _features(golden: Any) -> list[Any]:
    """The features of each batch of the golden's prediction."""
    about = golden.about["batches"].get("predict")
    whole = [_rebuilt(about["structure"], b) for b in golden.batches("predict")] if about else []
    return [batch[0] if isinstance(batch, tuple) else batch for batch in whole]


def _examples(golden: Any) -> list[Any]:
    """Features and labels of each batch of the golden's evaluation."""
    about = golden.about["batches"].get("eval")
    if about is None or "evaluate" not in golden.about:
        return []
    return [_rebuilt(about["structure"], batch) for batch in golden.batches("eval")]


def _answers(folder: str, model: str, backend: str, python: str) -> Any:
    command = [python, os.path.abspath(on_backend.__file__), folder, model]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise CheckpointError(f"{model} fails on the backend {backend}: {last}")
    return pickle.loads(Path(folder, "answers.pickle").read_bytes())


def _predictions(golden: Any, here: dict[str, np.ndarray], tolerance: Tolerance) -> list[Check]:
    """A check for each output: with the prediction of its name, else with the nearest of its shape.

    A model with one output does not say which of the old predictions it is.
    """
    there = golden.results("predict/last/")
    made = []
    for name, value in here.items():
        names = [name] if name in there else [k for k, v in there.items() if v.shape == value.shape]
        found = [
            compared(f"predictions {key}", there[key], value.astype(there[key].dtype), tolerance)
            for key in names
            if there[key].dtype.kind == "f"
        ]
        passed = [check for check in found if check.status is CheckStatus.PASSED]
        made += (passed or found)[:1]
    return made
