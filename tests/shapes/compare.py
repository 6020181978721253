"""Writes migration_guide/shapes.md: static shapes that TF 1.15 knew and the facade does not.

python tests/shapes/compare.py --tf115 /path/to/python3.7 > migration_guide/shapes.md
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tf115", required=True, help="a Python with TensorFlow 1.15")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, now = (built(python, folder) for python in (options.tf115, sys.executable))
    rows, count = [], 0
    for family, old in before.items():
        if "error" in old or "error" in now[family]:
            sys.exit(f"{family}: {old.get('error')}; here: {now[family].get('error')}")
        for name, shape in old["results"].items():
            count += 1
            here = now[family]["results"].get(name, "missing")
            if here == "missing" or knows_less(here, shape):
                place = f"{family.partition('.')[2]}: {name.strip('/')}"
                rows.append(f"| {place} | `{text(shape)}` | `{text(here)}` |")
    sys.stdout.write(page(rows, count, len(before)))


def built(python: str, folder: str) -> dict:
    path = str(Path(folder, "shapes.json"))
    subprocess.run([python, str(HERE / "built.py"), path], check=True, stdout=sys.stderr)
    return json.loads(Path(path).read_text(encoding="utf-8"))


def knows_less(here: list | None, before: list | None) -> bool:
    """True if a shape of TF 1.15 has a rank, or a size, that is not known here."""
    if before is None:
        return False
    if here is None or len(here) != len(before):
        return True
    return any(size is not None and size != mine for size, mine in zip(before, here, strict=True))


def text(shape: list | str | None) -> str:
    if not isinstance(shape, list):
        return shape or "unknown"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def page(rows: list[str], count: int, families: int) -> str:
    table = "\n".join(rows)
    return f"""\
<!-- Made by `python tests/shapes/compare.py --tf115 PYTHON > migration_guide/shapes.md`. -->
# Static shapes

For you if a program asks a tensor for its static shape, and gets `None` where TensorFlow 1.15 had
a number.

{count} tensors of {families} families of ops, built in TensorFlow 1.15 and here on
{datetime.date.today()}. These {len(rows)} have a static shape that knows less. The remedy is
`tensor.set_shape(...)`, or `tf.ensure_shape`.

| tensor | TensorFlow 1.15 | here |
| --- | --- | --- |
{table}
"""


if __name__ == "__main__":
    main()
