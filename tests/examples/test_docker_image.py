"""The Dockerfile of examples/docker copies the files that the wheel is made of."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("tomllib is in the standard library since Python 3.11", allow_module_level=True)
import tomllib

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "examples/docker/Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def lines_of(instruction: str) -> list[list[str]]:
    """The words of each line with an instruction."""
    return [line.split() for line in re.findall(rf"^{instruction} (.*)", DOCKERFILE, re.MULTILINE)]


def copied_to(folder: Path) -> None:
    """Copies as Docker does, with `folder` in the place of the image's root."""
    for *sources, target in lines_of("COPY"):
        place = folder / target.lstrip("/")
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("*.pyc"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)


def files_of_the_wheel() -> Iterator[str]:
    """The files and folders that pyproject.toml names for a build, relative to the root."""
    yield "pyproject.toml"
    yield PROJECT["project"]["readme"]
    yield from PROJECT["project"]["license-files"]
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    yield from wheel["packages"]
    yield from wheel["force-include"]


def test_image_has_all_files_that_the_wheel_is_made_of(tmp_path):
    copied_to(tmp_path)
    for name in files_of_the_wheel():
        original, copy = ROOT / name, tmp_path / "src" / name
        assert copy.exists(), name
        pages = [path.relative_to(original) for path in original.rglob("*.md")]
        assert [page for page in pages if not (copy / page).exists()] == []


def test_image_starts_a_command_of_the_package():
    ((*words,),) = lines_of("ENTRYPOINT")
    command = json.loads(" ".join(words))
    assert command[0] in PROJECT["project"]["scripts"]
    assert command[1:] == ["run"]
