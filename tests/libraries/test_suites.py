"""The suites of libraries are counted by the logs of pytest."""

from __future__ import annotations

import sys

from tests.libraries import suites

STOPPED = """\
collecting ... collected 5 items

tensorflow_x/python/a_test.py::ATest::test_one PASSED                    [ 20%]
tensorflow_x/python/a_test.py::ATest::test_two0 SKIPPED (a reason)       [ 40%]
tensorflow_x/python/a_test.py::test_three[0 b] FAILED                    [ 60%]
tensorflow_x/python/a_test.py::ATest::test_four PASSED                   [ 80%]
tensorflow_x/python/a_test.py::ATest::test_four ERROR                    [ 80%]
tensorflow_x/python/a_test.py::ATest::test_five """


def test_a_run_that_was_stopped_counts_the_tests_that_have_ended(tmp_path):
    (tmp_path / "a_test.log").write_text(STOPPED)
    assert suites.outcomes(tmp_path / "a_test.py") == {
        "ATest::test_one": "passed",
        "ATest::test_two0": "skipped",
        "test_three[0 b]": "failed",
        "ATest::test_four": "error",
    }


def test_a_file_that_never_ran_has_no_outcomes(tmp_path):
    assert suites.outcomes(tmp_path / "a_test.py") == {}


def test_tests_see_no_option_of_pytest(tmp_path):
    """absl's flags have a -v of their own, and many tests parse `sys.argv`."""
    test = "import sys\n\ndef test_argv():\n    assert sys.argv[1:] == [__file__]\n"
    (tmp_path / "a_test.py").write_text(test)
    side = suites.Side([sys.executable], tmp_path)
    suites.run({"only": ""}, side, tmp_path / "a_test.py", 60)
    assert suites.outcomes(tmp_path / "a_test.py") == {"test_argv": "passed"}


def test_some_tests_of_a_file_are_run(tmp_path):
    tests = "class TestA:\n    def test_one(self): pass\n\n    def test_two(self): pass\n"
    (tmp_path / "a_test.py").write_text(tests)
    side = suites.Side([sys.executable], tmp_path)
    suites.run({"only": ""}, side, tmp_path / "a_test.py", 60, ["TestA::test_two"])
    assert suites.outcomes(tmp_path / "a_test.py") == {"TestA::test_two": "passed"}
