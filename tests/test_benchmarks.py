"""What the benchmarks report."""

from __future__ import annotations

import json

from benchmarks import report, run


def test_ratios_are_put_beside_the_committed_ones_and_much_lower_ones_are_marked():
    now = {"dense": {"loop": 0.5, "keras": 1.0, "orbit": 2.0}}
    text = report.beside(now, {"dense": {"loop": 0.9, "keras": 1.1}})
    _, loop, keras, orbit = text.splitlines()
    assert loop.split()[2:4] == ["0.50", "0.90"]
    assert "LESS" in loop
    assert "LESS" not in keras
    assert orbit.split()[2:] == ["2.00", "-"]


def test_the_committed_ratios_are_of_all_that_is_quickly_measured():
    committed = json.loads(run.COMMITTED.read_text())["ratios"]
    contenders = {*run.QUICK["contenders"].split(","), "legacy"} - {report.OURS}
    assert contenders <= set(committed[run.QUICK["models"]])
