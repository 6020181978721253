"""What 51 public repositories use of TensorFlow 1.x, and whether it works here.

`migration_guide/symbols.tsv` has a row for each name: in how many of the repositories it is used,
and how often. The other columns are made from the package:

    python -m tests.tf1.facade.symbol_table
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from estimator2strategy.engine.names import name_table
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tf1.facade.refused import Refused

TABLE = Path(__file__).parents[3] / "migration_guide" / "symbols.tsv"


class Row(NamedTuple):
    symbol: str
    repositories: int
    uses: int
    status: str
    note: str


def read() -> list[Row]:
    with TABLE.open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [Row(r[0], int(r[1]), int(r[2]), r[3], r[4]) for r in rows]


def status(symbol: str) -> tuple[str, str]:
    """("works", where it lives), ("refused", what to do) or ("unknown", why)."""
    # What follows are flags of the programs, not names of TensorFlow.
    legacy = symbol.partition(".FLAGS.")[0]
    try:
        value = namespace.resolve(legacy)
    except AttributeError:
        if name_table.existed(legacy):
            return "refused", "not carried over"
        return "unknown", "TensorFlow 1.15 had no such name"
    except UnsupportedError as error:
        return "refused", str(error)
    except ModuleNotFoundError as error:
        return "extra", str(error)
    if isinstance(value, Refused):
        return "refused", value._advice
    row = name_table.find(legacy)
    return "works", row.home if row else ""


def main() -> None:
    rows = [row._replace(**dict(zip(("status", "note"), status(row.symbol)))) for row in read()]
    lines = ["\t".join(Row._fields), *("\t".join(map(str, row)) for row in rows)]
    TABLE.write_text("\n".join(lines) + "\n")
    works = [row for row in rows if row.status == "works"]
    print(f"{sum(r.uses for r in works) / sum(r.uses for r in rows):.2%} of all uses work")
    common = [row for row in rows if row.repositories >= 3]
    share = len([row for row in common if row.status == "works"]) / len(common)
    print(f"{share:.2%} of the names used by 3 or more repositories work")


if __name__ == "__main__":
    main()
