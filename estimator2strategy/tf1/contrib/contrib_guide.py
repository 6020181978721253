"""Writes the page of the migration guide that is about `tf.contrib`, from `symbols.csv`.

python -m estimator2strategy.tf1.contrib.contrib_guide > migration_guide/contrib.md
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Sequence

from estimator2strategy.tf1.contrib import table
from estimator2strategy.tf1.facade.symbols import Symbol

_PAGE = """\
# tf.contrib

<!-- Made by `python -m estimator2strategy.tf1.contrib.contrib_guide > migration_guide/contrib.md`. -->

For you if your program uses `tf.contrib`. Search this page for a name: its row says if it works here,
where it comes from, and what a migrated program uses in its place (the way out).

Programs find `tf.contrib` of TF 1.15 in its old place, deep paths such as
`tensorflow.contrib.tpu.python.tpu.tpu_config` included. Variable names, defaults and numbers are
those of TF 1.15; the tests compare them with goldens that TF 1.15 made.

| status | meaning |
| --- | --- |
| *works* | it is written anew in this package |
| *slim* | it comes from tf-slim, with the names that TensorFlow and Keras 3 moved |
| *home* | it lives on in TensorFlow, tf-keras or another library, and comes from there |
| *refused* | you can import it; its use is an error that names the way out |

Names that an earlier release had, and TF 1.15 no longer, are here too. The table says which release
had them last.

A name of a deep file is here under the shortest path that has it: `python.x` of a module is in all of its
files. A name that is in no table did not exist in TF 1.4 to 1.15, or was private. You can also import
private names of deep modules; their use is refused.

## Modules that are refused as a whole

{refused}

{sections}
"""


def page() -> str:
    """The text of `migration_guide/contrib.md`."""
    whole, modules = [], collections.defaultdict(list)
    for symbol in table().symbols.values():
        name = symbol.name.removeprefix("tf.contrib.")
        if "." not in name:
            whole.append((_named(symbol, "tf.contrib."), symbol.advice))
        else:
            modules[name.partition(".")[0]].append(symbol)
    sections = "\n\n".join(_section(m, symbols) for m, symbols in sorted(modules.items()))
    return _PAGE.format(refused=_table(("module", "way out"), whole), sections=sections)


def _section(module: str, symbols: list[Symbol]) -> str:
    prefix = f"tf.contrib.{module}."
    rows = [(_named(s, prefix), _status(s), _shown(s), s.advice) for s in symbols]
    return f"## {module}\n\n" + _table(("name", "status", "where it is", "way out"), rows)


def _named(symbol: Symbol, prefix: str) -> str:
    """The name, with the newest release that had it if TF 1.15 had not."""
    newest = f" (TF {symbol.newest})" if symbol.newest else ""
    return f"`{symbol.name.removeprefix(prefix)}`{newest}"


def _status(symbol: Symbol) -> str:
    return "slim" if symbol.home.startswith("tf_slim") else symbol.status


def _shown(symbol: Symbol) -> str:
    """The home, where that tells a reader more than `status` does."""
    home = symbol.home.replace(":", ".").removeprefix("=")
    if symbol.status != "home" or home.startswith("tf_slim"):
        return ""
    return f"`{home.replace('tensorflow.compat.v1.', 'tf.compat.v1.')}`"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
