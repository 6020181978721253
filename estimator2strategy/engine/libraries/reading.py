"""Reads the files of an installed package: does it need names that TensorFlow has dropped?

    read("some_library", Path("site-packages/some_library")).need    # Need.NEEDS_OLD

Nothing of the package is run. A statement counts as unconditional if it begins in the first column:
what a package imports in a `try`, an `if` or a function it may be able to do without.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# A package of more files has not been written for Estimators alone, and takes long to read.
_MOST_FILES = 3000
_TESTS = re.compile(r"tests?|testing|examples?|.*_tests?\.py|test_.*\.py|conftest\.py")


class Need(enum.Enum):
    """The relation of a package to the TensorFlow that is installed."""

    RUNS = "runs on the TensorFlow that is installed"
    NEEDS_OLD = "needs names that TensorFlow has dropped"
    UNDECIDED = "some of its files need names that TensorFlow has dropped"


@dataclasses.dataclass(frozen=True)
class Reading:
    """The outcome of reading a package.

    Attributes:
        need: That of the package as a whole.
        world: "1.15" if it was written for TF 1.x alone, "2.15" if it knows TF 2.
        because: The file and line that decided; "" where none did.
    """

    need: Need
    world: str = ""
    because: str = ""


# Names of `tensorflow` that TF 1.15 alone had; only those that no other object would be asked for.
_OF_TF1 = (
    *("AUTO_REUSE", "ConfigProto", "GraphKeys", "InteractiveSession", "Session"),
    *("add_to_collection", "app", "clip_by_average_norm", "contrib", "flags", "get_collection"),
    *("get_default_graph", "get_variable", "gfile", "global_variables"),
    *("global_variables_initializer", "layers", "logging", "placeholder"),
    *("placeholder_with_default", "random_normal", "random_uniform", "reset_default_graph"),
    *("to_float", "to_int32", "trainable_variables", "truncated_normal"),
    *("truncated_normal_initializer", "variable_scope"),
    r"train\.(?:\w+Optimizer|Saver|SessionRunHook|get_global_step|get_or_create_global_step)",
)

_GONE = rb"contrib|estimator"
_GONE_IMPORT = re.compile(
    rb"^(?:from\s+tensorflow(?:\.contrib|\.estimator|\.python\.estimator|_estimator)\b"
    rb"|import\s+tensorflow(?:\.contrib|\.python\.estimator|_estimator)\b"
    rb"|from\s+tensorflow(?:\.compat\.v[12])?\s+import\s+(?:\([^)]*|[^\n(]*)\b(?:"
    + _GONE
    + rb")\b)",
    re.M,
)
_TF1_IMPORT = re.compile(
    rb"^from\s+tensorflow\s+import\s+(?:\([^)]*|[^\n(]*)\b(?:"
    + "|".join(_OF_TF1).encode()
    + rb")\b",
    re.M,
)
_CONTRIB_IMPORT = re.compile(rb"^([ \t]*)(?:from|import)\s+tensorflow\.contrib\b", re.M)
_PRIVATE_IMPORT = re.compile(rb"^(?:from|import)\s+(tensorflow\.python\.[\w.]+)", re.M)
_ALIAS = re.compile(
    rb"import tensorflow(?P<dots>\.compat\.v[12])?(?:[ \t]+as[ \t]+(?P<as>\w+))?[ \t]*(?:#.*)?$",
    re.M,
)
_COMPAT_ALIAS = re.compile(rb"from tensorflow\.compat import v[12] as (\w+)")
_TEXT = re.compile(rb'("""|\'\'\')[\s\S]*?\1')
_IMPORT = re.compile(
    rb"^(?:from\s+(?P<of>[.\w]+)\s+import\s+(?P<names>\([^)]*\)|[^\n#]*)"
    rb"|import\s+(?P<plain>[\w., ]+))",
    re.M,
)


@dataclasses.dataclass
class _File:
    """The facts of one file that names TensorFlow.

    Attributes:
        first: The line that fails when the file is imported; 0 if none does.
        uses: Uses of names that TensorFlow has dropped, anywhere in it.
        of_tf1: Those of TF 1.x alone among them.
        of_both: Uses of `tf.compat.v1`, by which a library serves TF 1.15 and TF 2.
        is_tf1: Importing it needs `tf.contrib`, which TF 2 never had.
    """

    first: int = 0
    uses: int = 0
    of_tf1: int = 0
    of_both: int = 0
    is_tf1: bool = False


def read(name: str, path: Path) -> Reading:
    """Reads a package's folder, or the file of a module."""
    files = _files_of(path)
    if files is None:
        return Reading(Need.UNDECIDED)
    facts = {}
    for file in files:
        data = file.read_bytes()
        if b"tensorflow" in data:
            facts[file] = _facts(data)
    needing = {file: fact for file, fact in facts.items() if fact.first or fact.uses}
    if not needing:
        return Reading(Need.RUNS)
    world = _world(facts.values())
    reached = _reached(name, path) if any(fact.first for fact in needing.values()) else ()
    for file in reached:
        if file in needing and needing[file].first:
            return Reading(Need.NEEDS_OLD, world, f"{file}:{needing[file].first}")
    if len(needing) * 2 >= len(facts) and any(fact.of_tf1 for fact in needing.values()):
        file = max(needing, key=lambda file: needing[file].uses)
        return Reading(Need.NEEDS_OLD, world, str(file))
    return Reading(Need.UNDECIDED, world, str(next(iter(needing))))


def _files_of(path: Path) -> list[Path] | None:
    """The Python files of a package but its tests; None if they are too many to read."""
    if path.is_file():
        return [path]
    files: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = [f for f in folders if not _TESTS.fullmatch(f) and f != "__pycache__"]
        files += [Path(folder, n) for n in names if n.endswith(".py") and not _TESTS.fullmatch(n)]
        if len(files) > _MOST_FILES:
            return None
    return files


def _facts(data: bytes) -> _File:
    """Reads one file; its texts only where the names of a docstring could be taken for code."""
    aliases = _aliases(data)
    is_suspect = any(word in data for word in (b"estimator", b"contrib", b"tensorflow.python."))
    plain = [alias for alias, is_plain in aliases.items() if is_plain]
    if not (is_suspect or _TF1_IMPORT.search(data)) and not any(
        _of_tf1(alias).search(data) for alias in plain
    ):
        return _File(of_both=_says_both(data, aliases))
    text = _TEXT.sub(lambda match: b"\n" * match[0].count(b"\n") + b'""', data)
    first = [match.start() for match in _GONE_IMPORT.finditer(text)]
    first += [m.start() for m in _PRIVATE_IMPORT.finditer(text) if _is_gone(m[1].decode())]
    of_tf1 = [match.start() for match in _TF1_IMPORT.finditer(text)]
    first += of_tf1
    indents = _CONTRIB_IMPORT.findall(text)
    fact = _File(
        uses=len(first) + len(indents),
        of_tf1=len(of_tf1) + len(indents),
        of_both=_says_both(text, aliases),
        is_tf1=b"" in indents,
    )
    for alias, is_plain in aliases.items():
        fact.uses += len(_of_estimator(alias).findall(text))
        first += _unconditional(alias, text, is_plain)
        if is_plain:
            uses = len(_of_tf1(alias).findall(text))
            fact.of_tf1 += uses
            fact.uses += uses
    if first:
        fact.first = text.count(b"\n", 0, min(first)) + 1
    return fact


def _aliases(text: bytes) -> dict[bytes, bool]:
    """The names of `tensorflow` in a file; True for those that are not `tensorflow.compat`."""
    known: dict[bytes, bool] = {}
    for match in _ALIAS.finditer(text):
        alias = match["as"] or b"tensorflow" + (match["dots"] or b"")
        # A file that tries both has what it needs.
        known[alias] = not match["dots"] and known.get(alias, True)
    return known | {match[1]: False for match in _COMPAT_ALIAS.finditer(text)}


def _says_both(text: bytes, aliases: Mapping[bytes, bool]) -> int:
    """Counts the uses of `tf.compat.v1`, by which a file serves TF 1.15 and TF 2."""
    return sum(text.count(a + b".compat.v1") if plain else 1 for a, plain in aliases.items())


@functools.cache
def _of_tf1(alias: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(alias) + rb"\.(?:" + "|".join(_OF_TF1).encode() + rb")\b")


@functools.cache
def _of_estimator(alias: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(alias) + rb"\.(?:compat\.v[12]\.)?estimator\b")


_STATEMENT = re.compile(rb"(?:class\b|@|[A-Za-z_]\w*\s*=(?!\s*lambda))")


def _unconditional(alias: bytes, text: bytes, is_plain: bool) -> list[int]:
    """Places of names that are gone in statements that begin in the first column."""
    gone = re.compile(re.escape(alias) + rb"\.(?:contrib\b|(?:compat\.v[12]\.)?estimator\b)")
    places = [gone, _of_tf1(alias)] if is_plain else [gone]
    starts = (
        text.rfind(b"\n", 0, match.start()) + 1
        for place in places
        for match in place.finditer(text)
    )
    return [start for start in starts if _STATEMENT.match(text, start)]


def _world(facts: Iterable[_File]) -> str:
    """TF 1.15 if the package knows nothing of TF 2, and TF 2.15 otherwise."""
    facts = list(facts)
    of_tf1 = sum(fact.of_tf1 for fact in facts)
    is_tf1 = of_tf1 and of_tf1 >= sum(fact.of_both for fact in facts)
    return "1.15" if is_tf1 or any(fact.is_tf1 for fact in facts) else "2.15"


@functools.cache
def _is_gone(module: str) -> bool:
    """True if the installed TensorFlow has no such file; TensorFlow is not imported."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        return False
    path = Path(spec.submodule_search_locations[0], *module.split(".")[1:])
    if (
        path.is_dir()
        or path.with_suffix(".py").exists()
        or any(path.parent.glob(f"{path.name}.*so"))
    ):
        return False
    # `import tensorflow.python.framework.ops` names a module, `from ...errors import X` one too;
    # where even the folder is gone, nothing of its kind is left.
    return not path.parent.with_suffix(".py").exists()


def _reached(name: str, path: Path) -> list[Path]:
    """The files that `import name` runs in any case, in their order."""
    start = path / "__init__.py" if path.is_dir() else path
    seen = {start: None}  # in their order
    queue = collections.deque([start])
    while queue:
        file = queue.popleft()
        if not file.exists():
            continue
        for found in _imported(file, name, path):
            if found not in seen:
                seen[found] = None
                queue.append(found)
    return list(seen)


def _imported(file: Path, name: str, root: Path) -> Iterator[Path]:
    """The files of the package that a file of it imports unconditionally."""
    text = _TEXT.sub(b'""', file.read_bytes())
    for match in _IMPORT.finditer(text):
        if match["plain"]:
            modules = [part.split(b" as ")[0].strip() for part in match["plain"].split(b",")]
            for module in modules:
                yield from _files_at(module.decode(), (), file, name, root)
        else:
            names = re.findall(rb"\w+", re.sub(rb"\s+as\s+\w+", b"", match["names"]))
            yield from _files_at(
                match["of"].decode(), [n.decode() for n in names], file, name, root
            )


def _files_at(
    module: str, names: Iterable[str], file: Path, name: str, root: Path
) -> Iterator[Path]:
    dots = len(module) - len(module.lstrip("."))
    parts = [part for part in module.lstrip(".").split(".") if part]
    if dots:
        base = file.parent
        for _ in range(dots - 1):
            base = base.parent
    elif parts and parts[0] == name:
        base, parts = root, parts[1:]
    else:
        return
    for part in parts:
        yield base / "__init__.py"
        base = base / part
    for candidate in (base, *(base / n for n in names)):
        for at in (candidate.with_suffix(".py"), candidate / "__init__.py"):
            if at.exists():
                yield at
