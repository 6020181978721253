"""The page `migration_guide/versions.md`, made of the results of `python -m tests.versions`."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "migration_guide" / "versions.md"
_NIGHTLY = "nightly"
_CHOSEN = ("tensorflow", "tf_keras", "keras", "numpy", "protobuf")

_HEAD = """\
<!-- Made by: python -m tests.versions -->
# TensorFlow's releases

For you if you cannot choose your TensorFlow. At the end you know what pip installs together, what
was tried there, and which results change in their last bits when you change the release.

```sh
pip install "tensorflow==2.18.*" estimator2strategy     # pip finds the tf-keras and NumPy that fit
```

`python -m tests.versions` makes an environment for each row as that command does, and runs the
quick tests there: those of `make quick`. CI itself runs the newest release, the oldest one, and the
nightly. JAX needs Python 3.11 and TensorFlow 2.18, so the other rows have fewer tests.
"""
_BITS = """
## Which last bits change

`python tests/versions/last_bits.py` runs {count} ops of TensorFlow alone, on CPUs, and prints a
digest of each result. Random ops have seeds. Ops that gave other bits than in the row above:

| TensorFlow | Python | ops with other bits |
| --- | --- | --- |
"""
_TAIL = """
A model that uses such an op gives other last bits on the other release, here as in TensorFlow
itself. The bits also depend on the CPU: all rows were made on one machine.
"""


def write(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the page."""
    PAGE.write_text(page(results))


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the page."""
    rows = sorted(results.items(), key=lambda row: _order(row[0]))
    parts = [_HEAD, *_versions(rows)]
    with_bits = [(name, found["bits"]) for name, found in rows if "bits" in found]
    if with_bits:
        parts += [_BITS.format(count=len(with_bits[-1][1])), *_bits(with_bits), _TAIL]
    return "".join(parts)


def _order(name: str) -> tuple[int, int, int]:
    release, python = name.split(":")
    minor = 99 if release == _NIGHTLY else int(release.partition(".")[2])
    return (0, minor, int(python.partition(".")[2]))


def _versions(rows: list[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    yield f"\n| Python | {' | '.join(_CHOSEN)} | passed | failed | date |\n"
    yield f"{'| --- ' * (len(_CHOSEN) + 4)}|\n"
    for name, found in rows:
        chosen = found.get("chosen", {})
        versions = [chosen.get(one) or _of_nightly(chosen, one) for one in _CHOSEN]
        counts = [str(found.get(one, "not run")) for one in ("passed", "failed")]
        cells = (name.partition(":")[2], *versions, *counts, found["date"])
        yield f"| {' | '.join(cells)} |\n"
    for name, found in rows:
        said = [found["note"]] if "note" in found else []
        files = collections.Counter(one.partition("::")[0] for one in found.get("failures", ()))
        said += [f"{count} of `{file}` fail" for file, count in sorted(files.items())]
        if said:
            yield f"\n- {name.replace(':', ', Python ')}: {'; '.join(said)}."
    yield "\n"


def _of_nightly(chosen: Mapping[str, str], name: str) -> str:
    nightly = "tf-nightly" if name == "tensorflow" else f"{name}-nightly"
    return chosen.get(nightly, "-")


def _bits(rows: list[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    before: Mapping[str, str] = {}
    for name, bits in rows:
        release, _, python = name.partition(":")
        changed = sorted(op for op in bits if before and op in before and bits[op] != before[op])
        said = f"{len(changed)}: {', '.join(changed)}" if changed else "none"
        yield f"| {release} | {python} | {said if before else 'compared with by the next row'} |\n"
        before = bits
