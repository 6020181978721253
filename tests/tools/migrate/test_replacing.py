"""`e2s migrate --write` changes all files of a run, or none, and says why."""

from __future__ import annotations

import errno
import itertools
import os
import time

import pytest

from estimator2strategy.tools.migrate import apply, files, migrate_command
from estimator2strategy.tools.migrate.files import RefusedError, replace_all

LEGACY = "import tensorflow as tf\nx = tf.to_float(1)\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "tree"
    (folder / "b").mkdir(parents=True)
    for name in ("a.py", "b/b.py", "c.py"):
        (folder / name).write_text(LEGACY)
    monkeypatch.chdir(folder)
    return folder


def migrate(*paths):
    arguments = ["--stage", "2", "--tier", "review", "--write", "--allow-dirty"]
    return migrate_command.main([*(paths or (".",)), *arguments])


def changed(folder):
    paths = sorted(folder.rglob("*.py"))
    return [path.name for path in paths if path.read_text() != LEGACY]


def left(folder):
    return [path.name for path in folder.rglob("*") if path.name.startswith(".e2s_")]


def test_all_files_are_changed_and_keep_their_modes(tree):
    (tree / "a.py").chmod(0o755)
    assert migrate() == 0
    assert changed(tree) == ["a.py", "b.py", "c.py"]
    assert (tree / "a.py").stat().st_mode & 0o777 == 0o755
    assert left(tree) == []


def test_a_file_that_is_read_only_keeps_all_as_they_are(tree, capsys):
    (tree / "c.py").chmod(0o444)
    assert migrate() == 2
    assert changed(tree) == left(tree) == []
    assert "c.py may not be written; nothing was written" in capsys.readouterr().err


def test_a_full_disk_keeps_all_as_they_are(tree, capsys, monkeypatch):
    calls = []

    def full(*_):
        calls.append(1)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert migrate() == 2
    assert changed(tree) == left(tree) == []
    assert "No space left on device; nothing was written" in capsys.readouterr().err


def test_files_before_one_that_cannot_be_exchanged_get_their_texts_back(tree, capsys, monkeypatch):
    replace, calls = os.replace, []

    def fails_once(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.EROFS, "Read-only file system")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", fails_once)
    assert migrate() == 2
    assert changed(tree) == left(tree) == []
    assert "Read-only file system; nothing was written" in capsys.readouterr().err


def test_an_interrupt_between_two_files_takes_back_the_first(tree, monkeypatch):
    replace, calls = os.replace, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(*arguments)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        migrate()
    assert changed(tree) == left(tree) == []


def test_a_file_that_somebody_else_has_changed_keeps_all_as_they_are(tree):
    read = [files.read(tree / name) for name in ("a.py", "c.py")]
    (tree / "c.py").write_text("theirs\n")
    with pytest.raises(RefusedError, match=r"c.py was changed by somebody else"):
        replace_all((file, "ours\n") for file in read)
    assert (tree / "a.py").read_text() == LEGACY
    assert (tree / "c.py").read_text() == "theirs\n"


def test_a_file_outside_of_the_tree_is_left_alone(tree, capsys):
    (tree.parent / "outside.py").write_text(LEGACY)
    (tree / "a.py").unlink()
    (tree / "a.py").symlink_to("../outside.py")
    assert migrate() == 0
    assert (tree.parent / "outside.py").read_text() == LEGACY
    assert "a.py: a link to a file outside" in capsys.readouterr().out


def test_a_file_that_two_names_lead_to_is_changed_once(tree):
    (tree / "0.py").symlink_to("c.py")
    assert migrate() == 0
    assert (tree / "0.py").is_symlink()
    assert (tree / "c.py").read_text() != LEGACY


def test_an_encoding_that_cannot_be_written_again_is_left_alone(tree, capsys):
    text = f"# coding: unicode_escape\n{LEGACY}".encode()
    (tree / "a.py").write_bytes(text)
    assert migrate() == 1
    assert (tree / "a.py").read_bytes() == text
    assert "unicode_escape would not bring back" in capsys.readouterr().out


def test_a_file_whose_changes_take_too_long_is_left_alone(tree, capsys, monkeypatch):
    monkeypatch.setattr(apply, "_SECONDS", -1)
    assert migrate() == 1
    assert changed(tree) == []
    assert "its changes take longer than -1 s" in capsys.readouterr().out


def test_time_in_which_the_machine_sleeps_does_not_count(tree, monkeypatch):
    naps = itertools.count(step=3600)
    monkeypatch.setattr(time, "monotonic", lambda: next(naps))
    assert migrate() == 0
    assert changed(tree) == ["a.py", "b.py", "c.py"]


def test_a_diff_counts_lines_as_git_does(tree, capsys):
    (tree / "a.py").write_bytes(b"import tensorflow as tf\n\x0cx = tf.to_float(1)\n")
    migrate_command.main(["a.py", "--stage", "2", "--tier", "review"])
    out = capsys.readouterr().out
    assert "No newline" not in out
    assert "\n-\\x0cx = tf.to_float(1)\n" in out
