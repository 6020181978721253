"""From raw samples to ratios, the table and the plot.

Contenders take turns, so the k-th chunks of two contenders ran one right after the other. A ratio
is the median over k of such pairs: what slows the whole machine down for a while slows both.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

# (contender to compare e2s with, model) -> the ratio of train steps/s that e2s should reach.
_OTHERS = ("dense", "conv", "bert", "resnet", "bert12", "ranker", "input")
TRAIN = {
    **{("loop", model): 0.98 for model in _OTHERS},
    **{("keras", model): 1.0 for model in _OTHERS},
    **{("legacy", model): 1.05 for model in _OTHERS},
    ("legacy", "dense"): 2.5,
    ("legacy", "conv"): 1.2,
}
EVALUATE = {
    **{("keras", model): 1.0 for model in _OTHERS},
    **{("legacy", model): 1.5 for model in _OTHERS},
}
PREDICT = {("legacy", model): 3.0 for model in _OTHERS}
# By what factor a ratio may be lower than another time before that is remarked upon.
MUCH = 1.5
OURS = "e2s"


@dataclasses.dataclass
class Result:
    """The measurements of one contender on one model; rates are steps per second."""

    model: str
    contender: str
    tensorflow: str = ""
    import_s: float = 0.0
    first_s: float = 0.0  # Building everything and the first 50 steps.
    record_s: float | None = None  # Of those, inside model_fn.
    train_rates: list[float] = dataclasses.field(default_factory=list)
    cpu_ms: list[float] = dataclasses.field(default_factory=list)  # All threads, per train step.
    eval_rate: float = 0.0  # 0: not measured.
    predict_rate: float = 0.0
    train_rss_mb: float = 0.0
    restart_s: float | None = None  # A whole train(steps=1): record, restore, one step, save.
    export_s: float | None = None  # A whole export_saved_model.

    def compile_s(self, steps_per_execution: int) -> float:
        """The first 50 steps without model_fn and without what 50 steps take later."""
        steady = steps_per_execution / statistics.median(self.train_rates)
        return max(0.0, self.first_s - (self.record_s or 0.0) - steady)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios inside each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


Ratios: TypeAlias = dict[str, dict[str, float]]


def ratios(results: Sequence[Result]) -> Ratios:
    """Returns {model: {contender: train steps/s of e2s / of the contender}}."""
    return _by_model(results, lambda a, b: paired_ratio(a.train_rates, b.train_rates))


def rate_ratios(results: Sequence[Result], rate: str) -> Ratios:
    """The same of `eval_rate` or `predict_rate`, of those for which it was measured."""
    measured = [result for result in results if getattr(result, rate)]
    return _by_model(measured, lambda a, b: getattr(a, rate) / getattr(b, rate))


def phases(
    results: Sequence[Result],
) -> dict[str, tuple[Ratios, Mapping[tuple[str, str], float]]]:
    """Use of a model -> (the ratios, the targets by contender and model)."""
    return {
        "train": (ratios(results), TRAIN),
        "evaluate": (rate_ratios(results, "eval_rate"), EVALUATE),
        "predict": (rate_ratios(results, "predict_rate"), PREDICT),
    }


def _by_model(results: Sequence[Result], ratio: Callable[[Result, Result], float]) -> Ratios:
    ours = {r.model: r for r in results if r.contender == OURS}
    return {
        model: {r.contender: ratio(mine, r) for r in results if r.model == model and r is not mine}
        for model, mine in ours.items()
    }


def beside(
    now: Mapping[str, Mapping[str, float]], committed: Mapping[str, Mapping[str, float]]
) -> str:
    """Ratios beside those of another run; those that are much lower are marked."""
    lines = ["train steps/s of e2s as a ratio to     now  committed"]
    for model, of_contenders in now.items():
        for contender, ratio in of_contenders.items():
            known = committed.get(model, {}).get(contender)
            line = f"{model + ', ' + contender:<34} {ratio:>7.2f} "
            line += f"{known:>10.2f}" if known is not None else f"{'-':>10}"
            if known is not None and ratio * MUCH < known:
                line += f"  LESS than 1/{MUCH} of it"
            lines.append(line)
    return "\n".join(lines)


def slope_rate(steps: int, answers: Sequence[dict[str, float]]) -> float:
    """Steps per second, from calls of two lengths that differ by `steps` steps."""
    short, long = (statistics.median(a[name] for a in answers) for name in ("short_s", "long_s"))
    return steps / (long - short) if long > short else float("nan")


def verdict(ratio: float, target: float | None) -> str:
    """A ratio beside its target."""
    if target is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} (>= {target:.2f} {'ok' if ratio >= target else 'MISSED'})"


HEADER = (
    "model",
    "contender",
    "TF",
    "train/s",
    "e2s is x times",
    "CPU ms/step",
    "eval/s",
    "e2s is x times",
    "predict/s",
    "e2s is x times",
    "import s",
    "first 50 s",
    "record s",
    "compile s",
    "restart s",
    "export s",
    "RSS MB",
)


def row(result: Result, verdicts: Sequence[str], steps_per_execution: int) -> list[str]:
    """One line of the table; `verdicts` are of e2s's steps/s over this contender's, by phase."""
    train, evaluate, predict = verdicts
    return [
        result.model,
        result.contender,
        result.tensorflow,
        f"{statistics.median(result.train_rates):,.0f}",
        train,
        f"{statistics.median(result.cpu_ms):.3g}",
        f"{result.eval_rate:,.0f}" if result.eval_rate else "",
        evaluate,
        f"{result.predict_rate:,.0f}" if result.predict_rate else "",
        predict,
        f"{result.import_s:.1f}",
        f"{result.first_s:.2f}",
        "" if result.record_s is None else f"{result.record_s:.2f}",
        f"{result.compile_s(steps_per_execution):.2f}",
        "" if result.restart_s is None else f"{result.restart_s:.2f}",
        "" if result.export_s is None else f"{result.export_s:.2f}",
        f"{result.train_rss_mb:.0f}",
    ]


def table(results: Sequence[Result], steps_per_execution: int) -> str:
    """The one table, in Markdown, which also reads well on a terminal."""
    of_phases = phases(results).values()

    def verdicts(r: Result) -> list[str]:
        found = [
            (of_e2s.get(r.model, {}).get(r.contender), targets.get((r.contender, r.model)))
            for of_e2s, targets in of_phases
        ]
        return ["" if ratio is None else verdict(ratio, target) for ratio, target in found]

    rows = [row(r, verdicts(r), steps_per_execution) for r in results]
    rows.insert(0, list(HEADER))
    widths = [max(len(line[column]) for line in rows) for column in range(len(HEADER))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |" for r in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def plot(results: Sequence[Result], path: str) -> None:
    """Bars of e2s's ratios per model, a panel for each phase; a tick marks each target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    found = phases(results)
    figure, panels = plt.subplots(len(found), figsize=(13, 12), layout="constrained", sharex=True)
    for axes, (phase, (by_model, targets)) in zip(panels, found.items(), strict=True):
        _bars(axes, by_model, targets)
        axes.set_ylabel(f"{phase}: steps/s, ratio")
    panels[0].set_title("estimator2strategy against the alternatives (black: target)")
    panels[0].legend(ncols=3)
    figure.savefig(path, dpi=120)


def _bars(axes: Any, by_model: Ratios, targets: Mapping[tuple[str, str], float]) -> None:
    contenders = sorted(
        {c for row in by_model.values() for c in row},
        key="jit e2s-jax loop keras orbit legacy115".find,
    )
    width = 0.8 / max(1, len(contenders))
    places = {model: place for place, model in enumerate(by_model)}
    for index, contender in enumerate(contenders):
        shift = (index - (len(contenders) - 1) / 2) * width
        bars = {
            places[m] + shift: row[contender] for m, row in by_model.items() if contender in row
        }
        drawn = axes.bar(
            list(bars),
            list(bars.values()),
            0.9 * width,
            color=f"C{index}",
            label=f"e2s / {contender}",
        )
        axes.bar_label(drawn, fmt="%.2f", fontsize=7, padding=4)
        for model, place in places.items():
            target = targets.get((contender, model))
            if target is not None and contender in by_model[model]:
                x = place + shift
                axes.hlines(target, x - width / 2, x + width / 2, color="black", linewidth=1.5)
    axes.set_xticks(list(places.values()), list(places))
    # So that half and twice as fast look alike, and one large ratio leaves room for the others.
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(y=0.15)
