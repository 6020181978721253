"""From raw samples to ratios, the table and the plot.

Contenders take turns, so the k-th chunks of two contenders ran one right after the other. A ratio
is the median over k of such pairs: what slows the whole machine down for a while slows both.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

# (contender to compare e2s with, model) -> the ratio of train steps/s that e2s should reach.
_OTHERS = ("dense", "conv", "bert", "resnet", "bert12", "ranker", "input")
TARGETS = {
    **{("loop", model): 0.98 for model in _OTHERS},
    **{("keras", model): 1.0 for model in _OTHERS},
    **{("legacy", model): 1.05 for model in _OTHERS},
    ("legacy", "dense"): 2.5,
    ("legacy", "conv"): 1.2,
}
RECORDING_LIMIT = 1.5
# By what factor a ratio may be lower than another time before that is remarked upon.
MUCH = 1.5
OURS = "e2s"


@dataclasses.dataclass
class Result:
    """What one contender did on one model; rates are steps per second."""

    model: str
    contender: str
    tensorflow: str = ""
    import_s: float = 0.0
    first_s: float = 0.0  # Building everything and the first 50 steps.
    record_s: float | None = None  # Of those, inside model_fn.
    train_rates: list[float] = dataclasses.field(default_factory=list)
    cpu_ms: list[float] = dataclasses.field(default_factory=list)  # All threads, per train step.
    eval_rate: float = 0.0
    predict_rate: float = 0.0
    train_rss_mb: float = 0.0
    rss_mb: float = 0.0
    restart_s: float | None = None  # A whole train(steps=1): record, restore, one step, save.
    export_s: float | None = None  # A whole export_saved_model.

    def compile_s(self, steps_per_execution: int) -> float:
        """The first 50 steps without model_fn and without what 50 steps take later."""
        steady = steps_per_execution / statistics.median(self.train_rates)
        return max(0.0, self.first_s - (self.record_s or 0.0) - steady)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios inside each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def ratios(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Returns {model: {contender: train steps/s of e2s / of the contender}}."""
    ours = {r.model: r for r in results if r.contender == OURS}
    return {
        model: {
            r.contender: paired_ratio(mine.train_rates, r.train_rates)
            for r in results
            if r.model == model and r is not mine
        }
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


def target_of(contender: str, model: str) -> float | None:
    """The ratio wanted, if any."""
    return TARGETS.get((contender, model))


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
    "e2s is x times (target)",
    "CPU ms/step",
    "eval/s",
    "predict/s",
    "import s",
    "first 50 s",
    "record s",
    "compile s",
    "restart s",
    "export s",
    "RSS MB",
)


def row(result: Result, ratio: float | None, steps_per_execution: int) -> list[str]:
    """One line of the table; `ratio` is e2s's train steps/s over this contender's."""
    wanted = target_of(result.contender, result.model)
    return [
        result.model,
        result.contender,
        result.tensorflow,
        f"{statistics.median(result.train_rates):,.0f}",
        "" if ratio is None else verdict(ratio, wanted),
        f"{statistics.median(result.cpu_ms):.3g}",
        f"{result.eval_rate:,.0f}",
        f"{result.predict_rate:,.0f}",
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
    of_e2s = ratios(results)
    rows = [row(r, of_e2s.get(r.model, {}).get(r.contender), steps_per_execution) for r in results]
    rows.insert(0, list(HEADER))
    widths = [max(len(line[column]) for line in rows) for column in range(len(HEADER))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |" for r in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def recording(answers: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Sums up the timings of `benchmarks.recording`: medians, and the ratio paired by round."""
    plain, whole = ([answer[name] for answer in answers] for name in ("plain_s", "e2s_s"))
    return {
        "plain_s": statistics.median(plain),
        "e2s_s": statistics.median(whole),
        "ratio": paired_ratio(whole, plain),
        "limit": RECORDING_LIMIT,
        "answers": list(answers),
    }


def recording_line(timings: dict[str, Any]) -> str:
    """One line about the 12-layer recording."""
    kept = "ok" if timings["ratio"] <= timings["limit"] else "MISSED"
    return (
        f"12-layer BERT: plain v1 graph {timings['plain_s']:.1f} s, e2s recording and replay "
        f"{timings['e2s_s']:.1f} s: {timings['ratio']:.2f} x (<= {timings['limit']} {kept})"
    )


def plot(results: Sequence[Result], path: str) -> None:
    """Bars of e2s's train ratios per model; a tick marks each target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    by_model = ratios(results)
    contenders = sorted(
        {c for row in by_model.values() for c in row},
        key="auto jit loop keras orbit legacy115".find,
    )
    figure, axes = plt.subplots(figsize=(13, 6), layout="constrained")
    width = 0.8 / max(1, len(contenders))
    for index, contender in enumerate(contenders):
        for place, (model, row) in enumerate(by_model.items()):
            if contender not in row:
                continue
            x = place + (index - (len(contenders) - 1) / 2) * width
            label = f"e2s / {contender}" if place == 0 else None
            bars = axes.bar(x, row[contender], 0.9 * width, color=f"C{index}", label=label)
            axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=5)
            if (target := target_of(contender, model)) is not None:
                axes.hlines(target, x - width / 2, x + width / 2, color="black", linewidth=1.5)
    axes.set_xticks(range(len(by_model)), list(by_model))
    # So that half and twice as fast look alike, and one large ratio leaves room for the others.
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(y=0.1)
    axes.set_ylabel("train steps/s, ratio")
    axes.set_title("estimator2strategy against the alternatives (black: target)")
    axes.legend()
    figure.savefig(path, dpi=150)
