"""Functions that TensorFlow 2 has under another name."""

import csv
import functools
from pathlib import Path

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod


@functools.cache
def table() -> dict[str, str]:
    """Legacy name -> name in TensorFlow 2; made by tests/tools/migrate/renames.py."""
    path = Path(__file__).resolve().parents[1] / "renames.csv"
    with open(path, newline="", encoding="utf-8") as file:
        return {row["name"]: row["now"] for row in csv.DictReader(file)}


@codemod(
    "renames",
    stage=2,
    tier=SafetyTier.SAFE,
    title="Names that TensorFlow 2 spells otherwise (`tf.log` to `tf.math.log`)",
    why="Both names are in TF 1.15, and so in this package. The table is made from an installed "
    "TensorFlow.",
    proof="The very same function or class, by identity (tests/tools/migrate/test_proofs.py).",
)
def find(module):
    if module.tf is None:
        return
    for node, name in module.uses():
        for legacy in _spellings(name):
            part = module.part(node, legacy)
            if part is not None:
                yield module.replace(part, module.tf + table()[legacy].removeprefix("tf"))
                break


def _spellings(name):
    """The names of the table that a dotted name is, or is below."""
    parts = name.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return [prefix for prefix in prefixes if prefix in table()]
