"""Applies codemods to the text of a file, until nothing is left for them to change.

Example:

    migrated = apply(text, chosen, path="train.py", tier=SafetyTier.SAFE)
    migrated.text, migrated.counts

A codemod takes its own marks away before it looks at a file, and sets those that are still due.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import io
import re
import time
from collections.abc import Callable, Iterable, Sequence

from estimator2strategy.tools.migrate.codemod import Change, Codemod, SafetyTier, Todo
from estimator2strategy.tools.migrate.module import Facts, Module, with_imports
from estimator2strategy.tools.migrate.program import ProgramFiles, Texts
from estimator2strategy.tools.reader.python_files import comments

MARK = re.compile(r"^\s*# TODO\(e2s\): (?P<codemod>[a-z0-9-]+): (?P<message>.*?)\s*$")


def without_marks(text: str, codemod: str) -> str:
    """The text without the marks of a codemod."""
    if f"# TODO(e2s): {codemod}: " not in text:
        return text
    lines = list(io.StringIO(text, newline=""))
    for number in comments(text):
        match = MARK.match(lines[number - 1])
        if match and match["codemod"] == codemod:
            lines[number - 1] = ""
    return "".join(lines)


def with_marks(module: Module, codemod: str, todos: Iterable[Todo]) -> str:
    """The module's text with a mark above the statement of each of these."""
    lines = list(module.lines)
    newline = "\r\n" if "\r\n" in module.text else "\n"
    marks: dict[int, list[str]] = {}
    for todo in todos:
        number = _first_line(module, todo.node)
        line = lines[number - 1]
        indent = line[: len(line) - len(line.lstrip())]
        mark = f"{indent}# TODO(e2s): {codemod}: {todo.message}{newline}"
        if mark not in (*marks.get(number, ()), *lines[: number - 1][-1:]):
            marks.setdefault(number, []).append(mark)
    for number, written in marks.items():
        lines[number - 1] = "".join([*written, lines[number - 1]])
    return "".join(lines)


def marks(text: str) -> list[tuple[int, str, str]]:
    """(line, codemod, message) of each mark."""
    if "# TODO(e2s): " not in text:
        return []
    lines = list(io.StringIO(text, newline=""))
    places = []
    for number in sorted(comments(text)):
        match = MARK.match(lines[number - 1])
        if match:
            places.append((number, match["codemod"], match["message"]))
    return places


def _first_line(module: Module, node: ast.AST) -> int:
    """The first line of the statement around a node that begins where its line begins."""
    statement = module.statement(node)
    while True:
        decorators = getattr(statement, "decorator_list", None) or []
        number: int = min([statement.lineno, *(d.lineno for d in decorators)])
        column = statement.col_offset
        before = module.lines[number - 1].encode()[:column] if not decorators else b""
        outer = getattr(statement, "parent", None)
        if not before.strip() or outer is None or isinstance(outer, ast.Module):
            return number
        statement = module.statement(outer)


# How often a codemod may find something in what it made itself: calls in calls in calls.
_ROUNDS = 100
# The seconds of computing for one file: a machine that sleeps takes nothing from them.
_SECONDS = 60
# Codemods that write more than a line or two.
_WRITES_ANEW = ("model-fn-to-keras",)


class TooSlowError(Exception):
    """A file is left alone, because its changes would take too long."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A place that is left to the user.

    Attributes:
        line: The mark's own, in the file as it becomes.
    """

    line: int
    codemod: str
    message: str


@dataclasses.dataclass(frozen=True)
class MigratedFile:
    """A file after migration.

    Attributes:
        before, text: The file as it was, and as it becomes.
        counts: The number of changes of each codemod, by its name and their tier.
        withheld: The number of its changes in a tier that was not asked for.
    """

    before: str
    text: str
    counts: collections.Counter[tuple[str, SafetyTier]] = dataclasses.field(
        default_factory=collections.Counter
    )
    withheld: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    @functools.cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The places left to the user."""
        return tuple(Mark(*mark) for mark in marks(self.text))

    @property
    def changed(self) -> bool:
        return self.text != self.before

    def then(self, after: MigratedFile) -> MigratedFile:
        """This file after further codemods, which began with its text."""
        return MigratedFile(
            self.before,
            after.text,
            self.counts + after.counts,
            self.withheld + after.withheld,
        )

    def finished(self, finish: Callable[[str, str, str], str], path: str) -> MigratedFile:
        """This file in shape, if it has become another program.

        Args:
            finish: Puts a text into shape: of it, the text before and the path.
            path: The path of the file.
        """
        if not self.changed or not any(name in _WRITES_ANEW for name, _ in self.counts):
            return self
        text = finish(self.text, self.before, path)
        return dataclasses.replace(self, text=text)


def apply(
    text: str,
    chosen: Iterable[Codemod],
    *,
    path: str = "program.py",
    tier: SafetyTier = SafetyTier.REVIEW,
    facts: Facts = Facts(),  # noqa: B008
) -> MigratedFile:
    """Applies codemods to a file's text, one after the other.

    Args:
        text: The text.
        chosen: The codemods.
        path: The path of the file.
        tier: The changes that are wanted.
        facts: Facts about its program.

    Raises:
        SyntaxError, ValueError, RecursionError: The file cannot be parsed.
        TooSlowError: It takes too long.
        RuntimeError: A codemod made something that cannot be parsed, or never ends.
    """
    migrated = MigratedFile(text, text)
    until = time.process_time() + _SECONDS
    # Most codemods find nothing in most files: what one has parsed serves the next.
    parsed = functools.lru_cache(maxsize=1)(lambda text: Module.parse(path, text, facts))
    for codemod in chosen:
        text = migrated.text
        if not codemod.may_find(text):
            continue
        if codemod.is_of_program:
            texts = Texts([path], {path: without_marks(text, codemod.name)}.__getitem__)
            changed = apply_together(texts, path, codemod, tier=tier, facts=facts)
            migrated = migrated.then(changed[path])
        else:
            migrated = migrated.then(_apply(text, codemod, parsed, tier, until))
    return migrated


def _apply(
    text: str, codemod: Codemod, parsed: Callable[[str], Module], tier: SafetyTier, until: float
) -> MigratedFile:
    before = text
    text = without_marks(text, codemod.name)
    counts: collections.Counter[tuple[str, SafetyTier]] = collections.Counter()
    withheld: collections.Counter[str] = collections.Counter()
    for _ in range(_ROUNDS):
        _check_time(until)
        module = parsed(text)
        cases = _Found(codemod, module, tier)
        if not cases.wanted:
            withheld[codemod.name] += cases.withheld
            text = with_marks(module, codemod.name, cases.todos)
            return MigratedFile(before, text, counts, withheld)
        innermost = _innermost(cases.wanted)
        counts += _counted(innermost, codemod)
        text = _made(module, innermost, codemod)
    raise RuntimeError(f"{codemod.name} finds no end")


def apply_together(
    texts: Texts,
    path: str,
    codemod: Codemod,
    *,
    tier: SafetyTier = SafetyTier.REVIEW,
    facts: Facts = Facts(),  # noqa: B008
) -> dict[str, MigratedFile]:
    """Applies a codemod to a file, and with it to others of its program.

    Args:
        texts: The files of the program.
        path: The file in which the codemod begins to look.
        codemod, tier, facts: As above.

    Returns:
        Path -> what becomes of it, of all files that are changed or marked.

    Raises:
        SyntaxError, ValueError, RecursionError, TooSlowError, RuntimeError: As above. No file is to
            be changed then.
    """
    until = time.process_time() + _SECONDS
    before = dict(texts.changed)
    files: dict[str, MigratedFile] = {}
    try:
        for _ in range(_ROUNDS):
            _check_time(until)
            program = ProgramFiles(texts, facts)
            cases = _Found(codemod, program.module(path), tier)
            edited = cases.edited(program) if cases.wanted else cases.marked(program)
            for other, migrated in edited.items():
                files[other] = files[other].then(migrated) if other in files else migrated
                texts.changed[other] = migrated.text
            if not cases.wanted:
                return files
    finally:
        texts.changed = before
    raise RuntimeError(f"{codemod.name} finds no end")


def _check_time(until: float) -> None:
    if time.process_time() > until:
        raise TooSlowError(f"its changes take longer than {_SECONDS} s; it stays as it is")


class _Found:
    """The results of a codemod in a file.

    Attributes:
        wanted: The changes of the tiers that are asked for.
        withheld: The number of the others.
        todos: The places that are left to the user.
    """

    def __init__(self, codemod: Codemod, module: Module, tier: SafetyTier):
        self._codemod, self._module = codemod, module
        results = list(codemod.find(module))
        changes = [f for f in results if isinstance(f, Change)]
        self.wanted = [change for change in changes if (change.tier or codemod.tier) <= tier]
        self.withheld = len(changes) - len(self.wanted)
        todos = [f for f in results if isinstance(f, Todo)]
        self.todos = [mark for mark in todos if (mark.tier or codemod.tier) <= tier]

    def edited(self, program: ProgramFiles) -> dict[str, MigratedFile]:
        """The files with the changes that are wanted."""
        by_path: dict[str, list[Change]] = {}
        for change in self.wanted:
            by_path.setdefault(change.path or self._module.source.path, []).append(change)
        texts = {}
        for path, changes in by_path.items():
            module, innermost = program.module(path), _innermost(changes)
            text = _made(module, innermost, self._codemod)
            counts = _counted(innermost, self._codemod)
            texts[path] = MigratedFile(module.text, text, counts)
        return texts

    def marked(self, program: ProgramFiles) -> dict[str, MigratedFile]:
        """The files with marks."""
        by_module = {self._module: list[Todo]()}
        for mark in self.todos:
            by_module.setdefault(program.module_of(mark.node) or self._module, []).append(mark)
        texts = {}
        for module, todos in by_module.items():
            text = with_marks(module, self._codemod.name, todos)
            of_start = {self._codemod.name: self.withheld} if module is self._module else {}
            texts[module.source.path] = MigratedFile(
                module.text, text, withheld=collections.Counter(of_start)
            )
        return texts


def _counted(
    changes: Iterable[Change], codemod: Codemod
) -> collections.Counter[tuple[str, SafetyTier]]:
    return collections.Counter((codemod.name, change.tier or codemod.tier) for change in changes)


def _innermost(changes: Sequence[Change]) -> list[Change]:
    """The changes that contain no other; the next round finds those around them again."""
    first_of = {(change.start, change.end): change for change in reversed(changes)}
    in_order = sorted(first_of.values(), key=lambda change: (change.start, -change.end))
    behind = [*in_order[1:], None]
    kept = {
        change
        for change, follower in zip(in_order, behind, strict=True)
        if follower is None or follower.start >= change.end
    }
    return [change for change in changes if change in kept]


def _made(module: Module, changes: Sequence[Change], codemod: Codemod) -> str:
    """The text of a file with a codemod's changes.

    Raises:
        RuntimeError: It cannot be parsed.
    """
    text = _edited(module, changes)
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise RuntimeError(f"{codemod.name} made line {error.lineno} unreadable") from error
    for done in codemod.settles:
        text = without_marks(text, done)
    return text


def _edited(module: Module, changes: Sequence[Change]) -> str:
    pieces, at = [], 0
    for change in sorted(changes, key=lambda change: change.start):
        by = change.by.replace("\r\n", "\n").replace("\n", module.newline)
        pieces += [module.text[at : change.start], by]
        at = change.end
    needed = [imported for change in changes for imported in change.imports]
    return with_imports("".join([*pieces, module.text[at:]]), needed)
