"""`e2s migrate`: its arguments, its output, its exit code."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence

from estimator2strategy.engine.command_line import Parser
from estimator2strategy.tools.migrate import files
from estimator2strategy.tools.migrate.codemod import (
    STAGES,
    WITHOUT_CHANGES,
    Codemod,
    SafetyTier,
    codemods,
)
from estimator2strategy.tools.migrate.files import RefusedError
from estimator2strategy.tools.migrate.migration import Place, Plan, Planned
from estimator2strategy.tools.migrate.preview import make_plan
from estimator2strategy.tools.untrusted.printable import (
    encodable,
    printable,
    printable_lines,
    write,
)

# A piece of text, and its style for rich.
Segment = tuple[str, str]
_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
# How many places of a kind are listed.
_LISTED = 50


def diff(planned: Planned) -> Iterator[Segment]:
    """The unified diff of a file, which `git apply` or `patch -p1` takes."""
    before, after = _lines(planned.migrated.before), _lines(planned.migrated.text)
    shown = printable(planned.shown).lstrip("/")
    for line in difflib.unified_diff(before, after, f"a/{shown}", f"b/{shown}"):
        style = next((s for start, s in _DIFF_STYLES.items() if line.startswith(start)), "")
        yield printable_lines(line), style
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n", "dim"


def _lines(text: str) -> list[str]:
    """Lines as git and patch count them; a form feed ends none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def summary(plan: Plan, *, written: bool, tier: SafetyTier) -> Iterator[Segment]:
    """Counts by codemod, then what is left to do, with file and line."""
    counts = plan.counts
    stage = None
    for name, codemod in codemods().items():
        safe, review = counts[name, SafetyTier.SAFE], counts[name, SafetyTier.REVIEW]
        if not safe + review:
            continue
        if codemod.stage != stage:
            stage = codemod.stage
            yield f"\nStage {stage}: {STAGES[stage]}\n", "bold"
        sure = f"{safe} safe" if not review else f"{safe} safe, {review} to review"
        yield f"  {name:24} {_number(safe + review, 'change')} ({sure})\n", ""
    safe = sum(number for (_, tier_), number in counts.items() if tier_ == SafetyTier.SAFE)
    total = counts.total()
    files = f"{len(plan.changed)} of {_number(plan.files, 'file')}"
    yield (
        f"\n{_number(total, 'change')} in {files}: {safe} proven safe, {total - safe} to review.\n",
        "bold green" if total == safe else "bold yellow",
    )
    withheld = plan.withheld.total()
    if withheld and tier < SafetyTier.REVIEW:
        names = ", ".join(name for name, number in plan.withheld.items() if number)
        yield f"{_number(withheld, 'more change')} to review, with --tier review ({names}).\n", ""
    lines = "" if written else " (lines of the files as --write leaves them)"
    yield from _places(f"left to you, marked with TODO(e2s){lines}", plan.marks, "yellow")
    yield from _places("left alone, because they cannot be read", plan.skipped, "yellow")
    yield from _places("not seen into", plan.unseen, "dim")
    for problem in plan.problems:
        yield printable_lines(f"Could not be done: {problem}\n"), "bold red"
    if plan.changed and not written:
        yield "Nothing is written yet: the same command with --write does it.\n", "cyan"


def _places(what: str, places: Iterable[Place], style: str) -> Iterator[Segment]:
    places = list(places)
    if not places:
        return
    yield f"{_number(len(places), 'place')} {what}:\n", ""
    for place in places[:_LISTED]:
        path = printable(place.path)
        where = f"{path}:{place.line}" if place.line else path
        yield printable_lines(f"  {where}: {place.message}\n"), style
    if len(places) > _LISTED:
        yield f"  and {len(places) - _LISTED} more\n", style


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


_EXAMPLE = """\
examples:
  e2s migrate trainer/                              the next stage that has something to change
  e2s migrate --stage 2 trainer/                    look at one stage: nothing is written
  e2s migrate --stage 2 trainer/ --write            do it, in a clean git tree
  e2s migrate --codemod metrics-to-keras trainer/   one codemod; --list names them all
  e2s migrate --stage 5 --tier review trainer/      also what may mean something else

A file that is not understood, or has changed since the dry run, stays as it is. Places that need a
decision get a comment `# TODO(e2s): codemod: what to do`; the next run takes it away when it is
done.

exit code: 0 nothing is left to change; 1 there are changes (in a dry run), or places left to you;
2 it could not be done.
"""


def main(argv: Sequence[str]) -> int:
    """Runs `e2s migrate` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    if options.list:
        sys.stdout.write(_listing())
        return 0
    if not options.paths:
        sys.stderr.write("e2s migrate: which files? `e2s migrate --help` has examples\n")
        return 2
    if options.stage in WITHOUT_CHANGES:
        command = WITHOUT_CHANGES[options.stage]
        sys.stdout.write(f"Stage {options.stage} changes no file: {command}\n")
        return 0
    unknown = set(options.codemod or ()) - codemods().keys()
    if unknown:
        sys.stderr.write(
            f"e2s migrate: no codemod is {', '.join(sorted(unknown))}; --list names them\n"
        )
        return 2
    return _migrate(options)


def _migrate(options: argparse.Namespace) -> int:
    tier = SafetyTier[options.tier.upper()]
    plan = _plan(options, tier)
    if not options.quiet:
        for planned in plan.changed:
            _print(diff(planned))
    written = False
    try:
        if options.write and not plan.is_broken:
            _write(plan, allow_dirty=options.allow_dirty)
            written = True
        else:
            _remember(plan)
    except (RefusedError, OSError) as error:
        write(f"e2s migrate: {printable_lines(str(error))}\n", sys.stderr)
        return 2
    _print(summary(plan, written=written, tier=tier))
    if plan.problems:
        if options.write and plan.is_broken:
            _print([("Nothing was written: half of a program would not run.\n", "bold red")])
        return 2
    left = plan.marks or plan.skipped or (plan.changed and not written)
    return int(bool(left))


def _plan(options: argparse.Namespace, tier: SafetyTier) -> Plan:
    """The plan of the chosen codemods; without a choice, of the first stage that has changes."""

    def planned(chosen: list[Codemod]) -> Plan:
        return make_plan(options.paths, chosen, tier=tier, exclude=tuple(options.exclude or ()))

    if options.codemod or options.stage is not None:
        return planned([codemod for codemod in codemods().values() if _is_chosen(codemod, options)])
    for stage in sorted({codemod.stage for codemod in codemods().values()}):
        plan = planned([codemod for codemod in codemods().values() if codemod.stage == stage])
        if plan.changed or plan.problems:
            break
    return plan


def _is_chosen(codemod: Codemod, options: argparse.Namespace) -> bool:
    if options.codemod:
        return codemod.name in options.codemod
    return bool(codemod.stage == options.stage)


def _write(plan: Plan, *, allow_dirty: bool) -> None:
    """Writes what has changed; all is checked before the first file is touched."""
    changed = [planned.file for planned in plan.changed]
    files.check_as_shown(changed, plan.changes)
    if changed and not allow_dirty:
        files.check_clean(changed)
    files.replace_all((planned.file, planned.migrated.text) for planned in plan.changed)
    files.forget(changed)


def _remember(plan: Plan) -> None:
    files.remember((planned.file for planned in plan.changed), plan.changes)


def parser() -> Parser:
    """Returns the parser of `e2s migrate`."""
    made = Parser(
        prog="e2s migrate",
        description="Rewrites a program written for TF 1.x towards TensorFlow 2, one stage at a\n"
        "time. Shows the changes; --write makes them. Nothing is imported or run.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("paths", nargs="*", metavar="PATH", help="files and folders")
    chosen = made.add_mutually_exclusive_group()
    chosen.add_argument(
        "--stage",
        type=int,
        choices=tuple(STAGES),
        metavar="N",
        help="one rung of the ladder: " + "; ".join(f"{n} {what}" for n, what in STAGES.items()),
    )
    chosen.add_argument(
        "--codemod",
        "--rule",  # its name until this option was renamed
        action="append",
        metavar="NAME",
        help="one codemod; may be repeated",
    )
    made.add_argument(
        "--tier",
        choices=[str(tier) for tier in SafetyTier],
        default=str(SafetyTier.SAFE),
        help="safe (the default): only changes that are proven to do the same; review: also "
        "changes that need a look",
    )
    made.add_argument("--write", action="store_true", help="change the files")
    made.add_argument(
        "--allow-dirty",
        action="store_true",
        help="write even if git could not bring back the old files",
    )
    made.add_argument(
        "--exclude", action="append", metavar="PATTERN", help="paths to leave out; may be repeated"
    )
    made.add_argument("--quiet", action="store_true", help="print the summary alone, no diff")
    made.add_argument("--list", action="store_true", help="name all codemods, by stage")
    return made


def _listing() -> str:
    lines = []
    for stage, what in STAGES.items():
        lines.append(f"{stage}  {what}")
        if stage in WITHOUT_CHANGES:
            lines.append(f"     {WITHOUT_CHANGES[stage]}")
        lines += [
            f"     {codemod.name:22} {codemod.tier!s:7} {codemod.title}"
            for codemod in codemods().values()
            if codemod.stage == stage
        ]
    return "\n".join(lines) + "\n"


def _print(segments: Iterable[Segment]) -> None:
    """Writes text, in colours on a terminal where rich is installed."""
    segments = [(encodable(text), style) for text, style in segments]
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ModuleNotFoundError:
            pass
        else:
            Console(highlight=False, soft_wrap=True).print(Text.assemble(*segments), end="")
            return
    sys.stdout.write("".join(text for text, _ in segments))
