"""One check: files are collected and parsed, rules find, comments and the baseline silence.

Example:

    report = check(["trainer/"], Settings())
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import gc
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from estimator2strategy.engine import patches
from estimator2strategy.tools.check import accepted_findings
from estimator2strategy.tools.check.accepted_findings import UNREASONED, UNUSED, suppressions
from estimator2strategy.tools.check.check_report import Evidence, Finding, LevelReport, Report
from estimator2strategy.tools.check.rule import ANY_LIBRARY, Hit, Rule, redirected, rules, rules_of
from estimator2strategy.tools.check.settings import Settings, Target
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import (
    MOST_TOGETHER,
    UNREADABLE,
    NotChecked,
    Wanted,
    collect,
    is_notebook,
    neighbours,
    parse,
    read_source,
)
from estimator2strategy.tools.reader.python_files import shown as shown_of
from estimator2strategy.tools.reader.source import NotebookError, Source
from estimator2strategy.tools.reader.symbol_uses import Flavour, blind_spots
from estimator2strategy.tools.reader.unreached import is_reached
from estimator2strategy.tools.untrusted.printable import printable


@contextlib.contextmanager
def bar_of_files(total: int) -> Iterator[Callable[..., object]]:
    """Gives a function that moves a bar by one of `total` files; shown after two seconds.

    The check reads source with nothing installed but this package (`pip install --no-deps`, in CI).
    Without tqdm, and where nobody looks at a terminal, there is no bar.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        yield lambda: None
        return
    with tqdm(total=total, unit="file", delay=2, leave=False) as bar:
        yield bar.update


UNPARSABLE, PYTHON_2, STALE = "E2S001", "E2S002", "E2S006"

# Modules whose import is none of a library that was written for Estimators.
_NO_LIBRARIES = sys.stdlib_module_names | {
    "absl",
    "estimator2strategy",
    "numpy",
    "six",
    "tensorflow",
}

_Found = TypeVar("_Found", Finding, NotChecked)

# A rule about source -> the rule about graphs that sees the same.
_SEEN_IN_GRAPHS = {"E2S226": "E2S605"}

# The limits of reading source; every verdict lists them.
BEYOND = (
    "values and shapes that are only known when the program runs (flags, files, arithmetic)",
    "attributes of objects whose class cannot be told from the source",
    "ops, dtypes and shapes of the graphs that model_fn and input_fn build",
    "whether it compiles for a TPU, fits into its memory, or gives the numbers it gave",
)


@dataclasses.dataclass(frozen=True)
class Context:
    """The questions that rules may ask beside the file."""

    project: Project
    settings: Settings
    _searched: dict[tuple[str, ...], int] = dataclasses.field(default_factory=dict)

    def needs(self, rule: Rule, source: Source) -> bool:
        """True if a rule may have a case in a file."""
        if rule.needs == (ANY_LIBRARY,):
            return not source.modules <= _NO_LIBRARIES
        return not rule.needs or self.says(rule.needs)

    def says(self, words: tuple[str, ...]) -> bool:
        """True if a file that was read so far has one of these words."""
        read, searched = self.project.by_path, self._searched.get(words, 0)
        if 0 <= searched < len(read):
            new = itertools.islice(read.values(), searched, None)
            found = any(word in source.text for source in new if source for word in words)
            self._searched[words] = searched = -1 if found else len(read)
        return searched < 0

    def runs_on_tensorflow2(self, source: Source, flavour: Flavour = Flavour.PLAIN) -> bool:
        """True if names that a file reaches by this `flavour` are those of TensorFlow 2.

        A file that names this package has moved already: its `tensorflow` is TensorFlow 2.
        """
        if flavour is Flavour.FACADE:
            return False
        return self.settings.target == Target.TF2 or "estimator2strategy" in source.modules


def check(
    paths: Iterable[str],
    settings: Settings,
    levels: Sequence[LevelReport] = (),
    together: int = MOST_TOGETHER,
) -> Report:
    """Checks files, and folders with all that is in them; nothing of them is executed.

    Args:
        paths: The files and folders.
        settings: The settings of the check.
        levels: The reports of the levels above static; the report includes them.
        together: How many bytes of source are read as one program.
    """
    start = time.perf_counter()
    reading = _Reading(settings, together)
    wanted = Wanted(settings.exclude, settings.root)
    files = list(collect(paths, wanted, reading.problems, reading.skipped))
    groups = list(neighbours(files, together))
    if len(groups) > 1:
        why = (
            f"read in {len(groups)} parts, as there is so much; what a part does with functions of "
            "another is not seen"
        )
        reading.skipped.append(NotChecked("all files", 0, why))
    _read_all(groups, reading)
    findings, suppressed = reading.findings, reading.suppressed
    chosen = settings.chosen()
    for level in levels:
        found, silenced = _silenced_by_comments(level.findings, settings)
        # Several levels may see the same.
        findings += [finding for finding in found if finding not in findings]
        suppressed += silenced
    findings = [f for f in findings if f.rule in chosen]
    entries = accepted_findings.read(settings.root / settings.baseline)
    new, unused = accepted_findings.split(sorted(findings), entries)
    baselined = len(findings) - len(new)
    new = _each_once(new, findings)
    if STALE in chosen:
        ran = {Evidence.STATIC, *(level.level for level in levels)}
        looked_for = {rule.id for level in ran for rule in rules_of(level)}
        checked = {shown_of(path, settings.root) for path in files}
        new += _stale(unused, checked, looked_for, settings)
    return Report(
        findings=tuple(sorted(_weighed(new, settings))),
        files=tuple(shown_of(path, settings.root) for path in files),
        target=settings.target.value,
        not_checked=tuple(reading.skipped),
        beyond=BEYOND,
        suppressed=suppressed,
        baselined=baselined,
        evidence=max((level.level for level in levels), default=Evidence.STATIC),
        problems=(
            *reading.problems,
            *(f"{v.subject}, {v.level.option}: {p}" for v in levels for p in v.problems),
        ),
        seconds=time.perf_counter() - start + sum(level.seconds for level in levels),
        levels=tuple(levels),
    )


def check_text(text: str, settings: Settings | None = None) -> Report:
    """Checks a program that is no file; for samples and tests."""
    settings, path = settings or Settings(), "program.py"
    try:
        source = parse(path, path, text)
    except UNREADABLE as error:
        found = [_unparsable(path, text, error)]
    else:
        found, _ = _check_source(source, Context(Project([source]), settings))
    chosen = settings.chosen()
    kept = [finding for finding in found if finding.rule in chosen]
    return Report(tuple(sorted(_weighed(kept, settings))), (path,), settings.target.value)


# Files.


@dataclasses.dataclass
class _Reading:
    """What comes of the files while they are read.

    Attributes:
        settings: The settings of the check.
        together: How much of the modules that a group imports is read beside it, in bytes.
        findings: The findings that no comment silences.
        suppressed: How many comments silence.
        problems: A sentence for each file that cannot be read.
        skipped: The places that reading cannot decide.
    """

    settings: Settings
    together: int
    findings: list[Finding] = dataclasses.field(default_factory=list)
    suppressed: int = 0
    problems: list[str] = dataclasses.field(default_factory=list)
    skipped: list[NotChecked] = dataclasses.field(default_factory=list)


def _read_all(groups: Sequence[Sequence[Path]], reading: _Reading) -> None:
    """Checks one group of files after the other; shows on a terminal how far it is."""
    with bar_of_files(sum(map(len, groups))) as update, _without_collector():
        for group in groups:
            _read_group(group, reading, update)
            if len(groups) > 1:
                gc.collect()  # trees are cycles


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Leaves cycles alone meanwhile: trees are cycles, and as many as their group is large."""
    was_on = gc.isenabled()
    patches.noted("cycles of source")
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_group(files: Sequence[Path], reading: _Reading, done: Callable[[], Any]) -> None:
    """Checks the files that one Project holds; `done` is called after each."""
    sources: list[Source] = []
    unread: list[str] = []
    for path in files:
        shown = shown_of(path, reading.settings.root)
        text = ""
        try:
            text = read_source(path)
            sources.append(parse(str(path), shown, text))
            if is_notebook(path):
                _read_cells(path, shown, reading)
            continue
        except OSError as error:
            reading.problems.append(f"{printable(shown)}: {error.strerror}")
        except NotebookError as error:
            reading.skipped.append(NotChecked(shown, 0, str(error)))
        except UNREADABLE as error:
            reading.findings.append(_unparsable(shown, text, error))
            unread.append(text)
        done()
    context = Context(Project(sources, reading.together, unread), reading.settings)
    for source in sources:
        try:
            found, silenced = _check_source(source, context)
            reading.findings += [_in_cell(finding, source) for finding in found]
            reading.suppressed += silenced
        except RecursionError as error:
            reading.findings.append(_unparsable(source.shown, source.text, error))
        except Exception as error:  # of ours: the other files are still checked
            reading.problems.append(
                f"{printable(source.shown)}: the check itself failed ({error!r}); please report it"
            )
        reading.skipped += [_in_cell(place, source) for place in blind_spots(source)]
        done()


def _read_cells(path: Path, shown: str, reading: _Reading) -> None:
    """Tells which cells of a notebook are left out; the others are its text."""
    from estimator2strategy.tools.reader import notebooks

    for cell, error, why in notebooks.read(path).unread:
        where = f"{shown}#cell-{cell}"
        if error is None:
            reading.skipped.append(NotChecked(where, 0, why))
        else:
            reading.findings.append(_unparsable(where, error.text or "", error))


# Findings.


def _in_cell(found: _Found, source: Source) -> _Found:
    """A finding or a place with the cell and its line, if it is in a notebook."""
    if not is_notebook(source.path):
        return found
    from estimator2strategy.tools.reader import notebooks

    path, line = notebooks.shown_cell(source.shown, source.text, found.line)
    return dataclasses.replace(found, path=path, line=line)


def _check_source(source: Source, context: Context) -> tuple[list[Finding], int]:
    """The findings that no comment silences, those about comments, and how many are silenced."""
    for target, _ in source.imports:
        source.follow(source, target)  # reads what the file has its names from
    chosen = context.settings.chosen()
    read = {rule.id for rule in rules_of(Evidence.STATIC)}
    found = [
        _finding(source, rule, hit)
        for rule in rules_of(Evidence.STATIC)
        if rule.id in chosen and context.needs(rule, source)
        for hit in rule.find(source, context)
        if not isinstance(hit.node, ast.AST)
        or is_reached(hit.node, source, on_tensorflow_2=context.runs_on_tensorflow2(source))
    ]
    comments = suppressions(source)
    kept, used = [], set()
    for finding in dict.fromkeys(found):
        silencing = [
            c for c in comments if c.applies_to == finding.line and finding.rule in c.rules
        ]
        used.update(silencing)
        if not silencing:
            kept.append(finding)
    for comment in comments:
        unknown = [r for r in comment.rules if r not in rules() and not redirected(r)]
        problem = None
        if not comment.rules:
            problem = (UNREASONED, "this silences no rule: name the rules in brackets")
        elif unknown:
            problem = (UNREASONED, f"no rule is {', '.join(unknown)}")
        elif not comment.reason:
            problem = (UNREASONED, f"this silences {', '.join(comment.rules)} without a reason")
        elif comment not in used and set(comment.rules) <= chosen & read:
            problem = (UNUSED, f"there is no {', '.join(comment.rules)} here any more")
        if problem:
            kept.append(_finding(source, rules()[problem[0]], Hit(comment.line, problem[1])))
    return kept, len(dict.fromkeys(found)) - sum(f.rule not in (UNREASONED, UNUSED) for f in kept)


def _place(node: Any) -> tuple[int, int]:
    """The line and column of a node: of the last name, if a dotted name goes over several lines."""
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Attribute) and named.end_lineno != named.lineno:
        return named.end_lineno, named.end_col_offset - len(named.attr.encode())  # type: ignore
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def _finding(source: Source, rule: Rule, hit: Hit) -> Finding:
    if isinstance(hit.node, int):
        line, column, symbol = hit.node, 1, ""
    else:
        line, column = _place(hit.node)
        # `col_offset` counts bytes.
        before = source.line(line).encode()[:column]
        column = len(before.decode(errors="replace")) + 1
        symbol = source.scope_of(hit.node).name if line > 0 and hasattr(hit.node, "parent") else ""
    return Finding(
        path=source.shown,
        line=line,
        column=column,
        rule=rule.id,
        severity=rule.severity if hit.severity is None else hit.severity,
        message=hit.message,
        fix=rule.fix if hit.fix is None else hit.fix,
        symbol=symbol,
        text=" ".join(source.line(line).split()),
    )


def _unparsable(shown: str, text: str, error: Exception) -> Finding:
    from estimator2strategy.legacy import python2

    line = (getattr(error, "lineno", None) or 1) if isinstance(error, SyntaxError) else 1
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    what = python2.construct(error, written)
    rule = rules()[PYTHON_2 if what else UNPARSABLE]
    if what:
        message = f"this is Python 2: {what}; nothing else in the file is checked"
    elif isinstance(error, (RecursionError, MemoryError)):
        message = "the file is nested too deeply to be read; nothing in it is checked"
    else:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        message = f"the file cannot be parsed ({said}); nothing in it is checked"
    return Finding(
        path=shown,
        line=line,
        column=max(getattr(error, "offset", 1) or 1, 1),
        rule=rule.id,
        severity=rule.severity,
        message=message,
        fix=python2.advice(error) if what else rule.fix,
        text=" ".join(written.split()),
    )


def _each_once(new: Iterable[Finding], findings: Iterable[Finding]) -> list[Finding]:
    """`new` without those of a rule about source where the graph showed the same, at its line."""
    seen = {(finding.rule, finding.path, finding.line) for finding in findings}
    return [f for f in new if (_SEEN_IN_GRAPHS.get(f.rule), f.path, f.line) not in seen]


def _silenced_by_comments(
    findings: Iterable[Finding], settings: Settings
) -> tuple[list[Finding], int]:
    """The findings of a level that no comment in their file silences, and the number silenced."""
    comments: dict[str, set[tuple[int, str]]] = {}
    kept, silenced = [], 0
    for finding in findings:
        if finding.path not in comments:
            comments[finding.path] = _silencing(finding.path, settings)
        if (finding.line, finding.rule) in comments[finding.path]:
            silenced += 1
        else:
            kept.append(finding)
    return kept, silenced


def _silencing(path: str, settings: Settings) -> set[tuple[int, str]]:
    """(line, rule) of what comments silence in a file."""
    try:
        comments = suppressions(parse(path, path, read_source(settings.root / path)))
    except (OSError, *UNREADABLE):
        return set()
    return {(comment.applies_to, rule) for comment in comments for rule in comment.rules}


def _stale(
    unused: accepted_findings.Baseline, checked: set[str], looked_for: set[str], settings: Settings
) -> Iterator[Finding]:
    rule = rules()[STALE]
    for rule_id, path, symbol, text in sorted(unused):
        # An entry of a file that was not read may still be true.
        exists = (settings.root / path).exists()
        if (exists and path not in checked) or rule_id not in settings.chosen() & looked_for:
            continue
        yield Finding(
            path=settings.baseline,
            line=1,
            column=1,
            rule=STALE,
            severity=rule.severity,
            message=f"{rule_id} in {path} ({text or 'whole file'}) is not found any more",
            fix=rule.fix,
            symbol=symbol,
            text=f"{rule_id} {path} {text}",
        )


def _weighed(findings: Iterable[Finding], settings: Settings) -> Iterator[Finding]:
    for finding in findings:
        severity = settings.severity.get(finding.rule)
        yield dataclasses.replace(finding, severity=severity) if severity else finding
