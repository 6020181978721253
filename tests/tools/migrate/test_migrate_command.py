"""`e2s migrate` on files: what it writes, what it refuses, what it leaves alone."""

from __future__ import annotations

import ast
import dataclasses
import os
import stat
import subprocess

import pytest

from estimator2strategy.__main__ import main
from estimator2strategy.tools.migrate.codemod import codemods
from tests.notebooks import notebook, sources

LEGACY = "import tensorflow as tf\n\nlogits = tf.layers.dense(tf.gfile.Open, 1)\n"
STAGE_2 = "import estimator2strategy.tf1 as tf\n\nlogits = tf.layers.dense(tf.io.gfile.GFile, 1)\n"


def git(folder, *arguments):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A committed program in the current folder."""
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "task.py").write_text(LEGACY)
    git(folder, "init", "-q")
    commit(folder)
    monkeypatch.chdir(folder)
    return folder


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def test_dry_run_shows_a_diff_and_writes_nothing(program, capsys):
    assert main(["migrate", "--stage", "2", "."]) == 1
    shown = capsys.readouterr().out
    assert "--- a/task.py\n+++ b/task.py\n" in shown
    assert "-import tensorflow as tf\n+import estimator2strategy.tf1 as tf\n" in shown
    assert "2 changes in 1 of 1 file: 2 proven safe, 0 to review." in shown
    assert (program / "task.py").read_text() == LEGACY


def test_diff_can_be_applied_by_git(program, capsys):
    main(["migrate", "--stage", "2", "."])
    patch, _, _ = capsys.readouterr().out.partition("\nStage 2")
    (program / "the.patch").write_text(patch)
    git(program, "apply", "the.patch")
    assert (program / "task.py").read_text() == STAGE_2


def test_write_changes_the_file_and_a_second_run_nothing(program, capsys):
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 0
    assert (program / "task.py").read_text() == STAGE_2
    commit(program)
    assert main(["migrate", "--stage", "2", "."]) == 0
    assert "0 changes in 0 of 1 file" in capsys.readouterr().out


def test_one_rule_alone(program):
    assert main(["migrate", "--codemod", "gfile", ".", "--write"]) == 0
    assert (program / "task.py").read_text() == LEGACY.replace("tf.gfile.Open", "tf.io.gfile.GFile")


def test_without_a_choice_the_first_stage_with_changes_is_shown(program, capsys):
    assert main(["migrate", "."]) == 1
    assert "Stage 2: " in capsys.readouterr().out


def test_dirty_tree_is_refused_and_allowed_on_request(program, capsys):
    (program / "notes.txt").write_text("committed\n")
    commit(program)
    (program / "notes.txt").write_text("changed\n")
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    said = capsys.readouterr().err
    assert "notes.txt" in said
    assert "--allow-dirty" in said
    assert (program / "task.py").read_text() == LEGACY
    assert main(["migrate", "--stage", "2", ".", "--write", "--allow-dirty"]) == 0
    assert (program / "task.py").read_text() == STAGE_2


def test_file_that_git_does_not_know_is_refused(program, capsys):
    (program / "new.py").write_text(LEGACY)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    assert "new.py is not in git yet" in capsys.readouterr().err
    assert (program / "task.py").read_text() == LEGACY


def test_folder_outside_git_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "task.py").write_text(LEGACY)
    assert main(["migrate", "--stage", "2", str(tmp_path), "--write"]) == 2
    assert "not in a git repository" in capsys.readouterr().err
    assert (tmp_path / "task.py").read_text() == LEGACY


def test_file_changed_since_the_dry_run_is_refused(program, capsys):
    main(["migrate", "--stage", "2", "."])
    changed = LEGACY + "# more\n"
    (program / "task.py").write_text(changed)
    commit(program)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    assert "task.py has changed since the dry run" in capsys.readouterr().err
    assert (program / "task.py").read_text() == changed
    main(["migrate", "--stage", "2", "."])
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 0


def test_a_dry_run_of_other_changes_is_none_of_these(program, capsys):
    main(["migrate", "--stage", "3", "--tier", "review", "."])
    main(["migrate", "--stage", "1", "."])
    (program / "task.py").write_text(LEGACY + "\nmore = 1\n")
    commit(program)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 0
    assert "dry run" not in capsys.readouterr().err


def test_file_changed_while_it_is_worked_on_is_refused(program, monkeypatch, capsys):
    from estimator2strategy.tools.migrate import files

    def clean_and_changed(changed):
        (program / "task.py").write_text("# somebody else\n")

    monkeypatch.setattr(files, "check_clean", clean_and_changed)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    assert "changed by somebody else" in capsys.readouterr().err
    assert os.listdir(program).count("task.py") == 1
    assert [n for n in os.listdir(program) if n.startswith(".task")] == []
    assert (program / "task.py").read_text() == "# somebody else\n"


def test_mode_byte_order_mark_and_link_stay(program):
    path = program / "task.py"
    path.write_bytes(b"\xef\xbb\xbf" + LEGACY.encode())
    path.chmod(0o755)
    (program / "link.py").symlink_to("task.py")
    commit(program)
    assert main(["migrate", "--stage", "2", "link.py", "--write"]) == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + STAGE_2.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert (program / "link.py").is_symlink()


def test_legacy_encoding_stays(program):
    data = b"# -*- coding: latin-1 -*-\n# gr\xfcn\n" + LEGACY.encode()
    (program / "task.py").write_bytes(data)
    commit(program)
    assert main(["migrate", "--codemod", "gfile", ".", "--write"]) == 0
    assert (program / "task.py").read_bytes() == data.replace(
        b"tf.gfile.Open", b"tf.io.gfile.GFile"
    )


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("two.py", b"print 'x'\n", "two.py:1: this is Python 2: a print statement"),
        ("broken.py", b"def f(:\n", "broken.py:1: "),
        ("null.py", b"x = 1\x00\n", "null.py"),
        ("encoding.py", b"# coding: klingon\n", "encoding.py: its encoding cannot be told"),
        ("bytes.py", b"x = '\xff'\n", "bytes.py: its encoding cannot be told"),
        ("deep.py", b"x = " + b"(" * 500 + b")" * 500 + b"\n", "deep.py"),
    ],
)
def test_unreadable_file_is_reported_and_left_and_the_others_are_done(
    program, capsys, name, data, said
):
    (program / name).write_bytes(data)
    commit(program)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 1
    out = capsys.readouterr().out
    assert "left alone, because they cannot be read" in out
    assert said in out
    assert (program / name).read_bytes() == data
    assert (program / "task.py").read_text() == STAGE_2


def test_star_import_is_marked_and_its_file_not_half_changed(program, capsys):
    (program / "task.py").write_text(f"from tensorflow import *\n{LEGACY}")
    commit(program)
    assert main(["migrate", "--codemod", "imports", ".", "--write"]) == 1
    assert "task.py:1: imports: name what this import is for" in capsys.readouterr().out
    text = (program / "task.py").read_text()
    assert text.startswith("# TODO(e2s): imports: ")
    assert text.endswith(f"from tensorflow import *\n{LEGACY}")


def test_lines_of_marks_are_those_of_the_written_file_before_and_after(program, capsys):
    text = f"{LEGACY}\nx = tf.contrib.cloud.BigtableClient(1)\ny = tf.contrib.nowhere(2)\n"
    (program / "task.py").write_text(text)
    commit(program)
    found = []
    for more in ([], ["--write"]):
        main(["migrate", "--codemod", "contrib", "--codemod", "imports", ".", *more])
        out = capsys.readouterr().out.splitlines()
        found.append([line for line in out if line.startswith("  task.py:")])
    assert found[0] == found[1]
    written = (program / "task.py").read_text().splitlines()
    for line in found[0]:
        number = int(line.split(":")[1])
        assert written[number - 1].startswith("# TODO(e2s): ")
    assert found[0]


def test_name_that_is_made_up_at_run_time_is_reported(program, capsys):
    text = f"{LEGACY}\nfunction = getattr(tf, name)\n"
    (program / "task.py").write_text(text)
    commit(program)
    assert main(["migrate", "--codemod", "gfile", "."]) == 1
    out = capsys.readouterr().out
    assert "task.py:5: which name of tf this is, is decided when it runs" in out


def test_half_migrated_file_is_finished(program):
    half = STAGE_2 + "other = tf.gfile.Exists\n"
    (program / "task.py").write_text(half)
    commit(program)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 0
    assert (program / "task.py").read_text() == STAGE_2 + "other = tf.io.gfile.exists\n"


def test_file_left_alone_where_a_codemod_fails(program, monkeypatch, capsys):
    import dataclasses

    from estimator2strategy.tools.migrate.codemod import codemods

    def fail(module):
        raise ValueError("boom")

    monkeypatch.setitem(codemods(), "gfile", dataclasses.replace(codemods()["gfile"], find=fail))
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    assert "task.py: stays as it is, a codemod failed (ValueError('boom'))" in (
        capsys.readouterr().out
    )
    assert (program / "task.py").read_text() == LEGACY


def test_stages_without_changes_name_their_command(capsys):
    assert main(["migrate", "--stage", "0", "."]) == 0
    assert "e2s check" in capsys.readouterr().out


def test_list_names_every_rule(capsys):
    from estimator2strategy.tools.migrate.codemod import codemods

    assert main(["migrate", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in codemods())


def test_help_has_an_example_and_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["migrate", "--help"])
    out = capsys.readouterr().out
    assert "e2s migrate --stage 2 trainer/ --write" in out
    assert "exit code: 0 " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which files?"),
        (["--codemod", "no-such-codemod", "."], "no codemod is no-such-codemod"),
    ],
)
def test_wrong_use_says_what_is_wrong(arguments, said, capsys):
    assert main(["migrate", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_missing_path_is_an_error(program, capsys):
    assert main(["migrate", "--stage", "2", "no_such_folder"]) == 2
    assert "no_such_folder: no such file or folder" in capsys.readouterr().out


CELLS = (
    "%matplotlib inline\nimport tensorflow as tf",
    "!pip install x\nfiles = !ls\nwith tf.gfile.GFile('é') as file:\n    %time file.read()",
    "%%bash\nls",
    "print('unchanged')\n",
)


def test_cells_of_a_notebook_are_changed_and_magics_stay(program):
    (program / "a.ipynb").write_text(notebook(*CELLS))
    commit(program)
    assert main(["migrate", "--stage", "2", "a.ipynb", "--write"]) == 0
    changed = [cell.replace("tf.gfile", "tf.io.gfile") for cell in CELLS]
    changed[0] = "%matplotlib inline\nimport estimator2strategy.tf1 as tf"
    assert (program / "a.ipynb").read_text() == notebook(*changed)
    assert sources(notebook(*changed)) == changed
    commit(program)
    assert main(["migrate", "--stage", "2", "a.ipynb"]) == 0


def test_a_notebook_that_would_change_as_a_whole_is_refused_by_name(program, capsys):
    text = notebook(*CELLS).replace('"cells": [', '"cells":  [')  # not as Jupyter writes it
    (program / "a.ipynb").write_text(text)
    commit(program)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 1
    said = capsys.readouterr().out
    assert "a.ipynb: it is not laid out as Jupyter writes it: open it there and save it" in said
    assert (program / "a.ipynb").read_text() == text
    assert (program / "task.py").read_text() == STAGE_2


def test_no_file_is_written_if_a_codemod_fails_in_another(program, capsys, monkeypatch):
    (program / "other.py").write_text(LEGACY)
    commit(program)
    found = codemods()["gfile"].find

    def find(module):
        if module.source.path.endswith("other.py"):
            raise ValueError("boom")
        yield from found(module)

    failing = dataclasses.replace(codemods()["gfile"], find=find)
    monkeypatch.setitem(codemods(), "gfile", failing)
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 2
    assert (program / "task.py").read_text() == LEGACY
    assert "Nothing was written: half of a program would not run." in capsys.readouterr().out


def test_a_statement_that_cannot_be_replaced_is_named_with_its_line(program, capsys, monkeypatch):
    (program / "other.py").write_text(LEGACY + "a = 1; b = 2\n")
    commit(program)

    def find(module):
        last = module.source.tree.body[-1]
        if ast.unparse(last) == "b = 2":
            yield module.replace_statement(last, "c = 3")

    monkeypatch.setitem(codemods(), "gfile", dataclasses.replace(codemods()["gfile"], find=find))
    assert main(["migrate", "--stage", "2", ".", "--write"]) == 1
    assert (
        "  other.py:4: it stays as it is: give each statement of this line a line of its own"
        in capsys.readouterr().out
    )
    assert (program / "other.py").read_text() == LEGACY + "a = 1; b = 2\n"
