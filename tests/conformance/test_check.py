"""Does `e2s check` find nothing wrong with programs that run?"""

from __future__ import annotations

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.levels import recorded
from tests.conformance.programs import every_program, source
from tests.tools.check.subjects import subject


@every_program
def test_the_recorded_graph_has_no_error(name, tmp_path):

    report = recorded.check(subject(source(name), tmp_path, batch_size=16))
    assert [finding for finding in report.findings if finding.severity is Severity.ERROR] == []


def test_a_program_that_is_wrong_is_an_error(tmp_path):
    """So that the answer above means something."""
    wrong = source("regression with Adam").replace("tf.train.get_global_step()", "None")
    report = recorded.check(subject(wrong, tmp_path, batch_size=16))
    assert any(finding.severity >= Severity.WARNING for finding in report.findings)
