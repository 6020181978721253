"""Predicts and evaluates with a Keras model where TensorFlow cannot be imported.

    KERAS_BACKEND=jax python on_backend.py FOLDER model.py:build

FOLDER has the weights and batches that `backend_proof` wrote; the answers are written beside them.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import traceback
import types
from pathlib import Path
from typing import Any

ABSENT = "and there is no TensorFlow here"


def main(folder: str, target: str) -> int:
    """Writes `answers.pickle`: the predictions of all rows, and the loss of each batch."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # an import of it fails here
    import keras  # noqa: F401  # before the stand-in for TensorFlow is there
    import numpy as np

    given = pickle.loads(Path(folder, "batches.pickle").read_bytes())
    model = _function(target)()
    if not model.built:
        model(next(iter([*given["predict"], *(features for features, _ in given["eval"])])))
    model.load_weights(os.path.join(folder, "last.weights.h5"))
    rows = [_named(model(features, training=False)) for features in given["predict"]]
    predictions = {
        key: np.concatenate([_array(row[key]) for row in rows]) for key in (rows[0] if rows else {})
    }
    losses = []
    if getattr(model, "compiled", False):
        for features, labels in given["eval"]:
            model.reset_metrics()
            losses.append(float(model.test_on_batch(features, labels, return_dict=True)["loss"]))
    answers = {
        "predictions": predictions,
        "losses": losses,
        "training": _trained(model, os.path.join(folder, "first.weights.h5"), given["train"]),
    }
    Path(folder, "answers.pickle").write_bytes(pickle.dumps(answers))
    return 0


def _trained(model: Any, weights: str, batches: list[Any]) -> list[float]:
    """The loss of each step of training from the first weights."""
    if not batches or getattr(model, "optimizer", None) is None:
        return []
    model.optimizer.build(model.trainable_variables)
    model.load_weights(weights)
    losses = []
    for features, labels in batches:
        model.reset_metrics()
        losses.append(float(model.train_on_batch(features, labels, return_dict=True)["loss"]))
    return losses


class _Absent(types.ModuleType):
    """Stands for TensorFlow where a program imports it for other things than the model.

    Its input by tf.data, say. It can be named, and not called.
    """

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        caller = traceback.extract_stack(limit=2)[0]
        place = f"{os.path.basename(caller.filename)}:{caller.lineno}"
        raise ModuleNotFoundError(f"{place} calls {self.__name__}, {ABSENT}")


def _function(target: str) -> Any:
    place, _, name = target.rpartition(":")
    path, module = (
        os.path.split(place.removesuffix(".py")) if place.endswith(".py") else ("", place)
    )
    sys.path.insert(0, os.path.abspath(path))
    sys.modules["tensorflow"] = _Absent("tensorflow")
    try:
        value = importlib.import_module(module)
    finally:
        sys.modules["tensorflow"] = None  # type: ignore[assignment]
    return getattr(value, name)


def _named(outputs: Any) -> dict[str, Any]:
    return outputs if isinstance(outputs, dict) else {"": outputs}


def _array(tensor: Any) -> Any:
    import keras

    return keras.ops.convert_to_numpy(tensor)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
