"""Predicts and evaluates with a Keras model where TensorFlow cannot be imported.

    KERAS_BACKEND=jax python on_backend.py FOLDER model.py:build

FOLDER has the weights and batches that `backend_proof` wrote; the answers are written beside them.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any


def main(folder: str, target: str) -> int:
    """Writes `answers.pickle`: the predictions of all rows, and the loss of each batch."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # an import of it fails here
    import numpy as np

    model = _function(target)()
    model.load_weights(os.path.join(folder, "model.weights.h5"))
    given = pickle.loads(Path(folder, "batches.pickle").read_bytes())
    rows = [_named(model(features, training=False)) for features in given["predict"]]
    predictions = {
        key: np.concatenate([_array(row[key]) for row in rows]) for key in (rows[0] if rows else {})
    }
    losses = []
    if getattr(model, "compiled", False):
        for features, labels in given["eval"]:
            model.reset_metrics()
            losses.append(float(model.test_on_batch(features, labels, return_dict=True)["loss"]))
    answers = {"predictions": predictions, "losses": losses}
    Path(folder, "answers.pickle").write_bytes(pickle.dumps(answers))
    return 0


def _function(target: str) -> Any:
    place, _, name = target.rpartition(":")
    path, module = (
        os.path.split(place.removesuffix(".py")) if place.endswith(".py") else ("", place)
    )
    sys.path.insert(0, os.path.abspath(path))
    return getattr(importlib.import_module(module), name)


def _named(outputs: Any) -> dict[str, Any]:
    return outputs if isinstance(outputs, dict) else {"": outputs}


def _array(tensor: Any) -> Any:
    import keras

    return keras.ops.convert_to_numpy(tensor)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
