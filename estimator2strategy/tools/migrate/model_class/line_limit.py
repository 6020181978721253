"""The longest line of a project, as its formatter or linter has it."""

import configparser
import functools
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT = 88  # black's


def of(path):
    """The limit for a file, from the settings in the folders above it."""
    return _of_folder(Path(path).resolve().parent)


def formatter(path):
    """The formatter that a file's project has settings for: "ruff" or "black", or None."""
    return _formatter_of(Path(path).resolve().parent)


@functools.cache
def _formatter_of(folder):
    for above in _project(folder):
        if any((above / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
            return "ruff"
        tools = _settings(above / "pyproject.toml").get("tool", {})
        found = next((name for name in ("ruff", "black") if name in tools), None)
        if found:
            return found
    return None


def folders(path):
    """The folders of a file, from the one that it is in up to that of the repository."""
    return _project(Path(path).resolve().parent)


def _project(folder):
    """The folders from this one up to that of the repository."""
    for above in (folder, *folder.parents):
        yield above
        if (above / ".git").exists():
            return


@functools.cache
def _of_folder(folder):
    for above in _project(folder):
        for read, name in ((_toml, "ruff.toml"), (_toml, "pyproject.toml"), (_flake8, "setup.cfg")):
            file = above / name
            found = read(file) if file.is_file() else None
            if found:
                return found
    return DEFAULT


def _settings(file):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _toml(file):
    settings = _settings(file)
    tools = settings.get("tool", {})
    places = (settings, tools.get("ruff", {}), tools.get("black", {}))
    return next((place["line-length"] for place in places if "line-length" in place), None)


def _flake8(file):
    settings = configparser.ConfigParser()
    try:
        settings.read(file, encoding="utf-8")
        return settings.getint("flake8", "max-line-length", fallback=None)
    except (configparser.Error, ValueError):
        return None
