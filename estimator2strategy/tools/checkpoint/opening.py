"""Opens a checkpoint of any format, as the `Store` that reads it; `.npz` files are read here.

`e2s export-step` writes one of initial values, and `run.py --save` one of trained values.
"""

from __future__ import annotations

import json
import os
import zipfile
from typing import IO, Any

import numpy as np
import tensorflow as tf

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint.bundle import BundleStore
from estimator2strategy.tools.checkpoint.keras_file import KerasStore
from estimator2strategy.tools.checkpoint.store import (
    Entry,
    Format,
    Store,
    check_is_file,
    reading,
)
from estimator2strategy.tools.untrusted.archives import check_is_no_bomb
from estimator2strategy.tools.untrusted.printable import printable

_SUFFIX = ".npy"
# The places of random ops: no variables of the program, and in no checkpoint.
_STREAMS = "random_streams/"
# NumPy's files do not know the type: its two bytes are without a meaning there.
_BFLOAT16 = np.dtype("V2")


class NpzStore(Store):
    """An `.npz` file; nothing in it is unpickled. Its names are those of a checkpoint of TF1."""

    kind = Format.TF1

    def __init__(self, path: str):
        self.path = path
        check_is_file(path)
        with reading(path), zipfile.ZipFile(path) as archive:
            check_is_no_bomb(archive, path)
            names = [n for n in archive.namelist() if not n.startswith(_STREAMS)]
            self.entries = [_entry(archive, name) for name in names]

    def read(self, entry: Entry) -> np.ndarray:
        with (
            reading(f"{entry.label} of {self.path}"),
            zipfile.ZipFile(self.path) as archive,
            archive.open(entry.key + _SUFFIX) as file,
        ):
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype == _BFLOAT16:
            return array.view(tf.bfloat16.as_numpy_dtype)
        return array


def _entry(archive: zipfile.ZipFile, name: str) -> Entry:
    with archive.open(name) as file:
        shape, dtype = _header(file)
    if not name.endswith(_SUFFIX) or dtype.hasobject:
        raise CheckpointError(
            f"{printable(str(archive.filename))} cannot be read: {printable(name)} is no array of "
            "numbers"
        )
    key = name.removesuffix(_SUFFIX)
    return Entry(key, key, shape, "bfloat16" if dtype == _BFLOAT16 else dtype.name)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(file)
    return shape, dtype


def make_latest(prefix: str) -> None:
    """Makes a checkpoint the one that an Estimator whose model_dir it is in goes on from."""
    folder, name = os.path.split(os.path.abspath(prefix))
    state = tf.train.get_checkpoint_state(folder)
    before = list(state.all_model_checkpoint_paths) if state else []
    others = [path for path in map(os.path.basename, before) if path != name]
    lines = [f"model_checkpoint_path: {json.dumps(name)}"]
    lines += [f"all_model_checkpoint_paths: {json.dumps(path)}" for path in (*others, name)]
    scratch = os.path.join(folder, f"checkpoint.{os.getpid()}.tmp")
    with open(scratch, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(scratch, os.path.join(folder, "checkpoint"))


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
