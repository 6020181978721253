"""A step that does not fit into the memory of a TPU core: the compiler's verdict, and what to do.

    with explaining_no_room():
        step()

The error keeps its class.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

_NO_ROOM = re.compile(r"\bhbm\b|bottom of memory", re.IGNORECASE)


@contextlib.contextmanager
def explaining_no_room() -> Iterator[None]:
    """Puts what is wrong before the error of a TPU that has no room for a program.

    Raises:
        tf.errors.ResourceExhaustedError: The TPU's own, so explained.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        if not _NO_ROOM.search(error.message):
            raise
        raise tf.errors.ResourceExhaustedError(
            error.node_def,
            error.op,
            "The model does not fit into the memory of a TPU core with this batch.\n"
            "  e2s check model.py:model_fn --input data.py:input_fn --tpu v3-8 --fit-batch says "
            "what it takes, and finds the largest batch.\n"
            f"  {error.message}",
        ) from error
