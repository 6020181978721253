"""Opens a checkpoint of any format, as the `Store` that reads it."""

from __future__ import annotations

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint.bundle import BundleStore
from estimator2strategy.tools.checkpoint.keras_file import KerasStore
from estimator2strategy.tools.checkpoint.npz_file import NpzStore
from estimator2strategy.tools.checkpoint.store import Store


def open_store(path: str, model: str | None = None) -> Store:
    """Opens a checkpoint.

    Args:
        path: A prefix (`model.ckpt-20`), its `.index` file, a folder of checkpoints (the latest),
            a SavedModel, a `.weights.h5` or a `.keras` file, or an `.npz` file of an exported step.
        model: `module:function` or `file.py:function` that builds the Keras model, for the
            names of what a `.weights.h5` file holds.

    Raises:
        CheckpointError: There is nothing at `path` that can be read.
    """
    if path.endswith((".h5", ".keras")):
        return KerasStore(path, model)
    if path.endswith(".npz"):
        return NpzStore(path)
    if path.endswith((".hdf5", ".pb", ".pkl")):
        raise CheckpointError(
            f"{path} is of no known format: a TensorFlow checkpoint, .h5, .keras or .npz"
        )
    return BundleStore(path)
