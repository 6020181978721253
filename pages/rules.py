"""The pages about the rules, in the folder `rules` of the guide, from the rules."""

from __future__ import annotations

import textwrap

from estimator2strategy.tools.check.check_report import Evidence
from estimator2strategy.tools.check.rule import Rule, rules

_MADE = "<!-- Made by `python -m pages`. -->"
_FAMILIES = {
    "E2S0": (
        "Files that cannot be read or run, and comments",
        "Files that cannot be read or run, and comments that silence findings.",
    ),
    "E2S1": (
        "Names that are gone from TensorFlow, or changed",
        "Names that are gone, have changed, or never were there.",
    ),
    "E2S2": (
        "Estimator code that is refused, or means something else",
        "Code of an Estimator program that is refused, or means something else.",
    ),
    "E2S3": (
        "Inputs that a pipeline or a TPU refuses",
        "Code that an input_fn must not have, and inputs that a TPU refuses.",
    ),
    "E2S4": (
        "Code that a TPU cannot execute",
        "Code that a TPU cannot execute, in model_fn and in all that it calls.",
    ),
    "E2S5": ("Traps on the way to TensorFlow 2", "Traps for a program that moves to TensorFlow 2."),
    "E2S6": (
        "Faults in recorded graphs",
        "Faults in the graphs of a model_fn and an input_fn that you name to the check.",
    ),
    "E2S7": (
        "Faults in compiled steps",
        "Faults that compilers and a TPUStrategy find in the step of a model, without a TPU.",
    ),
    "E2S8": (
        "Libraries that were written for Estimators",
        "Libraries that were written for Estimators: served, or of the wrong release.",
    ),
}


def pages() -> dict[str, str]:
    """The name of each page -> its text."""
    made = {f"rules/{family.lower()}.md": _page(family) for family in _FAMILIES}
    return {"rules/README.md": _index(), **made}


def _index() -> str:
    lines = [
        "# The rules of `e2s check`",
        "",
        _MADE,
        "",
        "For you if `e2s check` reports a rule's id, and you want to know why and what to do.",
        "`e2s explain E2S203` prints the same on the command line. An id never changes its meaning.",
        "[../ci.md](../ci.md) says how to silence a rule, accept findings for now, and run it in CI.",
    ]
    for family, (title, about) in _FAMILIES.items():
        lines += [
            "",
            f"## {title}",
            "",
            about,
            "",
            "| rule | severity | finds |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| [{rule.id} {rule.name}]({family.lower()}.md#{rule.id.lower()}-{rule.name}) "
            f"| {rule.severity} | {rule.title} |"
            for rule in _of(family)
        ]
    return "\n".join(lines) + "\n"


def _page(family: str) -> str:
    title, about = _FAMILIES[family]
    parts = [f"# {title}\n\n{_MADE}\n\n{about} All rules: [README.md](README.md).\n"]
    return "\n".join([*parts, *map(_section, _of(family))])


def _section(rule: Rule) -> str:
    lines = [f"## {rule.id} {rule.name}", "", f"{rule.title}. ({rule.severity})", ""]
    lines += [textwrap.fill(f"**Why.** {rule.text.why}", 100, break_long_words=False), ""]
    lines += [textwrap.fill(f"**Fix.** {rule.fix}", 100, break_long_words=False), ""]
    if rule.guide:
        lines += [f"**More.** [{rule.guide}](../{rule.guide})", ""]
    if rule.level != Evidence.STATIC:
        lines += [f"**Evidence.** {rule.level.words[0].upper()}{rule.level.words[1:]}.", ""]
    if rule.text.flagged and rule.text.clean:
        for what, code in (("Found", rule.text.flagged), ("Not found", rule.text.clean)):
            target = f" with `--target {rule.target}`" if rule.target != "facade" else ""
            lines += [f"{what}{target}:", "", "```python", code.strip("\n"), "```", ""]
    return "\n".join(lines)


def _of(family: str) -> list[Rule]:
    return [rule for rule in rules().values() if rule.id.startswith(family)]
