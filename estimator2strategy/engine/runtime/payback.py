"""Decides, by what steps have cost so far, if a loop of them is worth building.

    pays(300, costs, TRAINING)            # False, while steps are few or small beside the building

A program of one step is there sooner than a loop of steps, which may be built beside it later. So
steps run one by one at first, and are timed.
"""

from __future__ import annotations

from typing import NamedTuple

from estimator2strategy.engine.replay.runs import AloneCosts

# So few steps are run one by one, however often they are.
VERY_FEW = 20

# Up to so many steps run one by one until their cost is known. More of them pay for a loop in the
# place of the program of one step, by what four models have cost (benchmarks/README.md).
FEW = 400

# So many steps are timed before their time is believed.
TIMED = 3


class Prices(NamedTuple):
    """The facts about loops of one kind of step, by what four models have cost.

    Attributes:
        building: A loop beside the program of one step takes so many times as long to build.
        again: For each step of the calls before this one, so many are expected to come.
        beside: The part of a step that is work beside that of the next one.
    """

    building: float
    again: int
    beside: float


# A program that has trained twice is likely to do so in a loop: the real Estimator's trainings of
# 100 steps take long enough to build ours in one of them.
TRAINING = Prices(building=2.0, again=10, beside=1 / 50)

# An evaluation gains less in a loop, and is not slower without.
EVALUATION = Prices(building=2.8, again=1, beside=1 / 10)

# Two predictions at a time fill processors on which one leaves gaps.
PREDICTION = Prices(building=2.8, again=1, beside=1 / 4)

# The call from Python that a step in a loop does without (seconds): it hardly depends on the model.
_CALL = 0.25e-3

# The most that a step can gain, as a part of it.
_MOST = 1 / 2


def pays(left: float, costs: AloneCosts, prices: Prices) -> bool:
    """True if a loop for the steps that are left, infinitely many perhaps, is worth building.

    Steps that have run already count as if there were as many to come: calls of a few steps each
    share a loop in the end.

    Args:
        left: The most steps that are left of this call.
        costs: Those of the steps that ran one by one.
        prices: Those of such steps.
    """
    if left <= VERY_FEW:
        return False
    if costs.steps < TIMED:
        return left > FEW
    if gained(costs, prices) * left > prices.building * costs.building:
        return True
    return has_paid(costs, prices)


def has_paid(costs: AloneCosts, prices: Prices) -> bool:
    """True if as many steps as ran already would pay for a loop."""
    expected = max(costs.steps, prices.again * costs.earlier)
    paid = gained(costs, prices) * expected > prices.building * costs.building
    return paid and costs.steps >= TIMED


def gained(costs: AloneCosts, prices: Prices) -> float:
    """The seconds that a step is likely to gain in a loop."""
    return min(_CALL + costs.step * prices.beside, costs.step * _MOST)
