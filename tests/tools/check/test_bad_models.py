"""Models that cannot be checked: a clear message, exit code 2, and the others still checked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checked_programs import ENVIRONMENT, e2s, inside, write
from test_levels import MODEL

from estimator2strategy.tools.check import check_command, formats
from estimator2strategy.tools.check.check_report import Evidence, Finding, LevelReport, Severity
from estimator2strategy.tools.check.levels import process
from estimator2strategy.tools.check.request import MODES, Asked

TRAIN = """\
import estimator2strategy.tf1 as tf


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]] * 8}, [[1.0]] * 8)).repeat()


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def eventually(condition):
    """Waits for it, long enough for a machine that is busy."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("not within ten minutes")


def running(pid):
    """Whether there is such a process, and it has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def problem_of(tmp_path, emulated_cores, monkeypatch):
    """The one problem of a model, found in this process."""
    emulated_cores(2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = re.sub(r"\W|_+", "_", f"bad {tmp_path.name}")

    def check(text, model="model_fn", given="input_fn", **options):
        write(tmp_path, **{module: text})
        inputs = dict.fromkeys(MODES, f"{module}:{given}")
        options = {"modes": ("train",), **options}
        asked = Asked(
            "m", f"{module}:{model}", inputs, cores=2, facade=False, root=tmp_path, **options
        )
        (problem,) = process.report_of(asked, Evidence.RECORDED).problems
        return problem

    return check


class TestMessages:
    def test_function_that_is_not_there(self, problem_of):
        said = problem_of(TRAIN, model="modelfn")
        assert "has no 'modelfn'; its functions are: input_fn, model_fn" in said

    def test_module_that_is_not_there(self, tmp_path):
        asked = Asked("m", "no_such:model_fn", {"train": "no_such:input_fn"}, root=tmp_path)
        (problem,) = process.report_of(asked, Evidence.RECORDED).problems
        assert "there is no module 'no_such'" in problem

    def test_file_that_is_not_there(self, tmp_path):
        asked = Asked("m", "no/such.py:model_fn", {"train": "a.py:input_fn"}, root=tmp_path)
        (problem,) = process.report_of(asked, Evidence.RECORDED).problems
        assert problem == "no/such.py: no such file"

    def test_what_is_no_function(self, problem_of):
        said = problem_of(TRAIN + "\nMODEL = 1\n", model="MODEL")
        assert "is no function, but int" in said

    def test_model_fn_with_other_arguments(self, problem_of):
        said = problem_of(TRAIN.replace("(features, labels, mode)", "(x, y, mode)"))
        assert "model_fn" in said
        assert "features" in said

    def test_input_fn_with_other_arguments(self, problem_of):
        said = problem_of(TRAIN.replace("def input_fn()", "def input_fn(batch)"))
        assert "takes 'batch', which Estimator does not give" in said

    def test_error_in_model_fn_is_shown_as_the_programs_with_its_traceback(self, problem_of):
        said = problem_of(TRAIN.replace('features["x"]', 'features["y"]'))
        assert "raised an error of its own" in said
        assert (
            """loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["y"], 1))"""
            in said
        )
        assert said.endswith("KeyError: 'y'")
        assert "estimator2strategy" not in said

    def test_error_where_the_module_is_imported(self, problem_of):
        said = problem_of("x = 1\nraise ValueError('not today')\n")
        assert said.endswith("ValueError: not today")
        assert "line 2" in said

    @pytest.mark.parametrize("call", ["sys.exit(3)", "raise SystemExit(3)", "exit(3)"])
    def test_exit_in_model_fn(self, problem_of, call):
        said = problem_of(TRAIN.replace("    loss =", f"    import sys; {call}\n    loss ="))
        assert "ended the process itself, with sys.exit(3) at" in said

    def test_mode_without_an_input(self, problem_of, tmp_path):
        asked = Asked("m", "m:f", {"train": "m:i"}, modes=("train", "eval"), root=tmp_path)
        (problem,) = process.report_of(asked, Evidence.RECORDED).problems
        assert "m:f" in problem or "no module" in problem

    def test_batch_size_that_nobody_takes(self, problem_of):
        assert "--batch-size has no meaning" in problem_of(TRAIN, batch_size=8)

    def test_params_that_model_fn_does_not_take(self, problem_of):
        assert "does not include params argument" in problem_of(TRAIN, params={"a": 1})


class TestProcess:
    """What ends, hangs or floods stays in the process of its level."""

    def test_others_are_still_checked(self, tmp_path):
        exits = MODEL.replace("def model_fn", "import os; os._exit(7)\n\n\ndef model_fn")
        write(tmp_path, model=MODEL, exits=exits)
        arguments = ["--input", "model:input_fn", "--modes", "train", "--format", "json=out.json"]
        done = e2s("check", "exits:model_fn", "model:model_fn", *arguments, folder=tmp_path)
        made = json.loads((tmp_path / "out.json").read_text())
        assert done.returncode == 2
        assert "exits:model_fn, recorded: its process ended with exit code 7" in done.stderr
        assert [bool(level["verdicts"]) for level in made["levels"]] == [False, True]

    def test_endless_loop_ends_at_the_limit(self, tmp_path):
        write(tmp_path, model="def model_fn(): pass\n\n\nwhile True:\n    pass\n")
        inputs = {"train": "model:input_fn"}
        asked = Asked("m", "model:model_fn", inputs, root=tmp_path, time_limit=1)
        (problem,) = process.run(asked, Evidence.RECORDED).problems
        assert "not done within 1 seconds" in problem
        assert "--time-limit" in problem

    def test_level_ends_with_a_check_that_is_killed(self, tmp_path):
        waits = "import os, time\n\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
        write(tmp_path, model=waits)
        command_line = [sys.executable, "-m", "estimator2strategy", "check", "model:model_fn"]
        check = subprocess.Popen(
            [*command_line, "--input", "model:input_fn"], cwd=tmp_path, env=ENVIRONMENT
        )
        pid = tmp_path / "pid"
        eventually(lambda: pid.exists() and pid.read_text())
        check.kill()
        check.wait()
        eventually(lambda: not running(int(pid.read_text())))

    def test_program_that_never_trains(self, tmp_path):
        write(tmp_path, program="print('hello')\n")
        asked = Asked("program.py", program=("program.py",), root=tmp_path)
        (problem,) = process.run(asked, Evidence.RECORDED).problems
        assert "ended without a call of train" in problem


class TestExitCode:
    FOUND = Finding("m.py", 1, 1, "E2S610", Severity.WARNING, "m", evidence=Evidence.RECORDED)
    REPORTS = (
        (0, LevelReport(Evidence.RECORDED, "m:f")),
        (1, LevelReport(Evidence.RECORDED, "m:f", findings=(FOUND,))),
        (2, LevelReport(Evidence.RECORDED, "m:f", findings=(FOUND,), problems=("no",))),
    )

    @pytest.mark.parametrize("name", formats.NAMES)
    @pytest.mark.parametrize(("code", "report"), REPORTS, ids=["clean", "found", "problem"])
    def test_it_is_the_same_in_every_format(self, tmp_path, monkeypatch, name, code, report):
        monkeypatch.setattr(process, "run", lambda asked, level: report)
        with inside(tmp_path):
            assert check_command.main(["m:f", "--input", "m:i", "--format", name]) == code
