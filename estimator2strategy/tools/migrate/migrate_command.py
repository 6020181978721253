"""`e2s migrate`: its arguments, its output, its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from estimator2strategy.engine.command_line import Parser
from estimator2strategy.tools.migrate import files, replacing
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier, codemods
from estimator2strategy.tools.migrate.files import RefusedError
from estimator2strategy.tools.migrate.migrate_report import Segment, diff, summary
from estimator2strategy.tools.migrate.plan import Plan
from estimator2strategy.tools.migrate.preview import make_plan
from estimator2strategy.tools.migrate.stages import STAGES, WITHOUT_CHANGES
from estimator2strategy.tools.untrusted.printable import encodable, printable_lines, write

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
    return codemod.stage == options.stage


def _write(plan: Plan, *, allow_dirty: bool) -> None:
    """Writes what has changed; all is checked before the first file is touched."""
    changed = [planned.file for planned in plan.changed]
    files.check_as_shown(changed, plan.changes)
    if changed and not allow_dirty:
        files.check_clean(changed)
    replacing.replace_all((planned.file, planned.migrated.text) for planned in plan.changed)
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
