"""The reports of the benchmarks."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from benchmarks import (
    calls,
    compiled,
    compiled_cases,
    costs,
    imports_cost,
    report,
    run,
    samples,
    server_ops,
)
from benchmarks.device import export
from estimator2strategy.engine.xla import tpus
from estimator2strategy.engine.xla.tpu_compiler import Compiled, CompileStatus
from tests import fresh


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


def test_what_was_before_runs_in_its_own_checkout_as_the_contender_that_it_was(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/__init__.py").touch()
    (tmp_path / "benchmarks/worker.py").write_text(
        "import json, os, sys\n"
        "for _ in sys.stdin:\n"
        "    print(json.dumps([os.getcwd(), sys.path[1], sys.argv[1:3]]), flush=True)\n"
    )
    args = run.parse_args(["--before", str(tmp_path)])
    turns = run.Turns("dense", {run.BEFORE: sys.executable}, args)
    ((result, answer),) = turns.round()
    turns.close()
    assert result.contender == "before"
    assert answer == [str(tmp_path), str(tmp_path), ["--contender", "e2s"]]


def test_a_phase_that_was_not_measured_has_no_ratio():
    found = [report.Result("dense", "e2s", eval_rate=6.0), report.Result("dense", "loop")]
    found.append(report.Result("dense", "keras", eval_rate=2.0))
    assert report.rate_ratios(found, "eval_rate") == {"dense": {"keras": 3.0}}


def test_a_cost_is_divided_by_another_row_or_by_a_field_of_its_own():
    rows = {"one": {"trace_s": 2.0, "all_s": 8.0}, "eight": {"trace_s": 6.0, "all_s": 12.0}}
    cost = costs.Cost("", "cores", {}, {"eight": "one"}, ("trace_s",))
    assert costs.ratios(cost, rows) == {"trace_s": {"eight": 3.0}}
    cost = costs.Cost("", "cores", {}, {"one": "all_s", "eight": "all_s"}, ("trace_s",), 0.3)
    assert costs.ratios(cost, rows) == {"trace_s": {"one": 0.25, "eight": 0.5}}
    *_, one, eight = costs.table(cost, rows).splitlines()
    assert "0.25 (<= 0.3 ok)" in one
    assert "0.50 (<= 0.3 MISSED)" in eight


def test_a_field_may_have_an_aim_of_its_own():
    rows = {"real": {"s": 2.0, "mb": 10.0}, "ours": {"s": 2.1, "mb": 10.9}}
    cost = costs.Cost("", "start", {}, {"ours": "real"}, ("s", "mb"), 1.0, {"mb": 1.1})
    assert (
        costs.table(cost, rows)
        .splitlines()[-1]
        .endswith("| 1.05 (<= 1.0 MISSED) | 1.09 (<= 1.1 ok) |")
    )


def test_a_cost_without_what_it_is_divided_by_has_no_ratio():
    cost = costs.Cost("", "start", {}, {"dense": "dense, real"}, ("first_step_s",))
    assert costs.ratios(cost, {"dense": {"first_step_s": 1.0}}) == {}


def test_a_call_has_its_least_disturbed_time_of_several_estimators():
    of_estimators = [[3.0, 9.0, 2.0, 1.0], [4.0, 8.0, 0.5, 6.0]]
    assert calls.best(of_estimators) == {"first": 3.0, "second": 8.0, "later": 0.5}
    assert calls.best([[3.0, 9.0]]) == {"first": 3.0, "second": 9.0}


def test_calls_stand_beside_those_of_the_real_one_in_a_row():
    seconds = {"e2s": {"first": 0.5, "second": 0.2}, "legacy": {"first": 1.0, "second": 0.1}}
    assert calls.head(["e2s", "legacy"], has_later=False).splitlines() == [
        "|  | first, s | second, s | first, of the real one | second, of the real one |",
        "| --- | --- | --- | --- | --- |",
    ]
    assert calls.row("train 10", seconds) == "| train 10 | 0.500 | 0.200 | 0.50 | 2.00 |"


def test_imports_stand_beside_those_of_todays_and_of_the_real_tensorflow():
    costs_ = {
        imports_cost.TODAY: imports_cost.Cost(4.0, 700.0),
        "ours": imports_cost.Cost(3.0, 600.0),
        imports_cost.REAL: imports_cost.Cost(2.0, 400.0),
    }
    *_, today, ours, _ = imports_cost.table(costs_).splitlines()
    assert today == "| `import tensorflow` | 4.00 | 700 | 1.00 | 2.00 |"
    assert ours == "| ours | 3.00 | 600 | 0.75 | 1.50 |"


@pytest.mark.slow
def test_calls_are_measured_of_an_estimator_for_each_number(capsys):
    calls.main(["--calls", "evaluate", "--numbers", "1,2", "--repeats", "1", "--later", "1"])
    *_, one, two = capsys.readouterr().out.splitlines()
    assert one.startswith("| evaluate 1 | ")
    assert all(float(cell) > 0 for cell in two.split("|")[2:-1])


@pytest.mark.parametrize("cost", costs.COSTS.values(), ids=costs.COSTS)
def test_every_cost_names_a_sample_that_there_is(cost):
    assert cost.sample in samples.SAMPLES
    assert set(cost.base) <= set(cost.rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["start", "--model", "dense"],
        ["record", "--model", "dense"],
        ["ops", "--number", "2"],
        ["cores", "--model", "dense", "--number", "2"],
        ["hosts", "--number", "1"],
    ],
    ids=lambda options: options[0],
)
def test_samples_are_numbers_above_zero(options):
    name, *rest = options
    found = costs.sample(fresh.python(), name, rest)
    assert all(found[field] > 0 for field in costs.COSTS[name].ratios)
    assert min(found.values()) >= 0


def test_an_op_takes_its_least_disturbed_time_less_that_of_a_run_of_nothing(monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(server_ops.time, "process_time", lambda: now)
    now, fed = 0.0, []

    def run(cost):
        def once(*feed):
            nonlocal now
            fed.append(feed)
            # Only one block of each is not disturbed.
            now += cost if next(clock) // server_ops.RUNS in (2, 3) else 10 * cost

        return once

    runs = {"nothing": run(0.001), "op": run(0.003)}
    assert server_ops.milliseconds(runs, [["a"], ["b"]]) == {"op": pytest.approx(2.0)}
    assert fed[:3] == [("a",), ("b",), ("a",)]


def test_the_page_on_compiled_code_has_a_row_for_each_case():
    page = compiled.PAGE.read_text(encoding="utf-8")
    table = page.partition(compiled.BEGIN)[2].partition(compiled.END)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()]
    expected = [case.op for cases in compiled_cases.SECTIONS.values() for case in cases]
    assert [row for row in rows if row in set(expected)] == expected


def test_a_case_is_shown_eagerly_in_a_graph_and_compiled():
    case = compiled_cases.Case("", tf.gather, (np.float32([1, 2]), np.int32([1, 2])), "look")
    row = compiled.measured(case)
    answer = Compiled(tpus.table()["v5e-1"], CompileStatus.REFUSED, text="no | such\nprogram")
    assert row.line({row.module: answer}) == (
        "|  | raises InvalidArgumentError | [2, 2] | refuses: no / such program | look |"
    )


def test_programs_of_one_export_may_define_flags_of_one_name():
    for value in "ab":
        with export.flags_of_its_own():
            flags.DEFINE_string("flag_of_both", value, "help")
            flags.FLAGS.mark_as_parsed()
            assert flags.FLAGS.flag_of_both == value
    assert "flag_of_both" not in flags.FLAGS
