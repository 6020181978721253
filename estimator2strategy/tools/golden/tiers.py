"""The tiers of `e2s verify`: a table of what is compared, from the least to the most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimator2strategy.tools.golden.result import (
    EQUAL,
    Check,
    Comparison,
    Factors,
    GoldenTier,
    Side,
    TierName,
    Tolerance,
    compared,
    same_sets,
    unchecked,
)
from estimator2strategy.tools.golden.training_tier import (
    LOSS,
    Training,
    all_steps,
    cause_of,
    one_step,
)

ROWS = Tolerance(1e-4, 1e-5)  # of predictions and of served outputs
METRIC = Tolerance(1e-5, 1e-6)
# Tiers with numbers that are measured, and not only compared for equality.
MEASURED = tuple(name for name in TierName if name is not TierName.CONTRACT)


def comparison(
    golden: Side, here: Side, replicas: tuple[Check, ...], factors: Factors | None = None
) -> Comparison:
    """Compares two sides, tier by tier.

    Args:
        replicas: The checks of the tier that needs TensorFlow; see `golden.replicas_tier`.
        factors: The factors by which the tolerances of tiers are widened.
    """
    training = Training(golden, here, factors)
    tiers = [GoldenTier(name, tuple(check(golden, here, training))) for name, check in _TIERS]
    tiers.insert(4, GoldenTier(TierName.REPLICAS, replicas))
    return Comparison(tuple(tiers), golden, here, cause_of(training), factors or {})


def contract(golden: Side, here: Side, training: Training) -> list[Check]:
    """Checks that need no computation: names, shapes, dtypes, counts."""
    sides = (golden.about, here.about)
    variables = [
        [(v["name"], tuple(v["shape"]), v["dtype"]) for v in side["train"]["variables"]]
        for side in sides
    ]
    trainable = [sorted(side["train"]["gradients"]) for side in sides]
    checks = [
        same_sets("variables: name, shape, dtype", *map(_readable, variables)),
        same_sets("trainable variables", *trainable),
        same_sets("global step", *(side["train"]["global_steps"] for side in sides)),
    ]
    draws = [[f"{d['kind']} {d['shape']}" for d in side["train"]["draws"]] for side in sides]
    if draws[0] or draws[1]:
        checks.append(same_sets("random ops of training", *draws))
    for what, key, part in (
        ("metrics", "evaluate", "metrics"),
        ("keys of predictions", "predict", "keys"),
    ):
        if key in golden.about and key in here.about:
            checks.append(same_sets(what, golden.about[key][part], here.about[key][part]))
    return checks


def _readable(variables: Sequence[tuple[str, Any, str]]) -> list[str]:
    return [f"{name} {list(shape)} {dtype}" for name, shape, dtype in variables]


def forward(golden: Side, here: Side, training: Training) -> list[Check]:
    """The first loss, and predictions, with the weights of the first checkpoint."""
    losses = training.losses()
    checks = [
        compared("loss of the first batch", losses[0][:1], losses[1][:1], training.of_step(0)[0])
    ]
    rows = training.allowed(TierName.FORWARD, ROWS)
    return [*checks, *_rows(golden, here, "predict/first/", "predictions", rows)]


def evaluation(golden: Side, here: Side, training: Training) -> list[Check]:
    """Losses and metrics of an evaluation, and predictions, of the golden's last checkpoint."""
    checks = []
    loss, metrics, rows = (training.allowed(TierName.EVALUATION, t) for t in (LOSS, METRIC, ROWS))
    if "evaluate" not in golden.about:
        checks.append(unchecked("metrics", "the golden has no evaluation"))
    elif "evaluate" not in here.about:
        checks.append(unchecked("metrics", "the program did not evaluate here"))
    else:
        name = "evaluate/losses"
        checks.append(
            compared("loss of each batch", golden.results[name], here.results[name], loss)
        )
        for name, value in golden.results.items():
            if name.startswith("evaluate/metric/"):
                exact = value.dtype.kind not in "fc"
                metric = name.rpartition("evaluate/metric/")[2]
                tolerance = EQUAL if exact else metrics
                checks.append(
                    compared(f"metric {metric}", value, here.results.get(name), tolerance)
                )
    return [*checks, *_rows(golden, here, "predict/last/", "predictions", rows)]


def export(golden: Side, here: Side, training: Training) -> list[Check]:
    """Signatures of the exported model, and its answers."""
    if "export" not in golden.about:
        return [unchecked("signatures", "the golden has no export")]
    if "export" not in here.about:
        return [unchecked("signatures", "the program did not export here")]
    sides = [side.about["export"]["signatures"] for side in (golden, here)]
    checks = [same_sets("signatures", *map(_signatures, sides))]
    rows = training.allowed(TierName.EXPORT, ROWS)
    asked = [key for key in sides[0] if any(f"export/{key}/out/" in n for n in golden.results)]
    for key in sides[0]:
        if key in asked:
            checks += _rows(golden, here, f"export/{key}/out/", f"{key}:", rows)
        else:
            checks.append(unchecked(f"{key}: outputs", "no recorded features fit its inputs"))
    return checks


def _signatures(signatures: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} {s['method']} {part} {name} {info['dtype']} {info['shape']}"
        for key, s in signatures.items()
        for part in ("inputs", "outputs")
        for name, info in sorted(s[part].items())
    ]


def _rows(golden: Side, here: Side, prefix: str, what: str, allowed: Tolerance) -> list[Check]:
    names = [name for name in golden.results if name.startswith(prefix)]
    if not names:
        return [unchecked(what, "the golden has none")]
    if not any(name.startswith(prefix) for name in here.results):
        return [unchecked(what, "the program made none here")]
    checks = []
    for name in names:
        value = golden.results[name]
        key = name[len(prefix) :]
        tolerance = allowed if value.dtype.kind in "fc" else EQUAL
        check = compared(f"{what} {key}".strip(), value, here.results.get(name), tolerance)
        checks.append(check)
    return checks


_TIERS: tuple[tuple[TierName, Callable[[Side, Side, Training], list[Check]]], ...] = (
    (TierName.CONTRACT, contract),
    (TierName.FORWARD, forward),
    (TierName.ONE_STEP, lambda golden, here, training: one_step(training)),
    (TierName.N_STEPS, lambda golden, here, training: all_steps(training)),
    (TierName.EVALUATION, evaluation),
    (TierName.EXPORT, export),
)
