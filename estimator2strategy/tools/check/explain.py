"""`e2s explain`: what a rule is about; without one, the list of all."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from estimator2strategy.engine.command_line import Parser, completed_by
from estimator2strategy.engine.spelling import did_you_mean
from estimator2strategy.tools.check.rule import Redirect, Rule, matching, redirected, rules


def main(argv: Sequence[str]) -> int:
    """Runs `e2s explain` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    if not options.rules:
        for rule in rules().values():
            sys.stdout.write(f"{rule.id}  {rule.severity!s:7}  {rule.title}\n")
        return 0
    wanted = [_spelled(given) for given in options.rules]
    moved = [r for given in wanted if (r := redirected(given))]
    unknown = [g for g in wanted if not any(matching([g])) and not redirected(g)]
    if unknown:
        sys.stderr.write("".join(f"e2s explain: {_unknown(given)}\n" for given in unknown))
        return 2
    chosen = dict.fromkeys(matching(wanted))
    sections = [*map(companion, moved), *(text(rules()[rule]) for rule in chosen)]
    sys.stdout.write("\n".join(sections))
    return 0


def parser() -> Parser:
    """Returns the parser of `e2s explain`."""
    made = Parser(
        prog="e2s explain",
        description="Explains a rule of `e2s check`. Without one, lists them all.",
        epilog="example: e2s explain E2S203",
    )
    named = made.add_argument("rules", nargs="*", metavar="RULE", help="E2S203, its name, or E2S2")
    completed_by(
        named, lambda: [word for rule in rules().values() for word in (rule.id, rule.name)]
    )
    return made


def _spelled(given: str) -> str:
    """The spelling of an id that stands in the table: `e2s203` and `203` are E2S203."""
    number = re.fullmatch(r"(?:E2S)?(\d+)", given, re.IGNORECASE)
    return f"E2S{number[1]}" if number else given


def _unknown(given: str) -> str:
    hint = did_you_mean(given, [rule.name for rule in rules().values()], "`e2s explain` lists all.")
    return f"there is no rule {given!r}. {hint}"


def companion(moved: Redirect) -> str:
    """The text about a rule that another tool has today."""
    return (
        f"{moved.id} {moved.name}\nNow {moved.companion}: {moved.finds}.\n\n"
        f"{moved.id} in settings, comments and baselines is understood, and does nothing.\n"
    )


def text(rule: Rule) -> str:
    """The text about a rule, for a terminal."""
    about, samples = rule.text, ""
    if about.flagged and about.clean:
        samples = f"\nfound in:\n{_indented(about.flagged)}\nnot in:\n{_indented(about.clean)}"
    return (
        f"{rule.id} {rule.name} ({rule.severity})\n{rule.title}.\n\nwhy: {about.why}\n"
        f"fix: {about.fix}\nmore: {rule.page}\n{samples}"
    )


def _indented(code: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in code.strip("\n").splitlines())
