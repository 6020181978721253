"""Proves that a migrated model answers on another backend of Keras as TensorFlow 1 did.

The golden's last checkpoint becomes weights of the new model. A process without TensorFlow loads
them, predicts and evaluates the golden's batches, and its answers are compared with the golden's.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import keras_file, on_backend
from estimator2strategy.tools.checkpoint.conversion import convert
from estimator2strategy.tools.checkpoint.opening import open_store
from estimator2strategy.tools.checkpoint.store import Format
from estimator2strategy.tools.golden.opened import read
from estimator2strategy.tools.golden.recorder import batches
from estimator2strategy.tools.golden.recorder.options import RecordError
from estimator2strategy.tools.golden.result import (
    Check,
    CheckStatus,
    Tolerance,
    compared,
    unchecked,
)

ROWS = Tolerance(1e-5, 1e-5)
LOSS = Tolerance(1e-5, 1e-6)
# Of training steps: each adds its rounding to the weights of the next.
LATER_LOSS = Tolerance(1e-4, 1e-5)
_OF_TRAINING = "loss of each training step"


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

    The losses of training are compared if the model is compiled and draws no random numbers.
    """
    try:
        golden_read: Any = read(golden)
    except RecordError as error:
        raise CheckpointError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="e2s_backend_") as folder:
        batches = {"predict": _features(golden_read), "eval": _examples(golden_read, "eval")}
        keras_file.built(model, _first_features(batches))
        random = _random_in_training(golden_read)
        batches["train"] = [] if random else _examples(golden_read, "train")
        for moment in ("first", "last") if batches["train"] else ("last",):
            weights = os.path.join(folder, f"{moment}.weights.h5")
            store = open_store(golden_read.checkpoint(moment))
            convert(store, weights, Format.KERAS, model=model, rows=rows)
        Path(folder, "batches.pickle").write_bytes(pickle.dumps(batches))
        answers = _answers(folder, model, backend, python or sys.executable)
    made = [*_predictions(golden_read, answers["predictions"], ROWS.times(factor))]
    if answers["losses"]:
        loss = golden_read.result("evaluate/losses")
        here = np.array(answers["losses"])
        made.append(compared("loss of each evaluation batch", loss, here, LOSS.times(factor)))
    if answers["training"]:
        made.append(_training(golden_read, np.array(answers["training"]), factor))
    elif random:
        made.append(unchecked(_OF_TRAINING, random))
    if not made:
        raise CheckpointError(f"{golden} has neither predictions nor an evaluation to compare with")
    return made


# Written for Python 3.6, without types.
_rebuilt: Any = batches.rebuilt


def _features(golden: Any) -> list[Any]:
    """The features of each batch of the golden's prediction."""
    about = golden.about["batches"].get("predict")
    whole = [_rebuilt(about["structure"], b) for b in golden.batches("predict")] if about else []
    return [batch[0] if isinstance(batch, tuple) else batch for batch in whole]


def _examples(golden: Any, mode: str) -> list[Any]:
    """Features and labels of each batch of the golden's evaluation, or of its training."""
    about = golden.about["batches"].get(mode)
    if about is None or {"eval": "evaluate"}.get(mode, mode) not in golden.about:
        return []
    return [_rebuilt(about["structure"], batch) for batch in golden.batches(mode)]


def _first_features(batches: dict[str, list[Any]]) -> Any:
    """The features of a batch; None if the golden has none."""
    if batches["predict"]:
        return batches["predict"][0]
    return next((features for features, _ in batches["eval"]), None)


def _random_in_training(golden: Any) -> str:
    """Why the losses of training say nothing on another backend; "" if they do."""
    train = golden.about.get("train") or {}
    if train.get("draws") or train.get("uncontrolled"):
        return "the program draws random numbers in training; each backend draws others"
    return ""


def _training(golden: Any, here: np.ndarray, factor: float) -> Check:
    """Compares losses step by step; says from which step on they differ."""
    there = golden.result("train/losses")
    check = compared(_OF_TRAINING, there, here, LATER_LOSS.times(factor))
    if check.status is CheckStatus.FAILED and check.detail.startswith("["):
        step = int(check.detail[1:].partition("]")[0])
        cause = "the loss is another" if step == 0 else "the optimizer or its settings are others"
        detail = f"first at step {step}, so {cause}: {check.detail.partition(': ')[2]}"
        return dataclasses.replace(check, detail=detail)
    return check


def _answers(folder: str, model: str, backend: str, python: str) -> Any:
    command = [python, os.path.abspath(on_backend.__file__), folder, model]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        why = _reason(done.stderr) or f"exit code {done.returncode}"
        raise CheckpointError(f"{model} fails on the backend {backend}: {why}")
    return pickle.loads(Path(folder, "answers.pickle").read_bytes())


def _reason(said: str) -> str:
    """The line of a traceback that says why; Keras writes more lines below it."""
    lines = re.sub(r"\x1b\[\d+m", "", said).strip().splitlines()
    absent = [line.strip() for line in lines if on_backend.ABSENT in line]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (absent or errors[-1:] or lines[-1:] or [""])[0]


def _predictions(golden: Any, here: dict[str, np.ndarray], tolerance: Tolerance) -> list[Check]:
    """A check for each output: with the prediction of its name, else with the nearest of its shape.

    A model with one output does not say which of the old predictions it is.
    """
    there = golden.results("predict/last/")
    made = []
    known = here.keys() & there.keys()
    for name, value in here.items():
        if known and name not in known:
            continue  # the logits, say, which the loss reads
        names = [name] if name in there else [k for k, v in there.items() if v.shape == value.shape]
        rows = [
            compared(f"predictions {key}", there[key], value.astype(there[key].dtype), tolerance)
            for key in names
            if there[key].dtype.kind == "f"
        ]
        passed = [check for check in rows if check.status is CheckStatus.PASSED]
        made += (passed or rows)[:1]
    return made
