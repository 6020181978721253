"""`e2s check`: its arguments, its output, its exit code."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from estimator2strategy.engine.command_line import Parser
from estimator2strategy.tools.check import accepted_findings, formats
from estimator2strategy.tools.check.check_report import Evidence, LevelReport, Report
from estimator2strategy.tools.check.checking import STALE, check
from estimator2strategy.tools.check.formats import text as text_format
from estimator2strategy.tools.check.request import (
    Asked,
    add_model_options,
    is_function,
    models_of,
    source_files,
)
from estimator2strategy.tools.check.settings import (
    Settings,
    SettingsError,
    read,
    with_changes,
)
from estimator2strategy.tools.untrusted import printable

_EXAMPLE = """\
examples:
  e2s check trainer/                                lines that will fail, or change their meaning
  e2s check trainer/ --format text --format sarif=e2s.sarif --format html=e2s.html
  e2s check trainer/ --target tf2                   lines that TensorFlow 2 itself cannot run
  e2s check trainer/ --write-baseline               accept all findings; later runs report new ones

examples with a model, whose functions are then called:
  e2s check trainer.model:model_fn --input trainer.data:input_fn --params hidden=64,rate=0.1
  e2s check trainer.model:model_fn --input trainer/data.py:input_fn --levels all --batch-size 64
  e2s check model.py:model_fn --input data.py:input_fn --tpu v2-8,v3-8 --fit-batch
  e2s check --golden golden/ --format html=e2s.html --program train.py --data_dir=/tmp/data
  e2s check --levels recorded --program train.py --data_dir=/tmp/data --use_tpu=True
  e2s check --levels recorded --program -m trainer.task --job-dir=/tmp/job

exit code: 0 no finding at or above --fail-on; 1 at least one; 2 the check could not be done.
Settings are read from [tool.estimator2strategy.check] in pyproject.toml of this folder.
A comment `# e2s: ignore[E2S201] the reason` silences a finding in its line.
"""


def main(argv: Sequence[str]) -> int:
    """Runs `e2s check` with these arguments; returns the exit code."""
    ours, program = _split(argv)
    options = parser().parse_args(ours)
    options.program = program
    try:
        settings = _settings(options)
        outputs = [_output(given) for given in options.format or ["text"]]
        asked = models_of(options, settings)
        paths = [path for path in options.paths if not is_function(path)]
        if not (paths or asked):
            raise SettingsError("give files or folders, MODULE:model_fn, or --program FILE.py")
        levels = [_run(model, level) for model in asked for level in model.levels]
        report = check([*paths, *source_files(asked)], settings, levels)
        if options.write_baseline or options.prune_baseline:
            return _write_baseline(report, settings, options)
        for name, path in outputs:
            _emit(name, path, report, settings, options)
    except SettingsError as error:
        printable.write(f"e2s check: {printable.printable_lines(str(error))}\n", sys.stderr)
        return 2
    seen_already = ("text", None) in outputs and sys.stdout.isatty() and sys.stderr.isatty()
    if not seen_already:
        for problem in report.problems:
            printable.write(f"e2s check: {printable.printable_lines(problem)}\n", sys.stderr)
    return report.exit_code(settings.fail_on)


def _run(model: Asked, level: Evidence) -> LevelReport:
    """The report of a level; says at once which, because one may take minutes."""
    printable.write(f"e2s check: {model.name}, {level.option} ...\n", sys.stderr)
    sys.stderr.flush()
    # Here, because a check that only reads starts no process.
    from estimator2strategy.tools.check.levels import process

    return process.run(model, level)


def parser() -> Parser:
    """Returns the parser of `e2s check`."""
    made = Parser(
        prog="e2s check",
        description="Reads the source of a program written for TensorFlow's Estimator, and\n"
        "reports the lines that will fail, or change their meaning. Files and folders are neither\n"
        "imported nor run. A model_fn is called, and its graph is checked; --levels checks more.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "paths",
        nargs="*",
        metavar="PATH | MODULE:model_fn",
        help="files and folders to read; models to call, also as FILE.py:model_fn",
    )
    made.add_argument(
        "--target",
        choices=("facade", "tf2"),
        help="run the program on this package (facade, the default), or on TensorFlow 2.16 or "
        "newer itself (tf2)",
    )
    made.add_argument(
        "--format",
        action="append",
        metavar="NAME[=FILE]",
        help=f"{', '.join(formats.NAMES)}: to a file, or to the terminal; may be repeated",
    )
    made.add_argument(
        "--fail-on",
        metavar="SEVERITY",
        help="exit with 1 from this severity on: error, warning (the default), info or never",
    )
    made.add_argument(
        "--select", metavar="RULES", help="use only these: E2S2,E2S301,tpu,unparsable"
    )
    made.add_argument("--ignore", metavar="RULES", help="use all but these")
    made.add_argument(
        "--exclude", action="append", metavar="PATTERN", help="paths to leave out; may be repeated"
    )
    made.add_argument("--notes", action="store_true", help="list notes (info) in the text, too")
    made.add_argument(
        "--baseline", metavar="FILE", help="the accepted findings; by default e2s-baseline.json"
    )
    made.add_argument(
        "--write-baseline",
        action="store_true",
        help="write all findings to a new baseline, which accepts them",
    )
    made.add_argument(
        "--prune-baseline",
        action="store_true",
        help="remove findings from the baseline that are not found any more",
    )
    add_model_options(made)
    return made


def _split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Our arguments, and the program with its own: all that comes after `--program`."""
    for i, argument in enumerate(argv):
        if argument == "--program":
            return list(argv[:i]), tuple(argv[i + 1 :])
        if argument.startswith("--program="):
            return list(argv[:i]), (argument.partition("=")[2], *argv[i + 1 :])
    return list(argv), ()


def _settings(options: argparse.Namespace) -> Settings:
    changes = {
        "target": options.target,
        "fail_on": options.fail_on,
        "select": options.select and options.select.split(","),
        "ignore": options.ignore and options.ignore.split(","),
        "baseline": options.baseline,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    settings = with_changes(read(Path.cwd()), given, where="command line")
    return dataclasses.replace(settings, exclude=(*settings.exclude, *(options.exclude or ())))


def _output(given: str) -> tuple[str, str | None]:
    name, _, path = given.partition("=")
    if name not in formats.NAMES:
        raise SettingsError(f"--format {name}: there are {', '.join(formats.NAMES)}")
    return name, path or None


def _emit(
    name: str, path: str | None, report: Report, settings: Settings, options: argparse.Namespace
) -> None:
    if (
        name == "text"
        and path is None
        and sys.stdout.isatty()
        and _print_in_colour(text_format.segments(report, settings.root, notes=options.notes))
    ):
        return
    if name == "text":
        text = text_format.render(report, settings.root, notes=options.notes)
    else:
        text = formats.render(name, report, settings.root)
    if path is None:
        printable.write(text, errors="xmlcharrefreplace" if name == "html" else "backslashreplace")
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"--format {name}={path}: {error.strerror}") from error


def _print_in_colour(parts: list[text_format.Segment]) -> bool:
    """Prints styled text; False where rich is missing, as after `pip install --no-deps`."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    shown = [(printable.encodable(text), style) for text, style in parts]
    Console(highlight=False, soft_wrap=True).print(Text.assemble(*shown), end="")
    return True


def _write_baseline(report: Report, settings: Settings, options: argparse.Namespace) -> int:
    """Writes a first baseline, or one without what is not found any more; never a larger one."""
    path = settings.root / settings.baseline
    if report.problems:
        raise SettingsError("; ".join(report.problems))
    entries = accepted_findings.read(path)
    if options.write_baseline and entries:
        raise SettingsError(
            f"{path} exists, and a baseline only shrinks (--prune-baseline). Fix or silence what "
            "is new; to start again, delete the file."
        )
    new = [finding for finding in report.findings if finding.rule != STALE]
    if options.write_baseline:
        # Notes do not fail a check, and are no debt.
        fail_on = settings.fail_on or 0
        entries = accepted_findings.of(finding for finding in new if finding.severity >= fail_on)
    else:
        stale = (f.text for f in report.findings if f.rule == STALE)
        entries = _without(entries, list(stale))
    accepted_findings.write(path, entries)
    sys.stdout.write(f"{path}: {entries.total()} findings\n")
    return 0


def _without(entries: accepted_findings.Baseline, stale: list[str]) -> accepted_findings.Baseline:
    left = accepted_findings.Baseline(entries)
    for key in entries:
        rule, path, _, text = key
        left[key] -= min(stale.count(f"{rule} {path} {text}"), left[key])
    return +left
