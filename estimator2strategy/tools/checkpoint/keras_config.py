"""Tells which `.keras` archives may be loaded for the names of their variables.

To load a model is to make objects of the classes that its archive names. Some of them run code of
the archive, or read files that it names: then names are guessed without.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

_CONFIG = "config.json"
_MOST_BYTES = 100_000_000
_OPENS_FILES_OR_RUNS_CODE = {
    "FlaxLayer", "IntegerLookup", "JaxLayer", "Lambda", "StringLookup", "TFSMLayer",
    "TextVectorization", "TorchModuleWrapper", "function",
}  # fmt: skip
_MODULES = {
    "keras", "keras.constraints", "keras.dtype_policies", "keras.initializers", "keras.layers",
    "keras.losses", "keras.metrics", "keras.models", "keras.optimizers",
    "keras.optimizers.schedules", "keras.regularizers", "keras.src.models.functional", "builtins",
}  # fmt: skip


def is_plain(path: str) -> bool:
    """True if an archive names classes of Keras alone, of which none runs code or opens files."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_CONFIG).file_size > _MOST_BYTES:
                return False
            return _is_plain(json.loads(archive.read(_CONFIG)))
    except Exception:  # broken in one of many ways
        return False


def _is_plain(config: Any) -> bool:
    if isinstance(config, list):
        return all(map(_is_plain, config))
    if not isinstance(config, dict):
        return True
    name, module = config.get("class_name"), config.get("module")
    if name is not None and (name in _OPENS_FILES_OR_RUNS_CODE or module not in {None, *_MODULES}):
        return False
    return all(map(_is_plain, config.values()))
