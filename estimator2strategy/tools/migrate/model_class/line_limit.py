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


@functools.cache
def _of_folder(folder):
    for above in (folder, *folder.parents):
        for read, name in ((_toml, "ruff.toml"), (_toml, "pyproject.toml"), (_flake8, "setup.cfg")):
            file = above / name
            found = read(file) if file.is_file() else None
            if found:
                return found
        if (above / ".git").exists():
            break
    return DEFAULT


def _toml(file):
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
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
