"""The files of a SavedModel: its graphs are read, and written beside the same variables.

    model = read("exported/1700000000")
    write(model, "exported/1700000000", "exported/1700000000-tf1.15")

An error leaves no half of a folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from estimator2strategy.errors import SavedModelError

_BINARY, _TEXT = "saved_model.pb", "saved_model.pbtxt"
_VARIABLES = "variables"
_BESIDE_GRAPHS = (_VARIABLES, "assets", "assets.extra")


def read(folder: str) -> SavedModel:
    """The graphs of a SavedModel.

    Raises:
        SavedModelError: There is none, or it cannot be read.
    """
    model = SavedModel()
    try:
        for name in (_BINARY, _TEXT):
            path = os.path.join(folder, name)
            if tf.io.gfile.exists(path):
                with tf.io.gfile.GFile(path, "rb") as file:
                    content = file.read()
                if name == _BINARY:
                    model.ParseFromString(content)
                else:
                    text_format.Parse(content.decode(), model)
                break
        else:
            raise SavedModelError(
                f"{folder} is no SavedModel, because it has no {_BINARY} and no {_TEXT}: name the "
                "folder that `export_saved_model` returned"
            )
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise SavedModelError(f"{path} cannot be read: {error}") from error
    if not model.meta_graphs:
        raise SavedModelError(f"{path} holds no graph")
    return model


def write(model: SavedModel, source: str, target: str, *, variables: bool = True) -> None:
    """Writes graphs with the variables and assets of another SavedModel, all of it or nothing.

    Args:
        model: The graphs.
        source: The SavedModel that the variables and assets are copied from.
        target: The new folder.
        variables: False: the graphs have none.

    Raises:
        SavedModelError: There is a `target`.
    """
    with new_folder(target) as unfinished:
        for name in _BESIDE_GRAPHS:
            if variables or name != _VARIABLES:
                _copy(os.path.join(source, name), os.path.join(unfinished, name))
        replace_graphs(model, unfinished, tf.io.gfile.exists(os.path.join(source, _TEXT)))


def replace_graphs(model: SavedModel, folder: str, as_text: bool) -> None:
    """Writes the graphs of a SavedModel into its folder."""
    content = text_format.MessageToString(model).encode() if as_text else model.SerializeToString()
    with tf.io.gfile.GFile(os.path.join(folder, _TEXT if as_text else _BINARY), "wb") as file:
        file.write(content)


@contextlib.contextmanager
def new_folder(target: str) -> Iterator[str]:
    """A folder to fill, which gets its name at the end; an error leaves nothing of it.

    Raises:
        SavedModelError: There is one of that name.
    """
    target = target.rstrip("/")
    if tf.io.gfile.exists(target):
        raise SavedModelError(f"{target} is there already: remove it, or name another folder")
    base, name = os.path.split(target)
    unfinished = os.path.join(base, f".{name}.unfinished-{os.getpid()}")
    tf.io.gfile.makedirs(unfinished)
    try:
        yield unfinished
        tf.io.gfile.rename(unfinished, target)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.rmtree(unfinished)
        raise


def _copy(source: str, target: str) -> None:
    if not tf.io.gfile.exists(source):
        return
    for folder, _, files in tf.io.gfile.walk(source):
        into = os.path.join(target, os.path.relpath(folder, source))
        tf.io.gfile.makedirs(into)
        for name in files:
            tf.io.gfile.copy(os.path.join(folder, name), os.path.join(into, name))


def keep_graph(model: SavedModel, tags: Sequence[str]) -> None:
    """Removes all graphs but the one with these tags.

    Raises:
        SavedModelError: There is no such graph.
    """
    wanted = sorted(tags)
    kept = [graph for graph in model.meta_graphs if sorted(graph.meta_info_def.tags) == wanted]
    if not kept:
        there = "; ".join(",".join(graph.meta_info_def.tags) for graph in model.meta_graphs)
        raise SavedModelError(f"no graph has the tags {','.join(tags)}: there are {there}")
    del model.meta_graphs[:]
    model.meta_graphs.extend(kept)
