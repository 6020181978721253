"""Keras's files: `.weights.h5`, and the `.keras` archives that have one inside.

Such a file calls its tensors `layers/dense/vars/0`. What they are to the model is read off the
model itself: it is built, each variable is filled with a number of its own, and is looked up in a
file that Keras writes of that.

Of a `.keras` archive the names of variables are those of the loaded model. To load it is to make
objects of the classes that the archive names. Some of them run code of the archive, or read files
that it names: then names are guessed without.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import h5py
import numpy as np

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import keras_probe
from estimator2strategy.tools.checkpoint.store import (
    Entry,
    Format,
    Store,
    check_is_file,
    natural,
    reading,
    unique,
)
from estimator2strategy.tools.untrusted.archives import check_is_no_bomb
from estimator2strategy.tools.untrusted.printable import printable

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


_WEIGHTS = "model.weights.h5"  # in a .keras archive

_DEEPEST = 64

# The variables of a layer, in this order, by their shapes: used if there is no model to ask.
_ROLES = {
    (2, 1): ("kernel", "bias"),
    (3, 1): ("kernel", "bias"),
    (4, 1): ("kernel", "bias"),
    (5, 1): ("kernel", "bias"),
    (1, 1, 1, 1): ("gamma", "beta", "moving_mean", "moving_variance"),
    (1, 1): ("gamma", "beta"),
    (2,): ("kernel",),
    (4,): ("kernel",),
    (2, 2, 1): ("kernel", "recurrent_kernel", "bias"),
    (2, 2, 2): ("kernel", "recurrent_kernel", "bias"),
}


class KerasStore(Store):
    """A `.weights.h5` or `.keras` file; see `open_store` for the arguments."""

    kind = Format.KERAS

    def __init__(self, path: str, model: str | None = None):
        self.path = path
        if not os.path.lexists(path):
            raise CheckpointError(f"there is no file {printable(path)}")
        check_is_file(path)
        self._scratch = tempfile.TemporaryDirectory(prefix="e2s_keras_")
        with reading(path):
            self._open(model)

    def _open(self, model: str | None) -> None:
        weights = self._weights()
        if wrong := keras_probe.problem(weights):
            raise CheckpointError(f"{printable(self.path)} cannot be read: {printable(wrong)}")
        self._file = h5py.File(weights, "r")
        data = list(datasets(self._file))  # also sees that all of it is in this file
        names = dict(self._names(model))
        dataset = [
            Entry(key, names.get(key, key), tuple(dataset.shape), dataset.dtype.name)
            for key, dataset in data
        ]
        if names:
            order = {key: i for i, key in enumerate(names)}
            dataset.sort(key=lambda entry: order.get(entry.key, len(order)))
        self.entries = unique(dataset)

    def read(self, entry: Entry) -> np.ndarray:
        with reading(f"{entry.label} of {self.path}"):
            value: np.ndarray = self._file[entry.key][()]
        return value

    def _weights(self) -> str:
        if not self.path.endswith(".keras"):
            return self.path
        with zipfile.ZipFile(self.path) as archive:
            check_is_no_bomb(archive, self.path)
            return archive.extract(_WEIGHTS, self._scratch.name)

    def _names(self, model: str | None) -> Iterator[tuple[str, str]]:
        """Key -> name, in the order of creation: of the model, else guessed from the shapes."""
        if model:
            return iter(names_in(built(model)))
        if self.path.endswith(".keras") and is_plain(self.path):
            import keras

            try:
                return iter(names_in(keras.models.load_model(self.path)))
            except Exception:  # a file that is broken, or of another Keras
                pass
        return guessed(self._file)


def datasets(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Key -> dataset, in a natural order.

    Raises:
        CheckpointError: Its data is in another file, or groups are in one another.
    """
    if path.count("/") > _DEEPEST:
        raise CheckpointError(f"it has groups more than {_DEEPEST} deep")
    for name in sorted(group, key=natural):
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise CheckpointError(f"{printable(path + name)} is a link, maybe to another file")
        member = group[name]
        if isinstance(member, h5py.Group):
            yield from datasets(member, f"{path}{name}/")
        elif not isinstance(member, h5py.Dataset) or member.external or member.is_virtual:
            raise CheckpointError(f"{printable(path + name)} has its data in another file")
        else:
            yield f"{path}{name}", member


def guessed(group: Any, path: str = "", label: str = "") -> Iterator[tuple[str, str]]:
    """Key -> name, from the names of layers and the shapes of what they keep."""
    own = group.get("vars")
    name = own.attrs.get("name", "") if own is not None else ""
    label = f"{label}/{name}".strip("/") if path and isinstance(name, str) else ""
    if own is not None and not path.startswith("optimizer"):
        keys = sorted(own, key=natural)
        roles = _ROLES.get(tuple(own[key].ndim for key in keys), ())
        for i, key in enumerate(keys):
            yield f"{path}vars/{key}", f"{label}/{roles[i] if roles else key}"
    for part in sorted(group, key=natural):
        if part != "vars" and isinstance(group[part], h5py.Group):
            yield from guessed(group[part], f"{path}{part}/", label)


_BUILT: dict[str, Any] = {}


def built(target: str, features: Any = None) -> Any:
    """The Keras model of `module:function` or `file.py:function`, with its optimizer's variables.

    Args:
        target: The function. It is called once in a process.
        features: A batch for a model that makes its variables when it is first called.

    Raises:
        CheckpointError: It cannot be built.
    """
    if target not in _BUILT:
        _BUILT[target] = _built(target, features)
    return _BUILT[target]


def _built(target: str, features: Any) -> Any:
    import keras

    from estimator2strategy.tools.golden.recorder.options import RecordError
    from estimator2strategy.tools.golden.recorder.programs import load

    try:
        model = load(target)()
    except RecordError as error:
        raise CheckpointError(f"--model: {error}") from error
    if isinstance(model, keras.Model) and not model.built and features is not None:
        try:
            model(features)
        except Exception as error:  # of the user's code
            raise CheckpointError(f"--model {target} fails on a batch: {error}") from error
    if not isinstance(model, keras.Model) or not model.built:
        raise CheckpointError(f"--model {target} must return a keras.Model that is built")
    if getattr(model, "optimizer", None) is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return model


def names_in(model: Any) -> list[tuple[str, str]]:
    """Key in a weights file -> path of the variable, in the order of the model's variables."""
    variables = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        known = {id(variable) for variable in variables}
        variables += [v for v in model.optimizer.variables if id(v) not in known]
    kept = [np.asarray(variable) for variable in variables]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for i, (variable, value) in enumerate(zip(variables, kept, strict=True)):
                variable.assign(np.full(value.shape, i + 1).astype(value.dtype))
            path = os.path.join(scratch, "marked.weights.h5")
            model.save_weights(path)
            named = {}
            with h5py.File(path, "r") as file:
                for key, data in datasets(file):
                    number = int(np.ravel(data[()])[0]) if data.size else 0
                    named[number] = key
    finally:
        for variable, value in zip(variables, kept, strict=True):
            variable.assign(value)
    paths = [_numberless(variable.path) for variable in variables[len(model.variables) :]]
    labels = [*(variable.path for variable in model.variables), *paths]
    return [(named[i + 1], label) for i, label in enumerate(labels) if i + 1 in named]


def _numberless(path: str) -> str:
    """`adam_1/iteration` -> `adam/iteration`: the number says how many a process has made."""
    return re.sub(r"^([a-z_]+?)_\d+/", r"\1/", path)


@contextlib.contextmanager
def template_of(target: str) -> Iterator[str]:
    """A weights file of a model that was just built, while this lasts."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "template.weights.h5")
        built(target).save_weights(path)
        yield path


def write_keras(path: str, template: str, values: Mapping[str, Callable[[], np.ndarray]]) -> None:
    """Writes a copy of a Keras file with other values, one at a time.

    Args:
        path: The new file; `.weights.h5` or `.keras`, as the template.
        template: The file to copy.
        values: Key -> reads the value.

    Raises:
        CheckpointError: `path` is of another kind than the template.
    """
    if path.endswith(".keras") != template.endswith(".keras"):
        raise CheckpointError(
            f"{path} can only be made like a file of its own kind, not {template}"
        )
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = os.path.join(scratch, "made")
        _write(made, template, values)
        os.replace(made, path)


def _write(path: str, template: str, values: Mapping[str, Callable[[], np.ndarray]]) -> None:
    if not template.endswith(".keras"):
        shutil.copyfile(template, path)
        _fill(path, values)
        return
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(template) as old:
        check_is_no_bomb(old, template)
        weights = old.extract(_WEIGHTS, scratch)
        _fill(weights, values)
        with zipfile.ZipFile(path, "w") as new:
            for item in old.infolist():
                if item.filename == _WEIGHTS:
                    new.write(weights, _WEIGHTS)
                else:
                    new.writestr(item, old.read(item.filename))


def _fill(path: str, values: Mapping[str, Callable[[], np.ndarray]]) -> None:
    with h5py.File(path, "r+") as file:
        for key, read in values.items():
            file[key][...] = read()
