"""TensorFlow's checkpoints: the name-based formats of TF1, and the object-based one of TF2.

    path_of("job/model.ckpt-7")    # as TensorFlow's reader takes it

Such a checkpoint has no index: the path itself is its file, or several shards start with it.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.core.framework import variable_pb2
from tensorflow.core.protobuf import meta_graph_pb2, trackable_object_graph_pb2

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint.store import (
    Entry,
    Format,
    Store,
    check_is_file,
    natural,
    reading,
    said,
    unique,
)
from estimator2strategy.tools.untrusted.printable import printable
from estimator2strategy.tools.untrusted.regular_files import read_bytes

# The ending of a shard, and of the pattern for all of them that the file `checkpoint` names.
_SHARD = re.compile(r"-[0-9?]{5}-of-(\d{5})$")
# The last bytes of each file.
_END = bytes.fromhex("57fb808b247547db")


def path_of(path: str) -> str | None:
    """The path by which TensorFlow reads a checkpoint: of its file, or a pattern for its shards.

    Args:
        path: The path of the checkpoint, of one of its shards, or the pattern.

    Returns:
        The path, or None if there is no such checkpoint.

    Raises:
        CheckpointError: A file of it is missing, or is no checkpoint.
    """
    start = without_shards(path)
    shards = sorted(glob.glob(f"{glob.escape(start)}-?????-of-?????"))
    if start == path and os.path.lexists(path):
        files = [path]
    elif shards and (count := _SHARD.search(path if start != path else shards[0])):
        path = f"{start}-?????-of-{count[1]}"
        files = [shard for shard in shards if shard.endswith(count[1])]
        if len(files) != int(count[1]):
            there = f"{len(files)} of its {int(count[1])} files are there"
            raise CheckpointError(f"{printable(path)} is not complete: {there}")
    else:
        return None
    for file in files:
        _check(file)
    return path


def is_one(start: str) -> bool:
    """True if files of this format have this path, or shards of it."""
    return os.path.isfile(start) or bool(glob.glob(f"{glob.escape(start)}-?????-of-?????"))


def without_shards(path: str) -> str:
    """The path without the part that stands for its shards: that of its `.meta` file."""
    return _SHARD.sub("", path)


def _check(file: str) -> None:
    check_is_file(file)
    with open(file, "rb") as opened:
        opened.seek(max(os.path.getsize(file) - len(_END), 0))
        if opened.read() != _END:
            what = "it is no checkpoint, or it is cut off"
            raise CheckpointError(f"{printable(file)} cannot be read: {what}")


OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# No protocol buffer is larger.
_MOST_GRAPH = 2 << 30
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class BundleStore(Store):
    """A checkpoint of TF1 or TF2; see `open_store` for the path."""

    def __init__(self, path: str):
        self.path = _prefix(path)
        with reading(self.path):
            self._open()

    def _open(self) -> None:
        self._reader = tf.train.load_checkpoint(self.path)
        shapes = self._reader.get_variable_to_shape_map()
        dtypes = self._reader.get_variable_to_dtype_map()
        self.kind = Format.TF2 if OBJECT_GRAPH in shapes else Format.TF1
        self.others = [n for n in shapes if n == OBJECT_GRAPH or dtypes[n] in _UNREADABLE]
        names = [name for name in shapes if name not in self.others]
        labels = self._labels() if self.kind is Format.TF2 else {}
        order = {name: i for i, name in enumerate([*labels, *_created(self.path)])}
        names.sort(key=lambda name: (order.get(name, len(order)), natural(name)))
        self.entries = unique(
            Entry(name, labels.get(name, name), tuple(shapes[name]), dtypes[name].name)
            for name in names
        )

    def read(self, entry: Entry) -> np.ndarray:
        with reading(f"{entry.label} of {self.path}"):
            value: np.ndarray = self._reader.get_tensor(entry.key)
        return value

    def raw(self, name: str) -> object:
        """The value of one of `others`: the graph of objects, a table, ..."""
        with reading(f"{name} of {self.path}"):
            return self._reader.get_tensor(name)

    def _labels(self) -> dict[str, str]:
        """Key -> name of the variable, in the order of the objects."""
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(self._reader.get_tensor(OBJECT_GRAPH))
        labels: dict[str, str] = {}
        for node in graph.nodes:
            for attribute in node.attributes:
                if attribute.name == "VARIABLE_VALUE":
                    path = attribute.checkpoint_key.removesuffix(_VALUE)
                    labels[attribute.checkpoint_key] = attribute.full_name or path
        # Slots of Keras 2's optimizers say whose they are.
        for node in graph.nodes:
            for slot in node.slot_variables:
                keys = [
                    _key(graph, i)
                    for i in (slot.slot_variable_node_id, slot.original_variable_node_id)
                ]
                if all(keys):
                    labels[keys[0]] = f"{labels[keys[1]]}/{slot.slot_name}"
        return labels


_UNREADABLE = (tf.string, tf.resource, tf.variant)


def _key(graph: trackable_object_graph_pb2.TrackableObjectGraph, node: int) -> str:
    keys = [a.checkpoint_key for a in graph.nodes[node].attributes if a.name == "VARIABLE_VALUE"]
    return keys[0] if keys else ""


def _prefix(path: str) -> str:
    """The prefix of the checkpoint that a path means.

    Raises:
        CheckpointError: There is none.
    """
    if path.endswith(".index"):
        path = path.removesuffix(".index")
    if os.path.isdir(path):
        inside = os.path.join(path, "variables", "variables")
        path = inside if os.path.exists(f"{inside}.index") else _latest(path)
    if not os.path.exists(f"{path}.index"):
        if prefix := path_of(path):
            return prefix
        shown = printable(path)
        raise CheckpointError(f"there is no checkpoint {shown}: no file {shown}.index")
    for file in (f"{path}.index", *glob.glob(f"{glob.escape(path)}.data-*")):
        check_is_file(file)
    return path


def _latest(folder: str) -> str:
    """The prefix that the file `checkpoint` of a folder names; it must be in that folder.

    Raises:
        CheckpointError: There is none, or the file cannot be read; says which there are.
    """
    inside = os.path.join(glob.escape(folder), "*")
    complete = {path.removesuffix(".index") for path in glob.glob(f"{inside}.index")}
    graphs = [path.removesuffix(".meta") for path in glob.glob(f"{inside}.meta")]
    complete.update(filter(is_one, graphs))
    names = ", ".join(printable(os.path.basename(p)) for p in sorted(complete, key=natural))
    there = f"; there are {names}: name one" if names else ""
    list_file = os.path.join(folder, "checkpoint")
    if not os.path.lexists(list_file):
        raise CheckpointError(f"there is no checkpoint in the folder {printable(folder)}{there}")
    check_is_file(list_file)
    try:
        state = tf.train.get_checkpoint_state(folder)
    except Exception as error:  # TensorFlow's own errors, and those of its parser
        what = f"{printable(list_file)} cannot be read ({said(error)})"
        raise CheckpointError(f"{what}{there}") from error
    if state is None or not state.model_checkpoint_path:
        raise CheckpointError(f"{printable(list_file)} names no checkpoint{there}")
    latest: str = state.model_checkpoint_path
    if os.path.realpath(os.path.dirname(latest)) != os.path.realpath(folder):
        named = f"{printable(list_file)} names {printable(latest)}"
        raise CheckpointError(f"{named}, which is not in its folder{there}")
    return latest


def _created(prefix: str) -> list[str]:
    """Names of variables in the order of their creation, where a `.meta` file tells."""
    graph, names = meta_graph_pb2.MetaGraphDef(), []
    try:
        graph.ParseFromString(read_bytes(f"{without_shards(prefix)}.meta", _MOST_GRAPH))
        serialized = graph.collection_def["variables"].bytes_list.value
        variables = [variable_pb2.VariableDef.FromString(value) for value in serialized]
    except (OSError, message.DecodeError):  # then by their names
        return []
    for variable in variables:
        names.append(variable.snapshot_name.partition("/Read")[0])
        names.append(variable.variable_name.partition(":")[0])
    return names


def write_bundle(
    prefix: str,
    tensors: Iterable[tuple[str, int, Callable[[], object]]],
    most_bytes: int = 256 << 20,
) -> None:
    """Writes a checkpoint, and holds a part of it in memory.

    Args:
        prefix: Of the new checkpoint.
        tensors: Name, size in bytes, and a function that reads the value.
        most_bytes: How much is held, but for a tensor that is larger by itself.
    """
    folder = os.path.dirname(os.path.abspath(prefix))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        parts: list[str] = []
        names: list[str] = []
        values: list[tf.Tensor] = []
        held = 0

        def flush() -> None:
            nonlocal held
            if not names:
                return
            part = os.path.join(scratch, f"part-{len(parts)}")
            slices = [""] * len(names)
            tf.raw_ops.SaveV2(
                prefix=part, tensor_names=names, shape_and_slices=slices, tensors=values
            )
            parts.append(part)
            names.clear()
            values.clear()
            held = 0

        for name, size, read in tensors:
            if held + size > most_bytes:
                flush()
            names.append(name)
            values.append(tf.convert_to_tensor(read()))
            held += size
        flush()
        tf.raw_ops.MergeV2Checkpoints(
            checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=False
        )
    state = Path(folder, "checkpoint")
    if not state.exists():  # what an Estimator looks for the latest checkpoint in
        name = json.dumps(os.path.basename(prefix))
        state.write_text(f"model_checkpoint_path: {name}\nall_model_checkpoint_paths: {name}\n")
