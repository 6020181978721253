"""Likely causes of a divergence: mistakes that leave such traces in the first step."""

from __future__ import annotations

import numpy as np

from estimator2strategy.tools.golden.training_tier import (
    GRADIENT,
    UPDATE,
    Divergence,
    Quantity,
    Training,
)

_SAME = 1e-3  # how equal factors are that are one factor


def cause_of(training: Training) -> str:
    """The likely cause of the first divergence; "" if it looks like none of those known."""
    found = training.divergence()
    if found is None:
        return ""
    return next((cause for look in _LOOKS if (cause := look(training, found))), "")


def _scaled_loss(training: Training, found: Divergence) -> str:
    if found.kind is not Quantity.LOSS or found.step or not found.golden:
        return ""
    factor = found.here / found.golden
    gradients = _factor(training, Quantity.GRADIENTS, 0)
    if gradients is None or abs(gradients / factor - 1) > _SAME:
        return ""
    return f"loss and gradients are {factor:.4g} times the golden's: a sum for a mean?"


def _still(training: Training, found: Divergence) -> str:
    if found.kind is not Quantity.UPDATES:
        return ""
    golden, here = (side[:, 0] for side in training.sized(Quantity.UPDATES, found.step))
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


def _other_slots(training: Training, found: Divergence) -> str:
    if found.kind is not Quantity.UPDATES or found.step:
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


def _other_rate(training: Training, found: Divergence) -> str:
    if found.kind is not Quantity.UPDATES or found.tensor not in training.variables:
        return ""
    if found.step == 0 and training.shares(Quantity.GRADIENTS, 0, GRADIENT).max(initial=0.0) > 1:
        return ""
    factor = _factor(training, Quantity.UPDATES, found.step, only_trained=True)
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
