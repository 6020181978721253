"""The settings of a check, from `[tool.estimator2strategy.check]` and the command line."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import matching, redirected, rules
from estimator2strategy.tools.untrusted.regular_files import read_bytes

_TABLE = "[tool.estimator2strategy.check]"


class SettingsError(Exception):
    """The settings cannot be read, or contradict each other; the message names the place."""


class Target(enum.Enum):
    """The TensorFlow that the program is to run on."""

    FACADE = "facade"  # this package: `e2s run`, or `import estimator2strategy.tf1 as tf`
    TF2 = "tf2"  # the `tensorflow` that is installed, 2.16 or newer


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a check.

    Attributes:
        target: The TensorFlow that the program is to run on.
        fail_on: The lowest severity that makes the exit code 1; None for none.
        select: Rules to check; ids, beginnings of ids, or names. Empty for all.
        ignore: Rules to leave out.
        exclude: Patterns of paths to leave out, relative to the root.
        severity: Rule -> the severity of its findings.
        baseline: The baseline file, relative to the root.
        root: The folder that paths are relative to.
    """

    target: Target = Target.FACADE
    fail_on: Severity | None = Severity.WARNING
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = dataclasses.field(default_factory=dict)
    baseline: str = "e2s-baseline.json"
    root: Path = dataclasses.field(default_factory=Path.cwd)

    def chosen(self) -> set[str]:
        """The ids of the rules to check."""
        chosen = set(matching(self.select)) if self.select else set(rules())
        return chosen - set(matching(self.ignore))


def parse_severity(text: str) -> Severity | None:
    """`Severity` by its word; None for "never"."""
    if text == "never":
        return None
    try:
        return Severity[text.upper()]
    except KeyError:
        raise SettingsError(f"{text!r} is none of error, warning, info, never") from None


def read(root: Path) -> Settings:
    """The settings of the `pyproject.toml` in `root`, if there is one.

    Raises:
        SettingsError: It cannot be read, or has a key or a value that is not known.
    """
    path = root / "pyproject.toml"
    if not path.is_file():
        return Settings(root=root)
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document = tomllib.loads(read_bytes(path).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: {error}") from error
    table: Any = document
    for name in ("tool", "estimator2strategy", "check"):
        table = table.get(name, {})
        if not isinstance(table, Mapping):
            raise SettingsError(f"{path}: {name} is no table")
    return with_changes(Settings(root=root), table, where=f"{path}, {_TABLE}")


def with_changes(settings: Settings, table: Mapping[str, Any], where: str) -> Settings:
    """`settings` changed by the keys of a table, which are written with `-` or `_`.

    Raises:
        SettingsError: A key or value is not known; the message says which are.
    """
    changes: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in _READERS:
            known = ", ".join(sorted(n.replace("_", "-") for n in _READERS))
            raise SettingsError(f"{where}: there is no {key!r}; there are {known}")
        try:
            changes[name] = _READERS[name](value)
        except SettingsError as error:
            raise SettingsError(f"{where}: {key}: {error}") from error
    return dataclasses.replace(settings, **changes)


def _target(value: Any) -> Target:
    try:
        return Target(value)
    except ValueError:
        raise SettingsError(f"{value!r} is none of facade, tf2") from None


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise SettingsError(f"{value!r} is no list of strings")
    return tuple(value)


def _selectors(value: Any) -> tuple[str, ...]:
    for selector in _strings(value):
        if not any(matching([selector])) and not redirected(selector):
            raise SettingsError(f"no rule is {selector!r}; `e2s explain` lists them")
    return tuple(value)


def _severities(value: Any) -> dict[str, Severity]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{value!r} is no table of rule = severity")
    found = {}
    for selector, word in value.items():
        severity = parse_severity(word)
        if severity is None:
            raise SettingsError(f"{selector}: to leave a rule out, put it into `ignore`")
        found.update(dict.fromkeys(matching(_selectors([selector])), severity))
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{value!r} is no string")
    return value


_READERS = {
    "target": _target,
    "fail_on": lambda value: parse_severity(_text(value)),
    "select": _selectors,
    "ignore": _selectors,
    "exclude": _strings,
    "severity": _severities,
    "baseline": _text,
}
