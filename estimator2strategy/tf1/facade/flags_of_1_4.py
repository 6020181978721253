"""`tf.flags.FLAGS`, with the method by which programs up to TF 1.4 parsed their flags."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import flags

tf1 = tf.compat.v1


class Flags(type(tf1.flags.FLAGS)):  # type: ignore[misc]
    """TensorFlow's own FLAGS: absl's, which parse the command line at the first use of a flag."""

    def __getattr__(self, name: str) -> Any:
        return _parse_flags if name == "_parse_flags" else super().__getattr__(name)


def _parse_flags(args: Sequence[str] | None = None) -> list[str]:
    """Parses flags, of the command line if `args` is None; returns the arguments that are none.

    Source: `_FlagValues._parse_flags`, TF 1.4 platform/flags.py.
    """
    given = sys.argv[1:] if args is None else args
    return flags.FLAGS([sys.argv[0], *given], known_only=True)[1:]


FLAGS = Flags(flags.FLAGS)
