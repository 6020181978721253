"""`e2s doctor --patches`: what this package changes in TensorFlow, Keras and the interpreter."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from estimator2strategy.engine import patches

# The steps of most programs; run in another process, and read off the ledger there.
PROBE = """
import json
import estimator2strategy.tf1 as tf
from estimator2strategy.engine import patches
with tf.Graph().as_default():
    tf.get_variable("x", [1])
print(json.dumps({"patches": patches.in_force()}))
"""

_WIDTH = 100


def text(in_force: Sequence[str]) -> str:
    """The rows of the ledger, those that are in force first.

    Args:
        in_force: The rows that a process has which imports `estimator2strategy.tf1` and builds a
            graph.
    """
    others = [name for name in patches.ledger() if name not in in_force]
    return "\n".join(
        [
            "In force in a process that imports estimator2strategy.tf1 and builds a graph:\n",
            *map(_row, in_force),
            "In force at other times:\n",
            *map(_row, others),
        ]
    )


def _row(name: str) -> str:
    patch = patches.ledger()[name]
    lines = {
        "changes": patch.target,
        "why": patch.why,
        "when": patch.when,
        "spares": patch.spares,
        "ends": patch.undone or "with the process",
        "test": f"tests/{patch.test}",
    }
    shown = [_wrapped(f"{label:8} {line}") for label, line in lines.items() if line]
    return "\n".join([name, *shown, ""])


def _wrapped(line: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=" " * 11)
