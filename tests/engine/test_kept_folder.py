"""The folder for what later processes need not make again."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from estimator2strategy.engine import kept_folder


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("E2S_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_it_is_in_the_users_folder_for_caches_or_where_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.setenv("E2S_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_folder.root() == tmp_path / "estimator2strategy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept_folder.root() == tmp_path / ".cache/estimator2strategy"
    monkeypatch.setenv("E2S_CACHE", "~/mine")
    assert kept_folder.root() == tmp_path / "mine"
    monkeypatch.setenv("E2S_CACHE", "off")
    assert kept_folder.root() is None
    assert kept_folder.folder_of("jax") is None


def test_it_and_its_files_are_the_owners_alone(root):
    folder = kept_folder.folder_of("jax")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert kept_folder.write(folder / "a", b"1")
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_nothing_is_kept_where_others_may_write(root, caplog, mode):
    folder = kept_folder.folder_of("jax")
    folder.chmod(mode)
    kept_folder._warn_of_others.cache_clear()
    with caplog.at_level(logging.WARNING, "tensorflow"):
        assert kept_folder.folder_of("jax") is None
        assert kept_folder.folder_of("jax") is None
    assert len(caplog.records) == 1
    assert "others may write" in caplog.text


def test_nothing_is_kept_in_a_folder_of_another_user(root, monkeypatch):
    kept_folder.folder_of("jax")
    user = os.getuid()
    monkeypatch.setattr(kept_folder.os, "getuid", lambda: user + 1)
    assert kept_folder.folder_of("jax") is None


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(root, monkeypatch):
    folder = kept_folder.folder_of("jax")
    kept_folder.write(folder / "a", b"old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_folder.os, "replace", full)
    assert not kept_folder.write(folder / "a", b"new")
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("a", b"old")]


def test_what_was_not_used_for_longest_is_dropped_first(root):
    folder = kept_folder.folder_of("jax")
    for number, name in enumerate("abc"):
        kept_folder.write(folder / name, b"0123456789")
        os.utime(folder / name, (number, number))
    kept_folder.note_use(folder / "a")
    kept_folder.drop_oldest(folder, 20)
    assert sorted(path.name for path in folder.iterdir()) == ["a", "c"]


def test_a_file_that_another_process_deletes_meanwhile_is_no_error(root, monkeypatch):
    folder = kept_folder.folder_of("jax")
    kept_folder.write(folder / "a", b"1")
    (folder / "gone").symlink_to(folder / "nowhere")
    assert [kept.path.name for kept in kept_folder.files(folder)] == ["a"]
    assert kept_folder.files(Path(folder, "none")) == []
