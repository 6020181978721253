"""An archive that would become much larger than it is, is refused by what it says of itself."""

from __future__ import annotations

import zipfile

import pytest

from estimator2strategy.tools.untrusted import archives


def _archive(path, size):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(size))
    return zipfile.ZipFile(path)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_HARMLESS", 1 << 20)
    path = str(tmp_path / "x.zip")
    with _archive(path, 4 << 20) as archive, pytest.raises(archives.BombError, match="bytes"):
        archives.check_is_no_bomb(archive, path)


def test_a_small_archive_is_none(tmp_path):
    path = str(tmp_path / "x.zip")
    with _archive(path, 4 << 20) as archive:
        archives.check_is_no_bomb(archive, path)
