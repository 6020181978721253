"""The files of a checkpoint in the format of TensorFlow 0.x, which `SaverDef.V1` still writes.

    path_of("job/model.ckpt-7")    # as TensorFlow's reader takes it

Such a checkpoint has no index: the path itself is its file, or several shards start with it.
"""

from __future__ import annotations

import glob
import os
import re

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint.store import check_is_file
from estimator2strategy.tools.untrusted.printable import printable

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
