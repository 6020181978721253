"""The made parts of the page about `tf.contrib`, from `tf1/contrib/symbols.csv`."""

from __future__ import annotations

import collections

import pages
from estimator2strategy.engine.names.name_table import Symbol
from estimator2strategy.tf1.contrib import table


def page() -> dict[str, str]:
    """`contrib.md`, with the modules that are refused as a whole, and a section for each other."""
    whole, modules = [], collections.defaultdict(list)
    for symbol in table().symbols.values():
        name = symbol.name.removeprefix("tf.contrib.")
        if "." not in name:
            whole.append((_named(symbol, "tf.contrib."), symbol.advice))
        else:
            modules[name.partition(".")[0]].append(symbol)
    sections = "\n\n".join(_section(m, symbols) for m, symbols in sorted(modules.items()))
    refused = pages.table(("module", "way out"), whole)
    return pages.page("contrib.md", {"refused": refused, "modules": sections})


def _section(module: str, symbols: list[Symbol]) -> str:
    prefix = f"tf.contrib.{module}."
    rows = [(_named(s, prefix), _status(s), _shown(s), s.advice) for s in symbols]
    return f"## {module}\n\n" + pages.table(("name", "status", "where it is", "way out"), rows)


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
