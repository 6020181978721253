"""The levels that compile and trace: cpu-compiled, tpu-traced, tpu-compiled."""

from __future__ import annotations

import json
import sys

import pytest
from checked_programs import e2s, write
from subjects import subject

from estimator2strategy.engine.xla import tpu_compiler
from estimator2strategy.engine.xla.tpu_compiler import Compiled, CompileStatus
from estimator2strategy.engine.xla.tpus import GIB
from estimator2strategy.tools.check.check_report import Evidence, Outcome
from estimator2strategy.tools.check.levels import cpu_compiled, tpu_compiled, tpu_traced
from estimator2strategy.tools.check.levels.facts import Bars, Table

MODEL = """\
import tensorflow as tf

MODES = ("train", "eval", "predict")


def input_fn(params):
    data = tf.ones([params["batch_size"], 4]), tf.ones([params["batch_size"], 1])
    return tf.data.Dataset.from_tensors(data).repeat()


def model_fn(features, labels, mode, params):
    predicted = tf.layers.dense(features, 1)
    {between}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={{"y": predicted}})
    loss = tf.losses.mean_squared_error(labels, predicted)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""
LINE = 1 + MODEL[: MODEL.index("    {between}")].count("\n")
MATRIX_ROOT = "predicted *= tf.reduce_sum(tf.linalg.sqrtm(tf.eye(2) * tf.reduce_sum(predicted)))"
AS_STRING = "predicted *= tf.string_to_number(tf.as_string(tf.reduce_sum(predicted)))"
LOOP = """\
total = tf.while_loop(
        lambda i, t: tf.reduce_sum(t) < 9.0, lambda i, t: (i + 1, t * tf.reduce_sum(predicted)),
        [0, predicted])[1]
    predicted += total
"""
FFT = """\
wave = tf.fft(tf.cast(features, tf.complex128))
    predicted += tf.cast(tf.reduce_sum(tf.real(wave)), tf.float32)
"""
ESTIMATORS = """\
import tensorflow as tf

MODES = ("train", "eval", "predict")


def input_fn():
    return tf.data.Dataset.from_tensors((tf.ones([5, 4]), tf.ones([5, 1]))).repeat()


def model_fn(features, labels, mode):
    predicted = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": predicted})
    loss = tf.losses.mean_squared_error(labels, predicted)
    metrics = {"name": tf.metrics.mean(tf.strings.length(tf.as_string(predicted)))}
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="libtpu is for Linux only")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def model(folder, between="pass", text=MODEL, **asked):
    return subject(text.format(between=between) if text is MODEL else text, folder, **asked)


def outcomes(report):
    return {v.question: v.outcome for v in report.verdicts}


class TestCpuCompiled:
    def test_each_mode_is_compiled(self, tmp_path):
        report = cpu_compiled.check(model(tmp_path))
        assert report.level == Evidence.CPU_COMPILED
        assert outcomes(report) == dict.fromkeys(
            (f"{mode}: compiles for the CPU" for mode in ("train", "eval", "predict")),
            Outcome.PASSED,
        )
        assert (report.findings, report.problems) == ((), ())
        assert [fact.unit for fact in report.facts] == ["seconds"] * 3

    def test_an_estimators_model_is_compiled_without_its_metrics(self, tmp_path):
        report = cpu_compiled.check(model(tmp_path, text=ESTIMATORS))
        assert set(outcomes(report).values()) == {Outcome.PASSED}
        assert (report.findings, report.problems) == ((), ())

    def test_all_ops_without_a_kernel_are_found_at_their_lines(self, tmp_path):
        report = cpu_compiled.check(model(tmp_path, f"{MATRIX_ROOT}\n    {AS_STRING}"))
        assert set(outcomes(report).values()) == {Outcome.FAILED}
        assert [(f.rule, f.path, f.line, f.message) for f in report.findings] == [
            ("E2S602", "program.py", LINE, "MatrixSquareRoot has no XLA kernel"),
            ("E2S602", "program.py", LINE + 1, "AsString has no XLA kernel"),
            ("E2S602", "program.py", LINE + 1, "StringToNumber has no XLA kernel"),
        ]
        # The registry said so, nothing was compiled.
        assert {f.evidence for f in report.findings} == {Evidence.RECORDED}
        assert "with other ops" in report.findings[0].fix

    def test_a_step_that_xla_refuses_is_explained(self, tmp_path):
        report = cpu_compiled.check(model(tmp_path, LOOP, modes=("train", "predict")))
        assert outcomes(report) == {
            "train: compiles for the CPU": Outcome.FAILED,
            "predict: compiles for the CPU": Outcome.PASSED,  # it needs no gradient
        }
        (finding,) = report.findings
        assert finding.rule == "E2S701"
        assert finding.evidence == Evidence.CPU_COMPILED
        assert "no bound" in finding.message
        assert "maximum_iterations" in finding.fix

    def test_a_mode_that_cannot_be_recorded_leaves_the_others(self, tmp_path):
        text = 'assert mode != "eval", "no evaluation here"'
        report = cpu_compiled.check(model(tmp_path, text))
        assert list(outcomes(report).values()) == [
            Outcome.PASSED,
            Outcome.UNKNOWN,
            Outcome.PASSED,
        ]
        (problem,) = report.problems
        assert "no evaluation here" in problem


class TestTpuTraced:
    @pytest.mark.parametrize("text", [MODEL, ESTIMATORS], ids=["TPUEstimator", "Estimator"])
    @pytest.mark.evidence("training", "traced")
    @pytest.mark.evidence("hosts", "traced")
    def test_training_can_be_sent_to_one_host_and_two(self, tmp_path, text):
        report = tpu_traced.check(model(tmp_path, text=text))
        assert outcomes(report) == {
            "train: can be sent to a TPU of 1 x 8 cores": Outcome.PASSED,
            "train: can be sent to a TPU of 2 x 8 cores": Outcome.PASSED,
        }
        assert (report.findings, report.problems) == ((), ())
        (table,) = report.facts
        assert isinstance(table, Table)
        replicas, sums, variables = (
            [row[table.columns.index(name)] for row in table.rows]
            for name in ("replicas", "sums over cores", "variables")
        )
        assert replicas == [8, 16]
        assert sums == [2, 2]  # a kernel's gradient, a bias's
        assert variables == [2 * 3 + 3] * 2  # two slots each; Adam's powers, and the step

    def test_a_table_in_model_fn_is_refused_with_its_line(self, tmp_path):
        table = "tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0], [0.5]), 1.0)"
        text = f"predicted *= {table}.lookup(tf.constant(0))"
        report = tpu_traced.check(model(tmp_path, text))
        assert set(outcomes(report).values()) == {Outcome.FAILED}
        assert {f.rule for f in report.findings} == {"E2S702"}
        (finding,) = report.findings  # not one for each number of hosts
        assert f"program.py:{LINE}" in finding.message

    def test_python_in_model_fn_is_found_at_its_line(self, tmp_path):
        text = "predicted += tf.py_func(lambda: 1.0, [], tf.float32)"
        report = tpu_traced.check(model(tmp_path, text))
        assert {(f.rule, f.line) for f in report.findings} == {("E2S702", LINE)}
        assert "PyFunc is in it" in report.findings[0].message

    def test_without_training_there_is_nothing_to_trace(self, tmp_path):
        report = tpu_traced.check(model(tmp_path, modes=("eval",)))
        assert report.verdicts == ()
        assert "only the train function" in report.not_checked[0]


def compiled_for(folder, tpus, between="pass", text=MODEL, **options):
    return tpu_compiled.check(model(folder, between, text, options={"tpu": tpus, **options}))


@on_linux
@pytest.mark.slow
class TestTpuCompiled:
    @pytest.mark.evidence("training", "compiled", "v3 v5e")
    def test_the_step_is_compiled_for_each_tpu(self, tmp_path):
        report = compiled_for(tmp_path, "v3-8,v5e-4")
        assert (report.findings, report.problems) == ((), ())
        assert set(outcomes(report).values()) == {Outcome.PASSED}
        table, bars = report.facts
        assert isinstance(table, Table)
        assert [row[:4] for row in table.rows] == [
            ("v3-8", 8, 8, "compiles"),
            ("v5e-4", 4, 16, "compiles"),
        ]
        assert isinstance(bars, Bars)
        assert [(bar.label, round(bar.limit / GIB, 2)) for bar in bars.bars] == [
            ("v3-8", 15.48),
            ("v5e-4", 15.75),
        ]
        assert all(0 < bar.used < bar.limit for bar in bars.bars)

    def test_unknown_tpus_are_named_and_the_others_compiled(self, tmp_path):
        report = compiled_for(tmp_path, "v9-1,v3-8,h100")
        assert [p.partition(";")[0] for p in report.problems] == [
            "--tpu v9-1: there is no such TPU",
            "--tpu h100: there is no such TPU",
        ]
        assert "v2-8, v3-8, v4-8" in report.problems[0]
        assert outcomes(report) == {"train: compiles for a v3-8": Outcome.PASSED}

    def test_a_batch_that_some_tpus_cannot_deal_out_leaves_the_others(self, tmp_path):
        report = tpu_compiled.check(
            model(tmp_path, batch_size=4, cores=4, options={"tpu": "v3-8,v5e-4"})
        )
        assert list(outcomes(report).values()) == [Outcome.UNKNOWN, Outcome.PASSED]
        assert len(report.problems) == 1
        assert report.problems[0].startswith("8 cores: ")

    def test_without_libtpu_the_problem_says_how_to_get_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tpu_compiler, "libtpu_path", lambda: None)
        report = compiled_for(tmp_path, "v9-1,v3-8")
        assert len(report.problems) == 2
        assert "pip install 'estimator2strategy[tpu-compile]'" in report.problems[1]
        assert report.verdicts == ()

    def test_ops_without_a_kernel_are_found_before_anything_is_compiled(self, tmp_path):
        report = compiled_for(tmp_path, "v3-8,v5e-4", MATRIX_ROOT)
        assert [(f.rule, f.line) for f in report.findings] == [("E2S602", LINE)]
        assert set(outcomes(report).values()) == {Outcome.FAILED}
        assert report.facts == ()

    def test_what_the_compiler_refuses_is_found_at_its_line(self, tmp_path):
        report = compiled_for(tmp_path, "v3-8,v5e-4", FFT)
        (finding,) = report.findings
        assert (finding.rule, finding.evidence) == ("E2S703", Evidence.TPU_COMPILED)
        assert finding.line in (LINE, LINE + 1)
        assert "complex128" in finding.message
        assert finding.fix == "Cast to complex64."

    def test_a_step_that_is_too_large_says_by_how_far(self, tmp_path):
        # A variable of 2 GiB, its two slots, and its gradient.
        text = (
            "wide = tf.layers.dense(tf.tile(features, [1, 4096]), 32768)\n"
            "    predicted += tf.reduce_mean(wide)"
        )
        report = compiled_for(tmp_path, "v2-8,v5p-8", text)
        assert list(outcomes(report).values()) == [Outcome.FAILED, Outcome.PASSED]
        (finding,) = report.findings
        assert finding.rule == "E2S704"
        assert "more than the core has (7.48 GiB)" in finding.message
        assert "--fit-batch" in finding.fix
        bars = report.facts[1]
        assert bars.bars[0].note.endswith("iB too much")
        assert bars.bars[0].used > bars.bars[0].limit
        assert bars.bars[1].note == ""

    def test_results_are_kept_unless_that_is_not_wanted(self, tmp_path):
        def seconds(**options):
            table = compiled_for(tmp_path, "v3-8", **options).facts[0]
            return table.rows[0][table.columns.index("compiled in (s)")]

        assert "kept" not in seconds()
        assert "kept" in seconds()
        assert "kept" not in seconds(no_tpu_cache=True)

    def test_a_compiler_that_is_not_done_is_a_problem(self, tmp_path):
        report = compiled_for(tmp_path, "v3-8", tpu_time_limit=0.001)
        assert outcomes(report) == {"train: compiles for a v3-8": Outcome.UNKNOWN}
        assert "--tpu-time-limit" in report.problems[0]

    def test_without_training_another_mode_is_compiled(self, tmp_path):
        report = tpu_compiled.check(model(tmp_path, modes=("predict",), options={"tpu": "v3-8"}))
        assert outcomes(report) == {"predict: compiles for a v3-8": Outcome.PASSED}


class TestFitBatch:
    @pytest.fixture
    def needs(self, monkeypatch):
        """`needs(GIB)`: a compiler for which each example of a core needs so much."""
        batches = []

        def become(each):
            def compile_(self, tpu, module, replicas):
                batch = batches[-1] // replicas
                status = (
                    CompileStatus.TOO_LARGE
                    if batch * each > tpu.hbm_bytes
                    else CompileStatus.COMPILES
                )
                return Compiled(tpu, status, int(batch * each))

            def recorded_for(subject, *args):
                batches.append(subject.batch_size)
                return original(subject, *args)

            original = tpu_compiled.recorded_for
            monkeypatch.setattr(tpu_compiled, "recorded_for", recorded_for)
            monkeypatch.setattr(tpu_compiler.TpuCompiler, "compile", compile_)

        return become

    @on_linux
    def test_the_largest_batch_is_found_by_recording_others(self, tmp_path, needs):
        needs(GIB / 4)
        report = compiled_for(tmp_path, "v3-8", fit_batch=True)
        table = report.facts[-1]
        assert table.title == "the largest batch that fits"
        (row,) = table.rows
        assert row[:3] == ("v3-8", 56, 56 * 8)  # 61 would fit: a grain of 8
        assert 61 < row[3] <= 64
        assert report.problems == ()

    @on_linux
    def test_a_batch_of_the_input_fns_own_is_refused(self, tmp_path):
        text = MODEL.format(between="pass").replace('params["batch_size"]', "64 // 8 * 8")
        report = compiled_for(tmp_path, "v3-8", text=text, fit_batch=True)
        assert outcomes(report) == {"train: compiles for a v3-8": Outcome.PASSED}
        assert any("params['batch_size']" in problem for problem in report.problems)

    @on_linux
    def test_an_estimators_batch_is_its_own(self, tmp_path):
        report = compiled_for(tmp_path, "v3-8", text=ESTIMATORS, fit_batch=True)
        assert outcomes(report) == {"train: compiles for a v3-8": Outcome.PASSED}
        assert "a TPUEstimator's do" in report.problems[0]


@on_linux
@pytest.mark.slow
def test_on_the_command_line_tpu_asks_for_the_level(tmp_path):
    write(tmp_path, model=MODEL.format(between="pass"))
    options = ["--input", "model:input_fn", "--levels", "static", "--format", "json"]
    done = e2s("check", "model:model_fn", *options, "--tpu", "v9-1,v5e-1", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "there is no such TPU" in done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert level["level"] == "TPU_COMPILED"
    assert [(v["question"], v["outcome"]) for v in level["verdicts"]] == [
        ("train: compiles for a v5e-1", "passed")
    ]
    assert any("speed and values" in what for what in level["not_checked"])


def test_fit_batch_is_for_tpus(tmp_path):
    done = e2s("check", "m:f", "--input", "m:i", "--fit-batch", folder=tmp_path)
    assert done.returncode == 2
    assert "--fit-batch is for --tpu" in done.stderr
