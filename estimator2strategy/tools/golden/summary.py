"""The parts of every form of a comparison: its rows, its headline, the lines after the table."""

from __future__ import annotations

from estimator2strategy.tools.golden.result import CheckStatus, Comparison


def rows(comparison: Comparison) -> list[tuple[str, str, CheckStatus, str, str, str]]:
    """Tier, check, status, slack, tolerance, detail; the tier only in the first of its rows."""
    return [
        (tier.name if i == 0 else "", c.what, c.status, c.slack, c.tolerance, c.detail)
        for tier in comparison.tiers
        for i, c in enumerate(tier.checks)
    ]


def headline(comparison: Comparison) -> str:
    """One line: what was compared, and what came of it."""
    sides = [side.about.get("versions", {}).get("tensorflow", "?") for side in
             (comparison.golden, comparison.here)]  # fmt: skip
    where = f"TensorFlow {sides[0]} (golden) and {sides[1]} (here)"
    failed = comparison.first_failure
    if failed:
        return f"DIFFERENT: {where} differ in tier '{failed[0].name}', {failed[1].what}"
    left = [t.name for t in comparison.tiers if t.status is CheckStatus.UNCHECKED]
    rest = f"; not checked: {', '.join(left)}" if left else ""
    raced = any(side.about["train"].get("race") for side in (comparison.golden, comparison.here))
    rest += "; the original races, see the note" if raced else ""
    return f"the same model: {where}{rest}"


def closing(comparison: Comparison) -> list[str]:
    """The lines after the table: the likely cause, notes, and what all this rests on."""
    lines = [f"likely cause: {comparison.cause}"] if comparison.cause else []
    for side in (comparison.golden, comparison.here):
        lines += [f"note: {note}" for note in side.about.get("notes", ())]
    widened = [f"{tier} {factor:g} x" for tier, factor in comparison.factors.items() if factor != 1]
    if widened:
        lines.append(f"tolerances: {', '.join(widened)} as wide as the package's own")
    return [*lines, "evidence: replayed on this CPU, and on emulated cores; nothing ran on a TPU"]
