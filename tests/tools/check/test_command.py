"""`e2s check`: what it reads, what it says, how it ends."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from unittest import mock

import pytest
from checked_programs import ENVIRONMENT, PROGRAM, e2s, inside, write

from estimator2strategy.tools.check import check_command, formats
from estimator2strategy.tools.check.rules.python import unbound_names
from tests.notebooks import notebook


def check(folder, *arguments):
    with inside(folder):
        return check_command.main(arguments)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, program=PROGRAM, clean="x = 1\n")
    return tmp_path


class TestExitCode:
    def test_clean_is_0(self, folder):
        assert check(folder, "clean.py") == 0

    def test_findings_are_1(self, folder):
        assert check(folder, "program.py") == 1

    @pytest.mark.parametrize("name", formats.NAMES)
    def test_it_is_the_same_in_every_format(self, folder, name):
        assert check(folder, "program.py", "--format", name) == 1
        assert check(folder, "clean.py", "--format", name) == 0
        assert check(folder, "missing.py", "--format", name) == 2

    def test_fail_on_sets_the_bar(self, folder):
        write(
            folder,
            program=PROGRAM.replace(
                "minimize(loss)", "minimize(loss, global_step=tf.train.get_global_step())"
            ),
        )
        assert check(folder, "program.py", "--fail-on", "warning") == 1
        assert check(folder, "program.py", "--fail-on", "error") == 0
        assert check(folder, "clean.py", "--fail-on", "info") == 0

    def test_never_fails_on_never(self, folder):
        assert check(folder, "program.py", "--fail-on", "never") == 0


class TestBadInput:
    def test_missing_path_is_named_and_others_are_still_checked(self, folder, capsys):
        assert check(folder, "missing.py", "program.py") == 2
        said = capsys.readouterr()
        assert "missing.py: no such file" in said.err
        assert "E2S219" in said.out

    def test_folder_without_python_is_no_success(self, tmp_path, capsys):
        assert check(tmp_path, ".") == 2
        assert "no Python file" in capsys.readouterr().err

    def test_unknown_format_lists_those_there_are(self, folder, capsys):
        assert check(folder, "clean.py", "--format", "pdf") == 2
        assert "sarif" in capsys.readouterr().err

    def test_unknown_rule_is_named(self, folder, capsys):
        assert check(folder, "clean.py", "--select", "E2S999") == 2
        assert "E2S999" in capsys.readouterr().err

    def test_unknown_severity_is_named(self, folder, capsys):
        assert check(folder, "clean.py", "--fail-on", "bad") == 2
        assert "'bad'" in capsys.readouterr().err

    def test_file_that_cannot_be_written_is_named(self, folder, capsys):
        assert check(folder, "clean.py", "--format", "json=no/such/folder.json") == 2
        assert "no/such/folder.json" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "rule", "words"),
        [
            ("print 'x'\n", "E2S002", "a print statement"),
            ("x = 1\n`\n", "E2S001", "invalid syntax"),
            ("x = `1`\n", "E2S002", "backquotes for repr"),
            ("x = 1\nraise ValueError, 'no'\n", "E2S002", "`raise Error, message`"),
            ("def f(:\n", "E2S001", "cannot be parsed"),
            ("return 3\n", "E2S001", "'return' outside function"),
            ("x = 'a\0b'\n", "E2S001", "null bytes"),
            ("(" * 3000 + ")" * 3000, "E2S001", "nothing in it is checked"),
        ],
    )
    def test_file_that_is_no_python_3_is_a_finding(self, tmp_path, text, rule, words):
        write(tmp_path, program=text)
        assert check(tmp_path, "program.py", "--format", "json=out.json") == 1
        (finding,) = json.loads((tmp_path / "out.json").read_text())["findings"]
        assert finding["rule"] == rule
        assert words in finding["message"]

    def test_failure_of_a_rule_is_named_and_other_files_are_still_checked(
        self, folder, capsys, monkeypatch
    ):
        def fail_on_clean(source, context):
            if source.shown == "clean.py":
                raise RuntimeError("a mistake of ours")
            return ()

        monkeypatch.setattr(unbound_names, "undefined_name", fail_on_clean)
        assert check(folder, ".") == 2
        said = capsys.readouterr()
        assert "clean.py: the check itself failed (RuntimeError('a mistake of ours'))" in said.err
        assert "E2S219" in said.out

    def test_other_encodings_are_read(self, tmp_path):
        text = "# -*- coding: latin-1 -*-\nname = 'Zoë'\n"
        (tmp_path / "program.py").write_bytes(text.encode("latin-1"))
        assert check(tmp_path, "program.py") == 0

    def test_empty_file_and_byte_order_mark_are_fine(self, tmp_path):
        (tmp_path / "empty.py").write_bytes(b"")
        (tmp_path / "mark.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
        assert check(tmp_path, ".") == 0


class TestOutput:
    def test_several_formats_at_once(self, folder, capsys):
        outputs = [part for n in formats.NAMES for part in ("--format", f"{n}=out.{n}")]
        assert check(folder, "program.py", *outputs, "--format", "text") == 1
        for name in formats.NAMES:
            assert (folder / f"out.{name}").stat().st_size > 100
        assert "E2S219" in capsys.readouterr().out

    def test_verdict_says_on_what_it_rests_and_what_was_not_checked(self, folder, capsys):
        check(folder, "program.py")
        said = capsys.readouterr().out
        assert "1 error, 1 warning" in said
        assert "static: the source was read, nothing was run" in said
        assert "Not checked:" in said

    def test_place_that_is_decided_when_the_program_runs_is_listed(self, tmp_path, capsys):
        write(tmp_path, program="import tensorflow as tf\nop = getattr(tf.nn, name)\n")
        check(tmp_path, "program.py")
        assert "program.py:2: which name of tf.nn this is" in capsys.readouterr().out

    def test_notes_are_counted_and_listed_on_request(self, folder, capsys):
        check(folder, "program.py")
        said = capsys.readouterr().out
        assert "is not in TensorFlow" not in said
        assert "notes, listed with --notes" in said
        check(folder, "program.py", "--notes")
        assert "tf.layers.dense is not in TensorFlow" in capsys.readouterr().out

    def test_color_on_a_terminal(self, folder):
        program = (
            "import pty, sys; code = pty.spawn([sys.executable, '-m', 'estimator2strategy',"
            "'check', 'program.py']); sys.exit(code >> 8)"
        )
        result = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**ENVIRONMENT, "TERM": "xterm"},
            check=False,
        )
        assert "\x1b[" in result.stdout
        assert "E2S219" in result.stdout
        assert result.returncode == 1


class TestFiles:
    def test_folders_are_searched_but_for_hidden_and_built_ones(self, folder, capsys):
        write(folder, sub__deep=PROGRAM, build__lib=PROGRAM)
        (folder / ".venv").mkdir()
        write(folder / ".venv", hidden=PROGRAM)
        (folder / "env").mkdir()
        (folder / "env" / "pyvenv.cfg").touch()
        write(folder / "env", installed=PROGRAM)
        check(folder, ".", "--format", "json")
        assert json.loads(capsys.readouterr().out)["files"] == [
            "clean.py",
            "program.py",
            "sub/deep.py",
        ]

    def test_file_that_is_given_twice_is_read_once(self, folder, capsys):
        check(folder, "program.py", ".", "--format", "json")
        assert len(json.loads(capsys.readouterr().out)["files"]) == 2

    def test_exclude_leaves_out(self, folder):
        assert check(folder, ".", "--exclude", "prog*.py") == 0

    def test_attributes_that_macos_keeps_beside_a_file_are_listed_as_not_checked(
        self, folder, capsys
    ):
        (folder / "._a.py").write_bytes(b"\x00\x05\x16\x07Mac OS X")
        check(folder, ".", "--format", "json")
        report = json.loads(capsys.readouterr().out)
        assert [p["path"] for p in report["not_checked"]] == ["._a.py"]
        assert "E2S001" not in {f["rule"] for f in report["findings"]}

    def test_notebook_is_read_cell_by_cell(self, folder, capsys):
        cells = (
            "%matplotlib inline\nimport tensorflow as tf",
            "!pip install x \\\n  y\nfiles = !ls\nx = tf.redcue_mean([1.0])\nprint('a %s'\n  % x)",
            "%%bash\nls",
            "x = 1\ndef broken(:",
            "%%time\ny = tf.redcue_sum(x)\ntf.reduce_mean?",
        )
        (folder / "a.ipynb").write_text(notebook(*cells))
        check(folder, "a.ipynb", "--format", "json")
        report = json.loads(capsys.readouterr().out)
        found = [(f["path"], f["line"], f["rule"]) for f in report["findings"]]
        assert [row for row in found if row[2] in ("E2S105", "E2S001")] == [
            ("a.ipynb#cell-2", 4, "E2S105"),
            ("a.ipynb#cell-4", 2, "E2S001"),
            ("a.ipynb#cell-5", 2, "E2S105"),
        ]
        (left,) = report["not_checked"]
        assert (left["path"], left["why"][:6]) == ("a.ipynb#cell-3", "%%bash")

    @pytest.mark.parametrize(
        ("text", "why"),
        [("{}", "no notebook of format 4"), (notebook("x", language="R"), "language 'r'")],
    )
    def test_notebook_that_cannot_be_read_is_listed_as_not_checked(self, text, why, folder, capsys):
        (folder / "a.ipynb").write_text(text)
        check(folder, ".", "--format", "json")
        (place,) = json.loads(capsys.readouterr().out)["not_checked"]
        assert place["path"] == "a.ipynb"
        assert why in place["why"]


class TestSettings:
    def test_pyproject_is_read(self, folder):
        (folder / "pyproject.toml").write_text(
            "[tool.estimator2strategy.check]\nignore = ['E2S212', 'step-never-counts']\n"
        )
        assert check(folder, "program.py") == 0

    def test_command_line_comes_before_it(self, folder):
        (folder / "pyproject.toml").write_text(
            "[tool.estimator2strategy.check]\nfail-on = 'never'\n"
        )
        assert check(folder, "program.py") == 0
        assert check(folder, "program.py", "--fail-on", "error") == 1

    def test_severity_can_be_changed(self, folder):
        (folder / "pyproject.toml").write_text(
            "[tool.estimator2strategy.check]\nfail-on = 'error'\nseverity = {E2S219 = 'info'}\n"
        )
        assert check(folder, "program.py") == 0

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("fail_at = 'error'", "there is no 'fail_at'; there are baseline"),
            ("target = 'tf3'", "'tf3' is none of facade, tf2"),
            ("select = 'E2S2'", "no list of strings"),
            ("ignore = ['E2S9']", "no rule is 'E2S9'"),
            ("severity = {E2S219 = 'never'}", "put it into `ignore`"),
            ("select = [", "pyproject.toml"),
        ],
    )
    def test_mistake_is_named_with_its_place(self, folder, capsys, line, words):
        (folder / "pyproject.toml").write_text(f"[tool.estimator2strategy.check]\n{line}\n")
        assert check(folder, "clean.py") == 2
        assert words in capsys.readouterr().err


class TestSuppression:
    def run(self, folder, comment, before=""):
        line = "    train_op = tf.train.AdamOptimizer(0.1).minimize(loss)"
        write(folder, program=PROGRAM.replace(line, f"{before}{line}{comment}"))
        check(folder, "program.py", "--format", "json=out.json", "--ignore", "E2S212")
        found = json.loads((folder / "out.json").read_text())
        return [f["rule"] for f in found["findings"] if f["severity"] != "info"], found[
            "suppressed"
        ]

    def test_with_rule_and_reason_it_silences_its_line(self, folder):
        assert self.run(folder, "  # e2s: ignore[E2S219] counted by a hook") == ([], 1)

    def test_alone_on_a_line_it_silences_the_next(self, folder):
        before = "    # e2s: ignore[E2S219] counted by a hook\n"
        assert self.run(folder, "", before) == ([], 1)

    def test_without_a_reason_it_silences_and_is_a_finding(self, folder):
        assert self.run(folder, "  # e2s: ignore[E2S219]") == (["E2S004"], 1)

    def test_without_a_rule_it_silences_nothing(self, folder):
        assert self.run(folder, "  # e2s: ignore it") == (["E2S004", "E2S219"], 0)

    def test_of_another_rule_it_silences_nothing_and_is_unused(self, folder):
        assert self.run(folder, "  # e2s: ignore[E2S203] why") == (["E2S005", "E2S219"], 0)

    def test_in_a_string_it_is_no_comment(self, folder):
        assert self.run(folder, "; x = '# e2s: ignore[E2S219] why'") == (["E2S219"], 0)


def test_each_of_many_files_is_parsed_once(tmp_path):
    body = PROGRAM.split("estimator =")[0].replace("import tensorflow as tf\n", "")
    text = "import tensorflow as tf\n" + "".join(
        body.replace("_fn(", f"_fn_{n}(") for n in range(12)
    )
    write(tmp_path, **{f"module_{n}": text for n in range(200)})
    with mock.patch(
        "estimator2strategy.tools.reader.python_files.ast.parse", wraps=ast.parse
    ) as parse:
        assert check(tmp_path, ".", "--fail-on", "never") == 0
    programs = [call for call in parse.call_args_list if call.args[0] == text]
    assert len(programs) == 200


def test_tensorflow_is_never_imported(folder):
    program = (
        "import sys; from estimator2strategy.tools.check import check_command;"
        "check_command.main(['program.py', '--format', 'html', '--target', 'tf2']);"
        "sys.exit(any(m in sys.modules for m in ('tensorflow', 'keras', 'numpy')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_e2s_check_is_the_command(folder):
    result = e2s("check", "program.py", folder=folder)
    assert result.returncode == 1
    assert "E2S219" in result.stdout
    assert "examples:" in e2s("check", "--help", folder=folder).stdout
