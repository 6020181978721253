"""Writes migration_guide/shapes.md: static shapes that TF 1.15 knew and the facade does not.

python tests/shapes/compare.py --tf115 /path/to/python3.7 > migration_guide/shapes.md
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Gradient functions of today build other ops under the names of TF 1.15's. Their results have
# names of their own: those of the variables.
OTHER_OPS = "gradients/"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tf115", required=True, help="a Python with TensorFlow 1.15")
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        before, now = pool.map(built, (options.tf115, sys.executable))
    for name, old in before.items():
        if "error" in old or "error" in now[name]:
            sys.exit(f"{name}: {old.get('error')}; here: {now[name].get('error')}")
    graphs = [(before[name], now[name], place(name)) for name in before]
    families = [graph for graph in graphs if not graph[2].startswith("model ")]
    models = [graph for graph in graphs if graph[2].startswith("model ")]
    sys.stdout.write(page(families, models))


def built(python: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shapes.json")
        subprocess.run([python, str(HERE / "built.py"), str(path)], check=True, stdout=sys.stderr)
        return json.loads(path.read_text(encoding="utf-8"))


def place(name: str) -> str:
    """`families.strings` is strings, and `models.residual` model residual."""
    module, _, rest = name.partition(".")
    return rest if module == "families" else f"model {rest}"


def lost_results(before: dict, now: dict, name: str) -> list[str]:
    """The rows of results whose shape TF 1.15 knew better."""
    results = before["results"].items()
    pairs = [(key, shape, now["results"].get(key, "missing")) for key, shape in results]
    return [
        row(f"{name}: {key.strip('/')}", shape, here)
        for key, shape, here in pairs
        if here == "missing" or knows_less(here, shape)
    ]


def lost_ops(before: dict, now: dict, name: str) -> list[str]:
    """The rows of all other tensors, as far as one has the same name here."""
    return [
        row(f"{name}: {key}", shape, here)
        for key, shape, here in same_names(before, now)
        if knows_less(here, shape) and not contradict(here, shape)
    ]


def same_names(before: dict, now: dict) -> list[tuple[str, Any, Any]]:
    """Name, shape in TF 1.15 and shape here of the tensors that have a name in common."""
    return [
        (name, shape, now["ops"][name][2])
        for name, (_, _, shape) in before["ops"].items()
        if name in now["ops"] and OTHER_OPS not in name
    ]


def row(name: str, before: Any, here: Any) -> str:
    return f"| {name} | `{text(before)}` | `{text(here)}` |"


def knows_less(here: list | None, before: list | None) -> bool:
    """True if a shape of TF 1.15 has a rank, or a size, that is not known here."""
    if before is None:
        return False
    if here is None or len(here) != len(before):
        return True
    return any(size is not None and size != mine for size, mine in zip(before, here, strict=True))


def contradict(here: list | None, before: list | None) -> bool:
    """True of the shapes of two tensors, which have a name in common by chance."""
    if here is None or before is None:
        return False
    if len(here) != len(before):
        return True
    return any(None not in pair and len({*pair}) > 1 for pair in zip(here, before, strict=True))


def without_rank(graph: dict) -> int:
    return sum(shape is None for _, kind, shape in graph["ops"].values() if kind != "resource")


def text(shape: list | str | None) -> str:
    if not isinstance(shape, list):
        return shape or "unknown"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def page(families: list[tuple], models: list[tuple]) -> str:
    rows = [line for graph in families for line in lost_results(*graph)]
    rows += [line for graph in models for line in lost_results(*graph) + lost_ops(*graph)]
    shapes = sum(len(before["results"]) for before, _, _ in families)
    ops = sum(len(before["ops"]) for before, _, _ in models)
    pairs = [pair for before, now, _ in models for pair in same_names(before, now)]
    others = sum(contradict(here, shape) for _, shape, here in pairs)
    unranked = [sum(without_rank(graph[side]) for graph in models) for side in (0, 1)]
    table = "\n".join(rows)
    return f"""\
<!-- Made by `python tests/shapes/compare.py --tf115 PYTHON > migration_guide/shapes.md`. -->
# Static shapes

For you if a program asks a tensor for its static shape, and gets `None` where TensorFlow 1.15 had
a number.

Built in TensorFlow 1.15 and here on {datetime.date.today()}:

- {shapes} tensors of {len(families)} families of ops, with as little known of their inputs as
  a program may leave (`tests/shapes/families.py`);
- {len(models)} graphs of models with input, loss, metrics and training (`tests/shapes/models.py`):
  of images, text and tables, recurrent, of slim, and canned; and all modes of programs of this
  repository (`tests/shapes/programs_here.py`). Of their {ops} tensors in
  TensorFlow 1.15, {len(pairs)} have a name that is here, too, though {others} of these belong to
  another op. Names in `{OTHER_OPS}` are left out, because gradients are made of other ops
  today; the gradient of each variable is compared. {unranked[0]} tensors have an unknown rank in
  TensorFlow 1.15, and {unranked[1]} here.

These {len(rows)} have a static shape that knows less. The remedy is `tensor.set_shape(...)`, or
`tf.ensure_shape`.

| tensor | TensorFlow 1.15 | here |
| --- | --- | --- |
{table}
"""


if __name__ == "__main__":
    main()
