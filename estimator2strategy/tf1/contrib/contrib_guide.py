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

Programs find `tf.contrib` of TF 1.15 where it was, deep paths such as
`tensorflow.contrib.tpu.python.tpu.tpu_config` included. Variable names, defaults and numbers are
those of TF 1.15; the tests hold them against goldens that TF 1.15 made.

What a name is now:

- *works*: written anew in this package;
- *slim*: from tf-slim, run so that it finds what TensorFlow and Keras 3 moved away;
- *home*: lives on in TensorFlow, tf-keras or another library, and comes from there;
- *refused*: it can be imported, and its use is an error that says what the last column says.

Names that TF 1.15 had no longer, and an earlier release had, are here too; the table says which one.

A name that is in no table did not exist in TF 1.4 to 1.15, or was private; private names of deep modules
can be imported too, and are refused when used.

The last column is the way out: what a migrated program uses.

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
    home = symbol.home.replace(":", ".")
    if symbol.status != "home" or home.startswith("tf_slim"):
        return ""
    return f"`{home.replace('tensorflow.compat.v1.', 'tf.compat.v1.')}`"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
