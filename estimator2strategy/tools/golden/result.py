"""The result of a comparison with a golden: checks in tiers, each with its tolerance and slack."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np


class Side(NamedTuple):
    """The recording of one side: the golden's, or here.

    Attributes:
        about: As golden.json.
        results: Name -> array, as results.npz.
    """

    about: Mapping[str, Any]
    results: Mapping[str, np.ndarray]


class CheckStatus(enum.Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    EXPLAINED = "explained"  # differs, as it does on TPU cores by its own design
    UNCHECKED = "not checked"


class Tolerance(NamedTuple):
    """The allowed distance of two numbers: `relative` to the golden's, and `absolute`."""

    relative: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.relative:g} relative"] if self.relative else []
        parts += [f"{self.absolute:g}"] if self.absolute else []
        return " + ".join(parts) or "equal"

    def times(self, factor: float) -> Tolerance:
        """One that is so many times as wide."""
        return Tolerance(self.relative * factor, self.absolute * factor)

    def shares(self, golden: np.ndarray, here: np.ndarray) -> np.ndarray:
        """Errors as shares of this tolerance, element by element; 1 is the most that passes."""
        if golden.dtype.kind not in "fc" or not (self.relative or self.absolute):
            return np.where(golden == here, 0.0, np.inf)
        golden, here = golden.astype(np.float64), here.astype(np.float64)
        same = (golden == here) | (np.isnan(golden) & np.isnan(here))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.abs(here - golden) / (self.absolute + self.relative * np.abs(golden))
        return np.where(same, 0.0, np.where(np.isnan(shares), np.inf, shares))


EQUAL = Tolerance()


class TierName(str, enum.Enum):
    """The tiers, from the least to the most that can differ; reports say these words."""

    CONTRACT = "contract"
    FORWARD = "forward"
    ONE_STEP = "one step"
    N_STEPS = "N steps"
    REPLICAS = "replicas"
    EVALUATION = "evaluation"
    EXPORT = "export"

    __str__ = str.__str__

    @property
    def option(self) -> str:
        """The name that `--tolerance` takes."""
        return self.replace(" ", "-")


# Tier -> how many times its tolerances are as wide as the package's own; 1 for those not named.
Factors: TypeAlias = Mapping[TierName, float]


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was compared.

    Attributes:
        what: The compared thing, in a few words: "loss of each step".
        status: The result.
        tolerance: The tolerance, as text.
        share: The largest error as a share of the tolerance; None where nothing was measured.
        detail: The first divergence, or why there was nothing to compare.
    """

    what: str
    status: CheckStatus
    tolerance: str = ""
    share: float | None = None
    detail: str = ""

    @property
    def slack(self) -> str:
        """The distance of the largest error from its tolerance, in words."""
        if self.share is None or self.status is CheckStatus.UNCHECKED:
            return ""
        if self.share == 0:
            return "exact"
        if not np.isfinite(self.share):
            return ""
        return f"{1 / self.share:.3g} x below" if self.share <= 1 else f"{self.share:.3g} x above"


@dataclasses.dataclass(frozen=True)
class GoldenTier:
    """One level of sameness, with its checks."""

    name: TierName
    checks: tuple[Check, ...]

    @property
    def status(self) -> CheckStatus:
        """The worst of its checks; not checked if none was."""
        statuses = {check.status for check in self.checks}
        for status in (CheckStatus.FAILED, CheckStatus.EXPLAINED, CheckStatus.PASSED):
            if status in statuses:
                return status
        return CheckStatus.UNCHECKED


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A whole comparison.

    Attributes:
        tiers: The tiers, from the least to the most that can differ.
        golden, here: The two sides.
        cause: The likely cause of the first divergence; "" if none is known.
        factors: Tiers whose tolerances were widened or narrowed.
    """

    tiers: tuple[GoldenTier, ...]
    golden: Side
    here: Side
    cause: str = ""
    factors: Factors = dataclasses.field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return int(any(tier.status is CheckStatus.FAILED for tier in self.tiers))

    @property
    def first_failure(self) -> tuple[GoldenTier, Check] | None:
        for tier in self.tiers:
            for check in tier.checks:
                if check.status is CheckStatus.FAILED:
                    return tier, check
        return None


def compared(what: str, golden: np.ndarray, here: np.ndarray | None, tolerance: Tolerance) -> Check:
    """Compares two arrays; the detail names the element that differs most."""
    if here is None:
        return Check(what, CheckStatus.FAILED, str(tolerance), None, "missing here")
    golden, here = np.asarray(golden), np.asarray(here)
    if golden.shape != here.shape:
        detail = f"shape {list(golden.shape)} in the golden, {list(here.shape)} here"
        return Check(what, CheckStatus.FAILED, str(tolerance), None, detail)
    shares = tolerance.shares(golden, here)
    share = float(shares.max()) if shares.size else 0.0
    if share <= 1:
        return Check(what, CheckStatus.PASSED, str(tolerance), share)
    first = tuple(int(i) for i in np.argwhere(shares > 1)[0])
    where = f"{list(first)}: " if first else ""
    detail = f"{where}{golden[first]} in the golden, {here[first]} here"
    return Check(what, CheckStatus.FAILED, str(tolerance), share, detail)


def unchecked(what: str, why: str) -> Check:
    return Check(what, CheckStatus.UNCHECKED, detail=why)


def same_sets(what: str, golden: Sequence[Any], here: Sequence[Any]) -> Check:
    """Compares two inventories; the detail lists what is missing and what is extra."""
    if list(golden) == list(here):
        shown = ", ".join(map(str, golden))
        return Check(
            what,
            CheckStatus.PASSED,
            "equal",
            0.0,
            shown if len(shown) < 60 else f"all {len(golden)}",
        )
    gone = [str(item) for item in golden if item not in here]
    new = [str(item) for item in here if item not in golden]
    parts = [f"missing here: {_few(gone)}"] if gone else []
    parts += [f"only here: {_few(new)}"] if new else []
    detail = "; ".join(parts) or "in another order"
    return Check(what, CheckStatus.FAILED, "equal", None, detail)


def _few(items: list[str]) -> str:
    return ", ".join(items[:5]) + (f" and {len(items) - 5} more" if len(items) > 5 else "")
