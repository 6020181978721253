"""Tables: what is in a checkpoint, how two differ, what a conversion did."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from estimator2strategy.tools.checkpoint import mapping as mapping_lib
from estimator2strategy.tools.checkpoint import roles
from estimator2strategy.tools.checkpoint.conversion import Converted
from estimator2strategy.tools.checkpoint.mapping import Mapping, MappingRow
from estimator2strategy.tools.checkpoint.roles import identified
from estimator2strategy.tools.checkpoint.store import Entry, Store
from estimator2strategy.tools.untrusted.printable import printable


@dataclasses.dataclass(frozen=True)
class EntryDifference:
    """One line of a diff.

    Attributes:
        what: "missing" (only in the first), "extra" (only in the second), "shape", "dtype" or
            "value".
        name: Its label in the first; in the second where it is extra.
        detail: In words.
    """

    what: str
    name: str
    detail: str


def inspected(store: Store) -> str:
    """A table of the entries, and their sum."""
    what = identified(entry.label for entry in store.entries)
    rows = [("name", "shape", "dtype", "is", "key")]
    for entry in store.entries:
        identity = what[entry.label]
        kind = identity.slot or (identity.role if identity.is_special else "variable")
        key = "" if entry.key == entry.label else entry.key
        rows.append((entry.label, _shape(entry.shape), entry.dtype, kind, key))
    variables = [e for e in store.entries if not (what[e.label].slot or what[e.label].is_special)]
    slots = [entry for entry in store.entries if what[entry.label].slot]
    return (
        f"{store.path}: {store.kind}, {len(store.entries)} tensors, {len(variables)} of them "
        f"variables of the model with {sum(e.size for e in variables):,} numbers, {len(slots)} "
        f"slots of the optimizer with {sum(e.size for e in slots):,}\n\n" + table(rows)
    )


def differences(
    first: Store, second: Store, pairs: Mapping, tolerance: float = 0.0
) -> list[EntryDifference]:
    """The differences of two checkpoints; reads one tensor of each at a time.

    Args:
        pairs: The pairs of entries of `first` and `second`.
        tolerance: Largest difference of values that is none.
    """
    rows = []
    of_first, of_second = first.by_label(), second.by_label()
    steps = {x for x, i in roles.identified(of_first).items() if i.role == roles.STEP}
    one_format = first.kind == second.kind
    for row in pairs.rows:
        one, other = of_first[row.source], of_second[row.target]
        name = row.source if row.source == row.target else f"{row.source} | {row.target}"
        if one.shape != other.shape and (one_format or one.size != other.size):
            detail = f"{_shape(one.shape)} and {_shape(other.shape)}"
            rows.append(EntryDifference("shape", name, detail))
            continue
        # Each format and backend counts steps in its own integers.
        if one.dtype != other.dtype and (one_format or row.source not in steps):
            rows.append(EntryDifference("dtype", name, f"{one.dtype} and {other.dtype}"))
        gap = _gap(np.asarray(first.read(one)), np.asarray(second.read(other)), row.scale)
        if not gap <= tolerance:
            rows.append(EntryDifference("value", name, f"differ by up to {gap:.4g}"))
    left_out = set(not_comparable(first, second, pairs))
    left = _unpaired(first, second, pairs)
    for entries, what in zip(left, ("missing", "extra"), strict=True):
        compared = (entry for entry in entries if entry.label not in left_out)
        rows += [EntryDifference(what, entry.label, _shape(entry.shape)) for entry in compared]
    return rows


def not_comparable(first: Store, second: Store, pairs: Mapping) -> list[str]:
    """The labels that have no partner because the other format, or file, keeps no such thing.

    Settings, rates and powers of betas are variables in one format and arguments in another. Of
    slots nothing can be said where one side has none at all, or does not name those it has.
    """
    if first.kind == second.kind:
        return []
    sides = [roles.identified(store.by_label()) for store in (first, second)]
    slots = [{identity.slot for identity in side.values() if identity.slot} for side in sides]
    optimizer = all(slots) and {roles.OTHER_SLOT} not in slots
    return [
        entry.label
        for entries, what in zip(_unpaired(first, second, pairs), sides, strict=True)
        for entry in entries
        if _is_of_one_format(what[entry.label], optimizer)
    ]


def _is_of_one_format(identity: roles.Identity, optimizer: bool) -> bool:
    """True for what only one side has a place for; `optimizer`: both have named slots."""
    if identity.slot or identity.role == roles.STEP:
        return not optimizer
    return identity.is_special


def _unpaired(first: Store, second: Store, pairs: Mapping) -> tuple[list[Entry], list[Entry]]:
    """The entries of both sides that are in no pair."""
    sources, targets = ({row.source for row in pairs.rows}, {row.target for row in pairs.rows})
    return (
        [entry for entry in first.entries if entry.label not in sources],
        [entry for entry in second.entries if entry.label not in targets],
    )


def same_names(first: Store, second: Store) -> Mapping:
    """Pairs what has the same name, whatever its shape."""
    there = second.by_label()
    return Mapping(
        tuple(MappingRow(e.label, e.label, "name") for e in first.entries if e.label in there)
    )


def pairs_of(first: Store, second: Store, given: str | None) -> Mapping:
    """The pairs to compare: of a file, by name within one format, else inferred."""
    if given:
        return mapping_lib.applied(mapping_lib.read(given), first, second)
    if first.kind == second.kind:
        return same_names(first, second)
    return mapping_lib.inferred(first, second)


def _gap(one: np.ndarray, other: np.ndarray, scale: float) -> float:
    if one.dtype.kind not in "biufc" and one.dtype.name != "bfloat16":
        return 0.0 if np.array_equal(one, other) else np.inf
    if not one.size:
        return 0.0
    scaled = one.reshape(other.shape).astype(np.float64) * scale
    gap = float(np.max(np.abs(scaled - other.astype(np.float64))))
    # A value that was written times `scale` has been rounded once more, each way.
    rounded = 4e-7 * float(np.max(np.abs(scaled))) if scale != 1 else 0.0
    return 0.0 if gap <= rounded else gap


def diff_text(
    compared: Sequence[EntryDifference], first: Store, second: Store, left_out: Sequence[str] = ()
) -> str:
    """The table of differences; `left_out` are the labels that were not compared."""
    note = ""
    if left_out:
        more = f" and {len(left_out) - 6} more" if len(left_out) > 6 else ""
        names = ", ".join(left_out[:6]) + more
        note = f"  not compared, as one of the two has no such value by name: {names}\n"
    if not compared:
        return f"{first.path} and {second.path}: no difference\n{note}"
    rows = [("difference", "name", ""), *((d.what, d.name, d.detail) for d in compared)]
    return f"{first.path} and {second.path}: {len(compared)} differences\n\n{table(rows)}{note}"


def converted_text(out: str, done: Converted) -> str:
    """The report of a conversion: where each tensor went, and which deserve a look."""
    counts = {how: sum(row.how == how for row in done.mapping.rows) for how in
              ("name", "suffix", "shape", "order", "given")}  # fmt: skip
    by = ", ".join(f"{count} by {how}" for how, count in counts.items() if count)
    lines = [f"wrote {out}: {len(done.mapping.rows)} tensors ({by})"]
    for row in done.mapping.rows:
        if row.how == "order":
            lines.append(f"  by order alone, look at it: {row.source} -> {row.target}")
        if row.scale != 1:
            lines.append(f"  times {row.scale:g}: {row.source} -> {row.target}")
    for what, names in (
        ("computed", done.computed),
        ("kept as they were", done.kept),
        ("of the source, not used", done.mapping.unused),
        ("not in it, give --like to have them", done.absent),
    ):
        if names:
            lines.append(f"  {what}: {', '.join(names)}")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[tuple[str, ...]]) -> str:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in rows
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
