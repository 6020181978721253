"""Pairs of tensors of two checkpoints: inferred, kept in a file, edited by hand.

The file is JSON, or CSV with the columns source, target, how, scale. `how` is the reason for a row:

    name    the same layer, by name
    suffix  the same name, below another scope on one side
    shape   the only two of this role and shape
    order   as many of this role and shape on both sides, in the order of their creation: look at it
    given   by you
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import roles
from estimator2strategy.tools.checkpoint.roles import Identity, identified
from estimator2strategy.tools.checkpoint.store import Entry, Store
from estimator2strategy.tools.untrusted.printable import printable
from estimator2strategy.tools.untrusted.regular_files import read_bytes

FORMAT = "estimator2strategy checkpoint mapping"
_MOST_BYTES = 100_000_000
_COLUMNS = ("source", "target", "how", "scale")


@dataclasses.dataclass(frozen=True)
class MappingRow:
    """One pair, by labels; the target's value is the source's times `scale`."""

    source: str
    target: str
    how: str
    scale: float = 1.0


@dataclasses.dataclass(frozen=True)
class Mapping:
    """The pairs of two checkpoints, and the tensors without a partner.

    Attributes:
        rows: The pairs, in the order of the target.
        undecided: Label of a target without a source -> labels of sources that have its shape.
        unused: Labels of the source that no target takes.
    """

    rows: tuple[MappingRow, ...]
    undecided: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    unused: tuple[str, ...] = ()


def inferred(source: Store, target: Store) -> Mapping:
    """Finds what belongs together, surest first."""
    pairs = _Pairs(source, target)
    pairs.match("name", lambda entry, identity: (identity, entry.shape))
    pairs.match_suffixes()
    pairs.match("shape", lambda entry, identity: (identity.role, entry.shape), slots=False)
    pairs.match_in_order()
    pairs.match("shape", lambda entry, identity: entry.shape, slots=False)
    pairs.match_slots()
    return pairs.mapping()


class _Pairs:
    """Two checkpoints while their entries are paired."""

    def __init__(self, source: Store, target: Store):
        self.stores = (source, target)
        self.what = [identified(e.label for e in store.entries) for store in self.stores]
        self.found: dict[str, tuple[str, str]] = {}  # target -> source, how

    def left(self, side: int, slots: bool) -> list[tuple[Entry, Identity]]:
        """The entries without a partner: variables of the model, or with `slots` all others."""
        taken = {self._taken(side, target, source) for target, (source, _) in self.found.items()}
        pairs = [(e, self.what[side][e.label]) for e in self.stores[side].entries]
        return [
            (entry, identity)
            for entry, identity in pairs
            if entry.label not in taken and bool(identity.slot or identity.is_special) == slots
        ]

    @staticmethod
    def _taken(side: int, target: str, source: str) -> str:
        return target if side else source

    def match(
        self, how: str, key: Callable[[Entry, Identity], object], slots: bool | None = None
    ) -> None:
        """Pairs entries whose key nobody else has, on either side."""
        for kind in (False, True) if slots is None else (slots,):
            sides = [self._by_key(side, key, kind) for side in (0, 1)]
            for value, targets in sides[1].items():
                sources = sides[0].get(value, [])
                if len(targets) == len(sources) == 1:
                    self.found[targets[0].label] = (sources[0].label, how)

    def _by_key(
        self, side: int, key: Callable[[Entry, Identity], object], slots: bool
    ) -> dict[object, list[Entry]]:
        entries: dict[object, list[Entry]] = defaultdict(list)
        for entry, identity in self.left(side, slots):
            entries[key(entry, identity)].append(entry)
        return entries

    def match_suffixes(self) -> None:
        """Pairs `bert/encoder/dense/kernel` with `encoder/dense/kernel`, where only one fits."""
        sources, targets = self.left(0, False), self.left(1, False)
        fits = [
            (t.label, s.label)
            for t, of_target in targets
            for s, of_source in sources
            if t.shape == s.shape and of_target.role == of_source.role
            if _ends(of_target.owner, of_source.owner) or _ends(of_source.owner, of_target.owner)
        ]
        times = [Counter(pair[side] for pair in fits) for side in (0, 1)]
        for target, source in fits:
            if times[0][target] == times[1][source] == 1:
                self.found[target] = (source, "suffix")

    def match_in_order(self) -> None:
        """Pairs groups of equal role and shape that are as large on both sides."""
        key = lambda entry, identity: (identity.role, entry.shape)  # noqa: E731
        sides = [self._by_key(side, key, slots=False) for side in (0, 1)]
        for value, targets in sides[1].items():
            sources = sides[0].get(value, [])
            if len(targets) == len(sources):
                for target, source in zip(targets, sources, strict=True):
                    self.found[target.label] = (source.label, "order")

    def match_slots(self) -> None:
        """Pairs the slots of variables that are paired, and steps."""
        owners = self._owners()
        sources = {
            (owners[0].get(e.label), i.role if i.is_special else "", i.slot, e.shape): e.label
            for e, i in self.left(0, True)
        }
        for entry, identity in self.left(1, True):
            owner = owners[1].get(entry.label)
            if owner is None and identity.role != roles.STEP:
                continue
            partner = self.found.get(owner, (None, "name")) if owner else (None, "name")
            role = identity.role if identity.is_special else ""
            source = sources.get((partner[0], role, identity.slot, entry.shape))
            if source is not None:
                self.found[entry.label] = (source, partner[1])

    def _owners(self) -> list[dict[str, str]]:
        """Label of a slot -> that of its variable, for both sides."""
        owners = []
        for what in self.what:
            variables = {i[:2]: label for label, i in what.items() if not i.slot}
            owners.append(
                {x: variables[i[:2]] for x, i in what.items() if i.slot and i[:2] in variables}
            )
        return owners

    def mapping(self) -> Mapping:
        rows = tuple(
            MappingRow(
                self.found[e.label][0], e.label, self.found[e.label][1], self._scale(e.label)
            )
            for e in self.stores[1].entries
            if e.label in self.found
        )
        undecided = {
            entry.label: [s.label for s, _ in self.left(0, False) if s.shape == entry.shape]
            for entry, _ in self.left(1, False)
        }
        unused = [*self.left(0, False), *self.left(0, True)]
        return Mapping(rows, undecided, tuple(entry.label for entry, _ in unused))

    def _scale(self, target: str) -> float:
        """TF1's momentum adds up gradients, Keras's SGD steps: -learning_rate times as much."""
        if self.what[1][target].slot != "accumulation":
            return 1.0
        kinds = [_adds_steps(label) for label in (self.found[target][0], target)]
        if kinds[0] == kinds[1]:
            return 1.0
        keras = self.stores[kinds.index(True)]
        rates = [
            e for e in keras.entries if self.what[kinds.index(True)][e.label].role == roles.RATE
        ]
        if not rates:
            return 1.0
        rate = float(keras.read(rates[0]))
        return -rate if kinds[1] else -1 / rate


def _adds_steps(label: str) -> bool:
    return not label.endswith("/Momentum")


def _ends(long: tuple[str, ...], short: tuple[str, ...]) -> bool:
    return bool(short) and long[-len(short) :] == short


# The file.


def write(path: str, mapping: Mapping) -> None:
    """Writes a mapping as CSV, if `path` ends so, or else as JSON."""
    if path.endswith(".csv"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(_COLUMNS)
            rows.writerows(dataclasses.astuple(row) for row in mapping.rows)
            rows.writerows(("", target, "undecided", "") for target in mapping.undecided)
        return
    document = {
        "format": FORMAT,
        "version": 1,
        "rows": [dataclasses.asdict(row) for row in mapping.rows],
        "undecided": mapping.undecided,
        "unused": list(mapping.unused),
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read(path: str) -> list[MappingRow]:
    """The rows of a file.

    Raises:
        CheckpointError: It cannot be read as a mapping; says where.
    """
    try:
        text = read_bytes(path, _MOST_BYTES).decode()
        if path.endswith(".csv"):
            rows: Iterable[dict[str, Any]] = list(csv.DictReader(text.splitlines()))
        else:
            rows = json.loads(text)["rows"]
        return [_row(row) for row in rows if row["source"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{printable(path)} is no mapping: {type(error).__name__} {error}. It needs rows with "
            "source and target, as `e2s checkpoint convert --write-map` writes them"
        ) from error


def _row(row: dict[str, Any]) -> MappingRow:
    source, target, scale = row["source"], row["target"], float(row.get("scale") or 1)
    if not (isinstance(source, str) and isinstance(target, str)):
        raise TypeError(f"source and target must be names, not {source!r} and {target!r}")
    if not math.isfinite(scale) or scale == 0:
        raise ValueError(f"scale {scale} of {source!r}")
    return MappingRow(source, target, str(row.get("how") or "given"), scale)


def applied(rows: list[MappingRow], source: Store, target: Store) -> Mapping:
    """Rows that were given, for two checkpoints; rows of the way back are turned round.

    Raises:
        CheckpointError: A row names what neither side has, or shapes that differ.
    """
    of_source, of_target = source.by_label(), target.by_label()
    forward = sum(row.source in of_source and row.target in of_target for row in rows)
    back = sum(row.target in of_source and row.source in of_target for row in rows)
    if back > forward:
        rows = [MappingRow(row.target, row.source, row.how, 1 / row.scale) for row in rows]
    problems = []
    for row in rows:
        if row.source not in of_source:
            problems.append(f"{row.source!r} is not in {source.path}")
        elif row.target not in of_target:
            problems.append(f"{row.target!r} is not in {target.path}")
        elif of_source[row.source].size != of_target[row.target].size:
            shapes = f"{of_source[row.source].shape} and {of_target[row.target].shape}"
            problems.append(f"{row.source!r} and {row.target!r} have the shapes {shapes}")
    if problems:
        raise CheckpointError("the mapping does not fit:\n  " + "\n  ".join(problems))
    taken = {row.target for row in rows}
    used = {row.source for row in rows}
    what = identified(of_target)
    undecided = {
        label: [s.label for s in source.entries if s.shape == entry.shape and s.label not in used]
        for label, entry in of_target.items()
        if label not in taken and not what[label].slot and not what[label].is_special
    }
    return Mapping(tuple(rows), undecided, tuple(label for label in of_source if label not in used))
