"""The tables of `migration_guide/libraries.md` about the programs here.

    python -m tests.libraries --page

They are made of table.csv, told.csv, measured.json (`python -m tests.libraries --write`),
parts.json (`python -m tests.libraries.parts`) and newest.json (`python -m tests.libraries.newest`).
That of the libraries' own tests is made of suites.csv and suites.json
(`python -m tests.libraries.suites`).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator2strategy.engine.libraries import table as libraries
from tests.libraries import suites, table

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "migration_guide" / "libraries.md"
MEASURED = HERE / "measured.json"
_NAMED = 3  # dropped names that the table says; the others are counted
_WAYS = {
    "run": "`e2s run`",
    "run --tf2": "`e2s run --tf2`",
    "tf1": "`estimator2strategy.tf1`",
    "estimator": "`estimator2strategy.estimator`",
    "estimator, Keras 2": "`estimator2strategy.estimator` with `TF_USE_LEGACY_KERAS=1`",
    "estimator, compat.v1": "`estimator2strategy.estimator` on `tf.compat.v1`",
}
_ORIGINALS = {"1.15": "1.15.5", "2.15": "2.15.1", "2.7": "2.7.4"}


def keep(found: Mapping[tuple[str, str], float | None]) -> None:
    """Keeps the differences that were measured now, beside those of other programs and ways."""
    kept = json.loads(MEASURED.read_text())
    for (name, way), difference in found.items():
        if difference is not None:
            kept.setdefault(name, {})[way] = float(f"{difference:.1e}")
    MEASURED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def write() -> None:
    """Writes the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in (("programs", tables()), ("suites", suite_table())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        made = f"{begin}{''.join(lines)}{end}"
        pattern = f"{re.escape(begin)}.*{re.escape(end)}"
        page = re.sub(pattern, lambda _, made=made: made, page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


def tables() -> Iterator[str]:
    """The lines of the tables."""
    measured, parts, newest = (read(name) for name in ("measured", "parts", "newest"))
    with (HERE / "told.csv").open(encoding="utf-8", newline="") as file:
        told = {row["program"]: row for row in csv.DictReader(file)}
    programs = sorted(table.rows().values(), key=lambda row: _title(row).lower())
    yield "| library | compared with | what was run | in which ways | greatest difference |\n"
    yield "| --- | --- | --- | --- | --- |\n"
    for row in programs:
        says, differences = told.get(row.name, {}), measured.get(row.name, {})
        ways = ", ".join(said for way, said in _WAYS.items() if way in differences)
        greatest = _short(max(differences.values())) if differences else "not run"
        yield _line(_title(row), _original(row), says.get("ran", ""), ways, greatest)
    yield "\n| library | gets TensorFlow | install it by | also tried | newest release |\n"
    yield "| --- | --- | --- | --- | --- |\n"
    for row in filter(lambda row: row.distributions, programs):
        needs = told.get(row.name, {}).get("needs") or ""
        install, tried = _install(row, needs.split()), _tried(parts.get(row.name, {}))
        newer = _newest(row, newest.get(row.name))
        yield _line(_title(row), _world(row), f"`{install}`", tried, newer)


def suite_table() -> Iterator[str]:
    """The lines of the table of the libraries' own tests, with those that fail here alone."""
    counts = read("suites")
    yield "| library | beside | pass there | of these pass here | not here |\n"
    yield "| --- | --- | --- | --- | --- |\n"
    for row in sorted(suites.suites().values(), key=lambda row: row["distributions"].lower()):
        found = counts.get(row["suite"])
        if found is not None:
            names = ", ".join(f"`{test.rpartition('::')[2]}`" for test in found["not here"])
            numbers = (str(found[key]) for key in ("pass there", "pass here"))
            part = row["suite"].partition("_")[2]
            title = _name(row["distributions"]) + (f", its {part}" if part else "")
            yield _line(title, _ORIGINALS[row["world"]], *numbers, names)


def read(name: str) -> dict[str, dict[str, Any]]:
    """The results of that name, by program."""
    path = HERE / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def _title(row: table.Program) -> str:
    if not row.distributions:
        return "TFX's trainer_fn, without TFX"
    return _name(row.distributions[0])


def _name(distributions: str) -> str:
    """The first of some distributions: "adanet 0.9.0"."""
    return " ".join(distributions.split()[0].split("=="))


def _original(row: table.Program) -> str:
    """The original TensorFlow, and the release of the library there if it is another one."""
    there, here = row.of_oracle[:1], row.distributions[:1]
    other = f", with {there[0].partition('==')[2]}" if there != here else ""
    return f"{_ORIGINALS[row.world]}{other}"


def _known(row: table.Program) -> libraries.Library | None:
    distribution, _, release = row.distributions[0].partition("==")
    rows = libraries.rows()
    return next((r for r in rows if (r.distribution, r.release) == (distribution, release)), None)


def _world(row: table.Program) -> str:
    known = _known(row)
    if known is None or known.world == libraries.TODAY:
        return "that is installed"
    return known.world or "that of the program"


def _install(row: table.Program, needs: list[str]) -> str:
    known = _known(row)
    if known is not None:
        return known.install
    alone = f"pip install --no-deps {row.distributions[0]}"
    return f"{alone} && {libraries.pip_install(*needs)}" if needs else alone


def _tried(parts: dict[str, Any]) -> str:
    works = ", ".join(name for name, error in parts.items() if not error)
    refused = [f"{name}: {error}" for name, error in parts.items() if error]
    return "; ".join(filter(None, [works and f"{works}: runs", *refused]))


def _newest(row: table.Program, found: dict[str, Any] | None) -> str:
    """The newest release, and what it has dropped."""
    if found is None:
        return "not tried"
    release, dropped, program = (found[key] for key in ("release", "dropped", "program"))
    if release == row.distributions[0].partition("==")[2]:
        return "this one"
    assert isinstance(dropped, list)
    names = ", ".join(f"`{name}`" for name in dropped[:_NAMED])
    more = f" and {len(dropped) - _NAMED} more names" if len(dropped) > _NAMED else ""
    lacks = f"has dropped {names}{more}" if dropped else "has dropped no name"
    return f"{release} {lacks}; the program {'runs' if program == 'runs' else 'fails there'}"


def _short(difference: object) -> str:
    """One digit: "6e-8"."""
    said = f"{difference:.0e}"
    return "0" if difference == 0 else re.sub(r"e-0?", "e-", said)
