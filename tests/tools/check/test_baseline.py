"""The baseline hides what was there, however lines move, and only ever shrinks."""

from __future__ import annotations

import json

import pytest
from checked_programs import PROGRAM, inside, write

from estimator2strategy.tools.check import check_command


def check(folder, *arguments):
    with inside(folder):
        return check_command.main(arguments)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, program=PROGRAM)
    assert check(tmp_path, ".", "--write-baseline") == 0
    return tmp_path


def test_findings_in_it_do_not_count(folder, capsys):
    assert check(folder, ".") == 0
    assert "2 in the baseline" in capsys.readouterr().out


def test_it_holds_what_fails_the_check_and_no_notes(folder):
    entries = json.loads((folder / "e2s-baseline.json").read_text())["findings"]
    assert [e["rule"] for e in entries] == ["E2S212", "E2S219"]


def test_lines_may_move(folder):
    write(folder, program="# A comment.\n\n" + PROGRAM)
    assert check(folder, ".") == 0


def test_another_finding_of_its_kind_counts(folder, capsys):
    write(folder, program=PROGRAM + "estimator.train(input_fn)\n")
    assert check(folder, ".") == 1
    assert "1 warning" in capsys.readouterr().out


def test_line_that_changes_is_new(folder):
    write(folder, program=PROGRAM.replace("AdamOptimizer(0.1)", "AdamOptimizer(0.2)"))
    assert check(folder, ".") == 1


def test_stale_entry_is_a_finding(folder, capsys):
    write(folder, program=PROGRAM.replace("train(input_fn)", "train(input_fn, max_steps=9)"))
    assert check(folder, ".") == 1
    said = capsys.readouterr().out
    assert "E2S006" in said
    assert "E2S212 in program.py (estimator.train(input_fn))" in said


def test_entry_of_a_file_that_was_not_checked_is_not_stale(folder):
    write(folder, other="x = 1\n")
    assert check(folder, "other.py") == 0


def test_entry_of_a_file_that_is_gone_is_stale(folder):
    (folder / "program.py").unlink()
    write(folder, other="x = 1\n")
    assert check(folder, ".") == 1


def test_entry_of_a_rule_that_was_not_checked_is_not_stale(folder):
    assert check(folder, ".", "--select", "E2S219,E2S006") == 0


def test_prune_removes_what_is_stale_and_nothing_else(folder):
    fixed = PROGRAM.replace("train(input_fn)", "train(input_fn, max_steps=9)")
    write(folder, program=fixed + "tf.train.Server()\n")
    assert check(folder, ".", "--prune-baseline") == 0
    entries = json.loads((folder / "e2s-baseline.json").read_text())["findings"]
    assert [e["rule"] for e in entries] == ["E2S219"]


def test_it_never_grows(folder, capsys):
    write(folder, program=PROGRAM + "tf.train.Server()\n")
    before = (folder / "e2s-baseline.json").read_text()
    assert check(folder, ".", "--write-baseline") == 2
    assert "only shrinks" in capsys.readouterr().err
    assert (folder / "e2s-baseline.json").read_text() == before


def test_equal_findings_are_counted(tmp_path):
    write(tmp_path, program=PROGRAM + "estimator.train(input_fn)\n")
    check(tmp_path, ".", "--write-baseline")
    entries = json.loads((tmp_path / "e2s-baseline.json").read_text())["findings"]
    assert {e["rule"]: e.get("count", 1) for e in entries} == {"E2S212": 2, "E2S219": 1}
    assert check(tmp_path, ".") == 0
    write(tmp_path, program=PROGRAM)
    assert check(tmp_path, ".") == 1  # one of the two is stale


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 9, "findings": []}', '{"version": 1}'])
def test_file_that_is_no_baseline_is_named(folder, capsys, text):
    (folder / "e2s-baseline.json").write_text(text)
    assert check(folder, ".") == 2
    assert "e2s-baseline.json" in capsys.readouterr().err


def test_another_file_can_be_named(tmp_path):
    write(tmp_path, program=PROGRAM)
    assert check(tmp_path, ".", "--write-baseline", "--baseline", "accepted.json") == 0
    assert check(tmp_path, ".", "--baseline", "accepted.json") == 0
    assert check(tmp_path, ".") == 1
