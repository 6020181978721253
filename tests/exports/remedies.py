"""Rewrites the exports of `models.py` by `e2s export-for`, for those who cannot read them.

    python -m tests.exports.remedies build/exports/made

makes `numbers`, `one_graph` and `for_tf2`, with the cases that fit them; and `remedied`, a mark.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import tensorflow as tf

from estimator2strategy import __main__
from tests.exports import cases


def rewrite(source: Path, target: Path, *options: str) -> bool:
    """False if there is nothing to rewrite."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return not __main__.main(["export-for", *options, str(source), "--out", str(target)])


def whole(source: Path, target: Path, *options: str) -> None:
    """Rewrites all kinds; their cases stay."""
    for kind in sorted(source.iterdir()):
        if rewrite(kind / "export", target / kind.name / "export", *options):
            shutil.copy(kind / "case.json", target / kind.name)


def numbers(source: Path, target: Path) -> None:
    """The parts of numbers; their inputs are what the parts of parsing say."""
    for kind in sorted(source.iterdir()):
        parts = target / kind.name / "parts"
        case = cases.read(kind)
        if not rewrite(kind / "export", parts, "--parts", f"--signature={case['signature']}"):
            shutil.rmtree(target / kind.name)
            continue
        parsing = tf.saved_model.load(str(parts / "parsing")).signatures["serving_default"]
        fed = {name: tf.constant(value) for name, value in cases.inputs_of(case).items()}
        parsed = {name: cases.encoded(value.numpy()) for name, value in parsing(**fed).items()}
        case |= {"inputs": parsed, "signature": "serving_default"}
        (parts / "numbers").rename(target / kind.name / "export")
        (target / kind.name / "case.json").write_text(json.dumps(case))


if __name__ == "__main__":
    made = Path(sys.argv[1])
    whole(made / "plain", made / "one_graph", "--tags=serve")
    numbers(made / "plain", made / "numbers")
    if (made / "of_tf115").exists():
        whole(made / "of_tf115", made / "for_tf2", "--tf=2")
    (made / "remedied").mkdir()
