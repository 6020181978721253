"""Compares how a model trained on both sides: gradients, updates and slots, step by step.

Of each gradient, value and update a recording keeps three numbers (L2 norm, sum, largest
magnitude), so that a golden stays small. Their errors are measured against the norm.

Likely causes of a divergence are mistakes that leave such traces in the first step.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from estimator2strategy.tools.golden.result import (
    Check,
    CheckStatus,
    Factors,
    Side,
    TierName,
    Tolerance,
    unchecked,
)

# The CPU kernels of TF 1.15 and 2.21 add in different orders; see migration_guide/verify.md.
LOSS = Tolerance(1e-5, 1e-6)
GRADIENT = Tolerance(1e-4)
UPDATE = Tolerance(1e-4)
LATER = Tolerance(1e-2)  # of gradients and updates, after the first step
LATER_LOSS = Tolerance(1e-4, 1e-5)
DRIFT = Tolerance(1e-2)  # of a variable, over all steps, relative to how far it moved

# A gradient this much smaller than the largest is rounding: of a bias before batch norm, say.
_NOISE = 1e-6
_FLOAT32 = 6e-8
_RACE = "the original races, and gives one of several results; see the note"


class Quantity(enum.Enum):
    """Compared quantities of a step; the values are the names in a golden's `train/`."""

    LOSS = "losses"
    GRADIENTS = "gradients"
    UPDATES = "updates"
    VALUES = "values"

    @property
    def one(self) -> str:
        """Its name for a single tensor."""
        return "loss" if self is Quantity.LOSS else self.value[:-1]


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The first step and tensor that differ.

    Attributes:
        step: From 0.
        kind: LOSS, GRADIENTS or UPDATES.
        tensor: Name of the variable; "" for the loss.
        share: The error as a share of the tolerance.
        golden, here: Norms, or the losses.
    """

    step: int
    kind: Quantity
    tensor: str
    share: float
    golden: float
    here: float

    def __str__(self) -> str:
        tensor = f"{self.kind.one} of {self.tensor}" if self.tensor else self.kind.one
        what = "" if self.kind is Quantity.LOSS else "norm "
        return (
            f"first at step {self.step + 1}, {tensor}: {what}{self.golden:.7g} in the golden, "
            f"{self.here:.7g} here"
        )


class Training:
    """The training of both sides, on the variables that both have."""

    def __init__(self, golden: Side, here: Side, factors: Factors | None = None):
        self.sides = (golden, here)
        self._factors = factors or {}
        names = [[v["name"] for v in side.about["train"]["variables"]] for side in self.sides]
        self.variables = [name for name in names[0] if name in names[1]]
        self._at = [[of.index(name) for name in self.variables] for of in names]
        trained = [side.about["train"]["gradients"] for side in self.sides]
        self.trainable = [name for name in trained[0] if name in trained[1]]
        self._trained_at = [[of.index(name) for name in self.trainable] for of in trained]
        inventory = {v["name"]: v for v in golden.about["train"]["variables"]}
        self.sizes = {n: int(np.prod(inventory[n]["shape"] or [1])) for n in inventory}
        race = golden.about["train"].get("race")
        self.race_step = race["step"] if race else None
        self.steps = min(len(side.results["train/losses"]) for side in self.sides)

    def allowed(self, tier: TierName, tolerance: Tolerance) -> Tolerance:
        """A tolerance of a tier, as wide as was asked for."""
        return tolerance.times(self._factors.get(tier, 1.0))

    def of_step(self, step: int) -> tuple[Tolerance, Tolerance, Tolerance]:
        """The tolerances of the loss, the gradients and the updates of a step."""
        if step == 0:
            one_step = [self.allowed(TierName.ONE_STEP, t) for t in (GRADIENT, UPDATE)]
            return (self.allowed(TierName.FORWARD, LOSS), one_step[0], one_step[1])
        later = self.allowed(TierName.N_STEPS, LATER)
        return self.allowed(TierName.N_STEPS, LATER_LOSS), later, later

    def losses(self) -> list[np.ndarray]:
        return [side.results["train/losses"][: self.steps] for side in self.sides]

    def sized(self, kind: Quantity, step: int) -> list[np.ndarray]:
        """[variables, 3] of both sides: GRADIENTS, UPDATES or VALUES of a step."""
        at = self._trained_at if kind is Quantity.GRADIENTS else self._at
        return [
            s.results[f"train/{kind.value}"][step][a] for s, a in zip(self.sides, at, strict=True)
        ]

    def noisy(self, step: int) -> set[str]:
        """Variables, slots included, that rounding alone moves up to this step."""
        small = set()
        for earlier in range(step + 1):
            gradients, _ = self.sized(Quantity.GRADIENTS, earlier)
            norms = np.nan_to_num(gradients[:, 0])
            largest = norms.max(initial=0.0)
            for name, norm in zip(self.trainable, norms, strict=True):
                if 0 < norm < _NOISE * largest:
                    small.add(name)
        return {v for v in self.variables if any(v == n or v.startswith(n + "/") for n in small)}

    def shares(
        self, kind: Quantity, step: int, tolerance: Tolerance, raced: bool = True
    ) -> np.ndarray:
        """Errors of a step as shares of the tolerance, [variables]; 0 where rounding moves it.

        Args:
            raced: Anything between the runs of a step that raced in the original is no error.
        """
        golden, here = self.sized(kind, step)
        if raced and kind is Quantity.UPDATES and step == self.race_step:
            runs = self.sides[0].results["train/again"][:, self._at[0]]
            golden = np.clip(here, runs.min(axis=0), runs.max(axis=0))
        names = self.trainable if kind is Quantity.GRADIENTS else self.variables
        sizes = np.array([self.sizes[name] for name in names], float)
        norms = golden[:, 0]
        if kind is Quantity.GRADIENTS:
            floor = _NOISE * np.nan_to_num(norms).max(initial=0.0)
        else:
            floor = 8 * _FLOAT32 * self.sized(Quantity.VALUES, step)[0][:, 0] + 1e-30
        allowed = tolerance.relative * norms + floor
        errors = np.abs(here - golden)
        errors[:, 1] /= np.sqrt(np.maximum(sizes, 1))
        same = (golden == here) | (np.isnan(golden) & np.isnan(here))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = errors / np.asarray(allowed)[..., np.newaxis]
        shares = np.where(same, 0.0, np.where(np.isnan(shares), np.inf, shares)).max(axis=1)
        quiet = self.noisy(step)
        return np.where([name in quiet for name in names], 0.0, shares)

    def divergence_at(self, step: int) -> Divergence | None:
        """The first quantity of a step that differs: the loss, then gradients, then updates.

        After a step that raced nothing can be said to differ.
        """
        if self.race_step is not None and step > self.race_step:
            return None
        golden, here = self.losses()
        loss, gradients, updates = self.of_step(step)
        share = float(loss.shares(golden[step : step + 1], here[step : step + 1])[0])
        if share > 1:
            return Divergence(
                step, Quantity.LOSS, "", share, float(golden[step]), float(here[step])
            )
        for kind, tolerance in ((Quantity.GRADIENTS, gradients), (Quantity.UPDATES, updates)):
            names = self.trainable if kind is Quantity.GRADIENTS else self.variables
            shares = self.shares(kind, step, tolerance)
            if not len(shares) or shares.max() <= 1:
                continue
            worst = int(np.argmax(shares))
            sides = [float(side[worst, 0]) for side in self.sized(kind, step)]
            return Divergence(step, kind, names[worst], float(shares[worst]), *sides)
        return None

    def largest_share(self) -> float:
        """The largest error of any step, as a share of its tolerance."""
        golden, here = self.losses()
        shares = [0.0]
        for step in range(self.steps):
            loss, _, rest = self.of_step(step)
            shares.append(float(loss.shares(golden[step], here[step])))
            shares.append(float(self.shares(Quantity.UPDATES, step, rest).max(initial=0.0)))
        return max(shares)

    def divergence(self) -> Divergence | None:
        """The first step and tensor that differ; None: none does."""
        divergences = (self.divergence_at(step) for step in range(self.steps))
        return next((divergence for divergence in divergences if divergence), None)


def one_step(training: Training) -> list[Check]:
    """Gradients of the first batch, and what the first step made of every variable."""
    if not training.steps:
        return [unchecked("gradients and updates", "no step was recorded")]
    noisy = training.noisy(0)
    checks = []
    _, *tolerances = training.of_step(0)
    for kind, tolerance in zip((Quantity.GRADIENTS, Quantity.UPDATES), tolerances, strict=True):
        names = training.trainable if kind is Quantity.GRADIENTS else training.variables
        shares = training.shares(kind, 0, tolerance)
        share = float(shares.max(initial=0.0))
        left = sum(name in noisy for name in names)
        detail = f"{len(names)} tensors" + (f", {left} of them only rounding" if left else "")
        if share > 1:
            worst = int(np.argmax(shares))
            sides = [float(side[worst, 0]) for side in training.sized(kind, 0)]
            detail = str(Divergence(0, kind, names[worst], share, *sides))
        strict = float(training.shares(kind, 0, tolerance, raced=False).max(initial=0.0))
        status = CheckStatus.FAILED if share > 1 else CheckStatus.PASSED
        if share <= 1 < strict:
            status, detail = CheckStatus.EXPLAINED, f"as other runs of this step there; {_RACE}"
        what = "gradients" if kind is Quantity.GRADIENTS else "updates of variables and slots"
        checks.append(Check(what, status, f"{tolerance} of the norm", share, detail))
    return checks


def all_steps(training: Training) -> list[Check]:
    """The losses of all steps, and where the variables ended."""
    golden, here = training.losses()
    lengths = [len(side.results["train/losses"]) for side in training.sides]
    if lengths[0] != lengths[1]:
        detail = f"{lengths[0]} steps in the golden, {lengths[1]} here"
        return [Check("loss of each step", CheckStatus.FAILED, "equal", None, detail)]
    tolerance = training.allowed(TierName.N_STEPS, LATER_LOSS)
    shares = tolerance.shares(golden, here)
    share = float(shares.max(initial=0.0))
    divergence = training.divergence() if share > 1 else None
    status = CheckStatus.FAILED if share > 1 else CheckStatus.PASSED
    detail = str(divergence) if divergence else f"{len(golden)} steps"
    if share > 1 and not divergence and training.race_step is not None:
        status, detail = CheckStatus.EXPLAINED, _RACE
    checks = [Check("loss of each step", status, str(tolerance), share, detail)]
    return [*checks, _drift(training)]


def _drift(training: Training) -> Check:
    """The check that variables ended where the golden's did, in shares of how far those moved."""
    what = "variables after the last step"
    moves = training.sides[1].results.get("train/drift")
    if moves is None:
        return unchecked(what, "the last checkpoints could not be read")
    noisy = training.noisy(training.steps - 1)
    names = [v["name"] for v in training.sides[0].about["train"]["variables"]]
    trained = set(training.trainable)
    # The averages of batch norm take on the rounding of the biases before it.
    quiet = {n for n in names if n in noisy or (noisy and not _depends(n, trained))}
    tolerance = training.allowed(TierName.N_STEPS, DRIFT)
    shares = np.zeros(len(names))
    for i, (difference, moved, size) in enumerate(moves):
        if names[i] not in quiet:
            shares[i] = difference / (tolerance.relative * moved + 1e-6 * size + 1e-12)
    share = float(shares.max(initial=0.0))
    detail = f"{len(names)} tensors" + (f", {len(quiet)} of them only rounding" if quiet else "")
    if share > 1:
        worst = int(np.argmax(shares))
        first = training.divergence()
        ends = f"{names[worst]} ends {moves[worst][0]:.3g} away, having moved {moves[worst][1]:.3g}"
        detail = f"{first}; {ends}" if first else ends
    status = CheckStatus.FAILED if share > 1 else CheckStatus.PASSED
    if share > 1 and training.race_step is not None and not training.divergence():
        status, detail = CheckStatus.EXPLAINED, f"{_RACE}; {detail}"
    return Check(what, status, f"{tolerance} of the way", share, detail)


def _depends(name: str, trained: set[str]) -> bool:
    """True if a variable is trained, or a slot of one that is, or a counter of steps."""
    return any(name == t or name.startswith(t + "/") for t in trained) or "/" not in name


_SAME = 1e-3  # how equal factors are that are one factor


def cause_of(training: Training) -> str:
    """The likely cause of the first divergence; "" if it looks like none of those known."""
    first = training.divergence()
    if first is None:
        return ""
    return next((cause for look in _LOOKS if (cause := look(training, first))), "")


def _scaled_loss(training: Training, first: Divergence) -> str:
    if first.kind is not Quantity.LOSS or first.step or not first.golden:
        return ""
    factor = first.here / first.golden
    gradients = _factor(training, Quantity.GRADIENTS, 0)
    if gradients is None or abs(gradients / factor - 1) > _SAME:
        return ""
    return f"loss and gradients are {factor:.4g} times the golden's: a sum for a mean?"


def _still(training: Training, first: Divergence) -> str:
    if first.kind is not Quantity.UPDATES:
        return ""
    golden, here = (side[:, 0] for side in training.sized(Quantity.UPDATES, first.step))
    names = [n for n, g, h in zip(training.variables, golden, here, strict=True) if g > 0 and not h]
    if not names:
        return ""
    if set(training.trainable) <= set(names):
        return (
            "no trained variable moved here: a learning rate of 0, in a warm-up? If the program "
            "assigns global_step beside its optimizer, TensorFlow 1.x read the rate before or "
            "after that, as threads fell: let the assignment wait for the update, and record again"
        )
    return f"{', '.join(names[:3])} did not move: update ops that do not run?"


def _other_slots(training: Training, first: Divergence) -> str:
    if first.kind is not Quantity.UPDATES or first.step:
        return ""
    shares = training.shares(Quantity.UPDATES, 0, UPDATE)
    golden, here = (side[:, 0] for side in training.sized(Quantity.UPDATES, 0))
    owners = tuple(f"{name}/" for name in training.trainable)
    wrong = {
        name: h / g
        for name, g, h, share in zip(training.variables, golden, here, shares, strict=True)
        if share > 1 and g > 0 and name.startswith(owners)
    }
    rate = _factor(training, Quantity.UPDATES, 0, only_trained=True)
    if not wrong or (rate and all(abs(factor / rate - 1) < _SAME for factor in wrong.values())):
        return ""
    return f"slots differ ({', '.join(sorted(wrong)[:2])}): other betas, or another momentum?"


def _other_rate(training: Training, first: Divergence) -> str:
    if first.kind is not Quantity.UPDATES or first.tensor not in training.variables:
        return ""
    if first.step == 0 and training.shares(Quantity.GRADIENTS, 0, GRADIENT).max(initial=0.0) > 1:
        return ""
    factor = _factor(training, Quantity.UPDATES, first.step, only_trained=True)
    if factor is None:
        return ""
    return f"updates are {factor:.4g} times the golden's: another learning rate, or its schedule?"


def _factor(
    training: Training, kind: Quantity, step: int, only_trained: bool = False
) -> float | None:
    """The factor by which all norms of a step are larger here; None if there is no one factor."""
    names = training.trainable if kind is Quantity.GRADIENTS else training.variables
    noisy, trained = training.noisy(step), set(training.trainable)
    golden, here = (side[:, 0] for side in training.sized(kind, step))
    factors = [
        h / g
        for name, g, h in zip(names, golden, here, strict=True)
        if g > 0 and name not in noisy and (not only_trained or name in trained)
    ]
    if not factors or not np.all(np.isfinite(factors)):
        return None
    middle = float(np.median(factors))
    off = np.abs(np.array(factors) - middle) > 1e-2 * abs(middle)
    return None if off.mean() > 0.1 or abs(middle - 1) < 1e-2 else middle


_LOOKS = (_scaled_loss, _still, _other_slots, _other_rate)
