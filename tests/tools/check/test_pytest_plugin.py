"""The pytest plugin, in the tests of a project of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_levels import MODEL

from estimator2strategy.tools.check.pytest_plugin import Checked

pytest_plugins = ["pytester"]

TESTS = """\
import sys
import pytest

ASKED = dict(input="model:input_fn", modes=["train"], cores=2)


def test_finding_fails(e2s_check):
    e2s_check("model:model_fn", **ASKED).assert_clean()


@pytest.mark.e2s_levels("recorded")
def test_finding_may_be_allowed(e2s_check):
    checked = e2s_check("model:model_fn", **ASKED)
    checked.assert_clean(ignore=["no-gradient"])
    assert checked.levels["recorded"].verdicts


@pytest.mark.e2s_levels("replicated")
def test_level_may_be_left_out(e2s_check):
    e2s_check("model:model_fn", **ASKED)


def test_nothing_of_tensorflow_is_imported():
    assert "tensorflow" not in sys.modules
"""


def run(pytester, monkeypatch, *arguments):
    package = Path(__file__).resolve().parents[3]
    pytester.makepyprojecttoml("")
    pytester.makepyfile(model=MODEL, test_model=TESTS)
    pytester.syspathinsert(package)
    # Whether the installed package registers the plugin, as it does for users, or the path has it.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = (
        "-p",
        "estimator2strategy.tools.check.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-rs",
    )
    return pytester.runpytest_subprocess(*options, *arguments)


@pytest.mark.slow
def test_models_are_tests_of_a_project(pytester, monkeypatch):
    result = run(pytester, monkeypatch, "--e2s-levels=recorded", "--strict-markers")
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*E2S610 no gradient reaches 'hidden/bias' [[]recorded[]]*",
            "*of the levels replicated none is in --e2s-levels=recorded*",
        ]
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give a model and its input"),
        ({"model": "m:f"}, "give a model and its input"),
        ({"model": "m:f", "input": "m:i", "levels": ["top"]}, "none of static, recorded"),
        ({"model": "m:f", "input": {"test": "m:i"}}, "none of train"),
        ({"model": "m:f", "input": "m:i", "target": "tf3"}, "none of facade"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, words, tmp_path):
    from estimator2strategy.tools.check import pytest_plugin
    from estimator2strategy.tools.check.settings import SettingsError

    given = {"model": "", "levels": ["recorded"], **given}
    with pytest.raises(SettingsError, match=words):
        pytest_plugin._check(tmp_path, **given)


def test_a_check_that_could_not_be_done_is_not_clean():
    from estimator2strategy.tools.check.check_report import Report

    checked = Checked(Report((), (), "facade", problems=("no data",)))
    with pytest.raises(AssertionError, match="no data"):
        checked.assert_clean()


def test_the_first_line_of_a_failure_is_the_finding_as_in_the_summary_of_pytest():
    from estimator2strategy.tools.check.checking import check_text

    report = check_text("import tensorflow as tf\n\nx = tf.redcue_mean([1.0])\ny = tf.lgo(x)\n")
    with pytest.raises(AssertionError) as failed:
        Checked(report).assert_clean()
    assert str(failed.value).splitlines()[0] == (
        "E2S105 tf.redcue_mean is neither in TensorFlow 1.15 nor in 2 (program.py:3), and 1 more"
    )


def test_it_is_an_entry_point():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is in the standard library since Python 3.11")
    import tomllib

    path = Path(__file__).resolve().parents[3] / "pyproject.toml"
    points = tomllib.loads(path.read_text())["project"]["entry-points"]
    assert points["pytest11"] == {"e2s": "estimator2strategy.tools.check.pytest_plugin"}
