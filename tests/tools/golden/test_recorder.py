"""The one file that records: where it runs, and what it keeps of inputs of every kind."""

from __future__ import annotations

import ast
import collections
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.tools.golden import record_command, verify
from estimator2strategy.tools.golden.recorder import batches, feeds, options, programs
from tests import fresh
from tests.tools.golden.parity_replay import GOLDENS, TESTS

tf1 = tf.compat.v1


def e2s(*arguments, cwd):
    return subprocess.run(
        [fresh.python(), "-m", "estimator2strategy", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_one_file_is_python_3_6():
    ast.parse(record_command.one_file(), feature_version=(3, 6))


def test_the_one_file_needs_tensorflow_and_numpy_alone():
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(ast.parse(record_command.one_file()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported - sys.stdlib_module_names == {"numpy", "tensorflow"}


def test_the_one_file_defines_each_name_once():
    names = [
        node.name
        for node in ast.parse(record_command.one_file()).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    assert len(names) == len(set(names))


def test_the_one_file_says_where_it_must_run(tmp_path):
    (tmp_path / "record.py").write_text(record_command.one_file())
    ran = subprocess.run(
        [fresh.python(), "record.py", "m:model_fn", "--input", "m:input_fn"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "has no Estimator; run this where the program ran until now" in ran.stderr


@pytest.mark.parametrize("array", [
    np.array([[b"a", b""], [b"\x00\x00", "\u00e4".encode()]], object),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array(2.5),
])  # fmt: skip
def test_arrays_come_back_as_they_were(array, tmp_path):
    np.savez(tmp_path / "a.npz", **options.packed("x/y", array))
    found = options.unpacked(np.load(tmp_path / "a.npz"), "x/y")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_bfloat16_comes_back_in_float32():
    array = np.array([1.5, -2.0]).astype(tf.bfloat16.as_numpy_dtype)
    found = options.unpacked(options.packed("x", array), "x")
    assert found.tolist() == [1.5, -2.0]


Pair = collections.namedtuple("Pair", "left right")


def test_structures_come_back_as_they_were():
    value = (
        collections.OrderedDict([("b", tf.constant(1)), ("a", [tf.constant(2), None])]),
        Pair(tf.constant(3), tf.sparse.from_dense([[0, 4]])),
        tf.ragged.constant([[5], [6, 7]]),
    )
    leaves: list = []
    tree = json.loads(json.dumps(batches.flattened(value, leaves)))
    features, pair, ragged = batches.rebuilt(tree, leaves)
    assert list(features) == ["b", "a"]
    assert features["a"][1] is None
    assert isinstance(pair, Pair)
    assert tf.sparse.to_dense(pair.right).numpy().tolist() == [[0, 4]]
    assert ragged.to_list() == [[5], [6, 7]]


def test_random_ops_are_fed_the_same_at_each_step_again():
    with tf.Graph().as_default(), tf1.Session() as session:
        size = tf1.placeholder(tf.int32, [])
        uniform = tf1.random_uniform([size, 2])
        normal = tf1.random_normal([3]) + tf1.truncated_normal([3])
        unused = tf1.random_uniform([1])
        found = batches.Draws([uniform.op, normal.op])
        feeds = [found.feed(session, step, {size: 4}) for step in (0, 0, 1)]
        values = [session.run([uniform, normal], {size: 4, **feed}) for feed in feeds]
    assert [draw["shape"] for draw in found.about()] == [[4, 2], [3], [3]]
    assert unused.op not in found.ops
    np.testing.assert_array_equal(values[0][0], values[1][0])
    assert not np.array_equal(values[0][0], values[2][0])
    assert ((values[0][0] >= 0) & (values[0][0] < 1)).all()


def test_random_ops_in_a_loop_are_named_as_not_controlled():
    tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default():
            end = tf1.while_loop(
                lambda i, x: i < 2, lambda i, x: (i + 1, x + tf1.random_uniform([])), (0, 0.0)
            )[1]
            found = batches.Draws([end.op])
    finally:
        tf1.enable_control_flow_v2()
    assert found.ops == []
    assert ["random_uniform" in name for name in found.uncontrolled] == [True]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A golden of a train_and_evaluate program, recorded here, and what `e2s` said."""
    cwd = tmp_path_factory.mktemp("recorded")
    (cwd / "train.py").write_text((TESTS / "programs" / "evaluated.py").read_text())
    flags = ["--out", "golden", "--steps", "3", "--program", "train.py", "--rate=0.5"]
    return cwd, e2s("record", *flags, cwd=cwd)


@pytest.mark.parametrize(
    ("asked", "said"),
    [([], "say what to record"), (["--program", "train.py"], "golden is there already")],
)
def test_a_folder_that_is_there_is_named_once_all_else_is_right(recorded, asked, said):
    cwd, _ = recorded
    again = e2s("record", "--out", "golden", *asked, cwd=cwd)
    assert (again.returncode, said in again.stderr) == (2, True), again.stderr


def test_a_program_is_recorded_here_and_verified(recorded):
    cwd, ran = recorded
    assert ran.returncode == 0, ran.stderr
    assert "wrote golden: evaluate, export, train, 3 steps" in ran.stderr
    same = e2s("verify", "golden", "--cores=2", "--format=json", cwd=cwd)
    assert same.returncode == 0, same.stderr
    tiers = {t["tier"]: t["status"] for t in json.loads(same.stdout)["tiers"]}
    assert tiers == dict.fromkeys(tiers, "passed")


@pytest.mark.parametrize("exporter", ["LatestExporter", "BestExporter"])
def test_an_exporter_that_keeps_the_newest_few_is_recorded(exporter, recorded):
    cwd, _ = recorded
    program = ["--program", "train.py", "--rate=0.5", f"--exporter={exporter}"]
    ran = e2s("record", "--out", exporter, "--steps", "3", *program, cwd=cwd)
    assert ran.returncode == 0, ran.stderr
    # TF 1.15's BestExporter exports what is better than an earlier model, and here is none.
    exports = "export, " if exporter == "LatestExporter" else ""
    assert f"evaluate, {exports}train, 3 steps" in ran.stderr


def test_a_program_may_write_its_results_beside_the_checkpoints(recorded):
    cwd, _ = recorded
    program = (cwd / "train.py").read_text().replace("(model_fn)", "(model_fn, 'made/model')")
    (cwd / "writes.py").write_text(f"{program}    open('made/model/results', 'w').close()\n")
    ran = e2s("record", "--out", "written", "--steps", "1", "--program", "writes.py", cwd=cwd)
    assert "wrote written" in ran.stderr


def test_native_libraries_say_nothing_while_they_are_loaded(recorded):
    cwd, ran = recorded
    shown = ran.stderr + e2s("verify", "golden", "--cores=0", cwd=cwd).stderr
    assert "oneDNN custom operations" not in shown


def test_a_program_with_another_flag_is_another_model(recorded):
    cwd, _ = recorded
    other = e2s("verify", "golden", "--cores=0", "--program", "train.py", "--rate=0.4", cwd=cwd)
    assert other.returncode == 1, other.stderr
    assert other.stdout.startswith("DIFFERENT")
    assert "0.8 times the golden's: another learning rate" in other.stdout


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["nowhere.py"], "there is no file nowhere.py"),
        (["-m"], "-m needs a module"),
        (["ends.py"], "ends.py ended with no data"),
        (["-m", "idle"], "-m idle never called train"),
    ],
)
def test_a_program_that_cannot_be_recorded_is_named(program, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", ["/where/record.py/is", *sys.path])
    Path("ends.py").write_text("import sys\nsys.exit('no data')\n")
    Path("idle.py").touch()
    platform = object.__new__(programs.Platform)  # there is no Estimator in this TensorFlow
    platform.classes, platform.FinalExporter = set(), types.SimpleNamespace(export=None)
    recorder = types.SimpleNamespace(done=set(), leave_out=_raise)
    with pytest.raises(options.RecordError, match=said):
        programs.record_program(platform, recorder, program)


def _raise(what, error):
    raise error


@pytest.mark.parametrize("program", [["trainer/task.py"], ["-m", "trainer.task"]])
def test_a_program_is_started_by_its_file_or_by_its_module(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trainer").mkdir()
    Path("trainer/__init__.py").touch()
    Path("trainer/task.py").write_text("import sys\nsys.called_with = __name__, sys.argv[1:]\n")
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", ["/where/record.py/is", *sys.path])
    monkeypatch.setattr(sys, "called_with", None, raising=False)
    platform = object.__new__(programs.Platform)  # there is no Estimator in this TensorFlow
    platform.run([*program, "--rate=1"])
    assert sys.called_with == ("__main__", ["--rate=1"])
    assert sys.path[0] == str(tmp_path if "-m" in program else tmp_path / "trainer")


def test_what_is_no_golden_is_refused(tmp_path):
    assert verify.main([str(tmp_path)]) == 2


def test_a_golden_that_was_changed_is_refused(tmp_path, capsys):
    for path in (GOLDENS / "parity_tf115").rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(GOLDENS / "parity_tf115")
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes() + (b"x" if path.suffix == ".index" else b""))
    assert verify.main([str(tmp_path), "--program", "train.py"]) == 2
    assert "model.ckpt-0.index" in capsys.readouterr().err


def test_a_program_that_is_not_here_is_asked_for(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert verify.main([str(GOLDENS / "parity_tf115")]) == 2
    assert "say where it is: --program PATH" in capsys.readouterr().err


def test_an_unknown_format_is_refused(capsys):
    assert verify.main([str(GOLDENS / "parity_tf115"), "--format=pdf"]) == 2
    assert "text, json, junit, html" in capsys.readouterr().err


def test_goldens_are_small():
    for name in ("parity_tf115", "parity_dropout_tf215"):
        files = [p for p in Path(GOLDENS / name).rglob("*") if p.is_file()]
        assert sum(p.stat().st_size for p in files) < 100_000


def shuffled():
    return tf.data.Dataset.range(10).shuffle(10, seed=2).repeat(2)


def test_shuffle_and_repeat_stay_two_ops():
    dataset, fused = batches.in_order_of_tf2(shuffled())
    assert dataset.options().experimental_optimization.shuffle_and_repeat_fusion is False
    assert not fused


@pytest.mark.parametrize("wanted", [True, False])
def test_a_program_that_says_if_it_wants_the_fused_order_is_left_alone(wanted):
    options = tf.data.Options()
    options.experimental_optimization.shuffle_and_repeat_fusion = wanted
    dataset = shuffled().with_options(options)
    assert batches.in_order_of_tf2(dataset) == (dataset, wanted)


def test_datasets_with_iterators_of_their_own_are_looked_at():
    with tf.Graph().as_default():
        tf1.data.make_one_shot_iterator(tf.data.Dataset.range(10).repeat(2)).get_next()
        assert not batches.shuffles_and_repeats()
        tf1.data.make_initializable_iterator(shuffled()).get_next()
        assert batches.shuffles_and_repeats()


def _changed_at_random(session, times):
    """Again, after a step whose second variable gets a random number each time."""
    loss = tf1.constant(1.0)
    steady = tf1.get_variable("steady", initializer=[1.0, 2.0])
    moved = tf1.get_variable("moved", initializer=[1.0])
    train_op = tf.group(steady.assign_add([0.5, 0.5]), moved.assign(tf1.random_normal([1])))
    session.run(tf1.global_variables_initializer())
    made = feeds.Again()
    made.begin(uncontrolled=[])
    variables, spec = [steady, moved], types.SimpleNamespace(train_op=train_op, loss=loss)
    for _ in range(times):
        before = session.run(variables)
        made.read(session)
        session.run(train_op)
        after = session.run(variables)
        made.run(session, spec, {}, variables, before, after, feeds._size, [False, False])
        np.testing.assert_array_equal(session.run(moved), after[1])
        np.testing.assert_array_equal(session.run(steady), after[0])
    return made


def test_a_step_that_races_is_found_by_running_it_again_and_leaves_no_trace():
    with tf.Graph().as_default(), tf1.Session() as session:
        made = _changed_at_random(session, 2)
    assert made.race == (0, [1])
    assert np.ptp(np.array(made.updates)[:, 0, 0]) == 0
    assert np.ptp(np.array(made.updates)[:, 1, 0]) > 0


def test_a_step_with_random_ops_that_are_not_fed_or_with_python_is_not_run_again():
    with tf.Graph().as_default(), tf1.Session():
        tf1.py_func(lambda: 1.0, [], tf.float32)
        made = feeds.Again()
        made.begin(uncontrolled=[])
        assert made._left == 0


_EMPTY = """
import tensorflow as tf

def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1, name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"out": out})
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
    scaffold = tf.train.Scaffold(saver=saver)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat(), steps=2)
estimator.evaluate(lambda: tf.data.Dataset.from_tensors(([1.0], [2.0])).batch(1))
empty = lambda: tf.data.Dataset.from_tensors(([1.0], [2.0])).take(0).batch(4)
print("predictions", len(list(estimator.predict(empty))))
"""


def test_an_empty_prediction_leaves_the_rest_recorded_also_of_v1_checkpoints(tmp_path):
    (tmp_path / "empty.py").write_text(_EMPTY)
    ran = e2s("record", "--out", "golden", "--program", "empty.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "predictions 0" in ran.stdout
    assert "wrote golden: evaluate, train, 2 steps" in ran.stderr
    assert "predict is not recorded: input_fn gave no batch" in ran.stderr
    same = e2s("verify", "golden", "--cores=2", "--format=json", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    compared = {t["tier"]: t["status"] for t in json.loads(same.stdout)["tiers"]}
    assert compared["evaluation"] == compared["N steps"] == "passed"


_FAILS = """
import tensorflow as tf

def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1, name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"out": out})
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat(), steps=2)
estimator.evaluate(lambda: tf.data.Dataset.from_tensors(([1.0], [2.0])).batch(1))

def receiver():
    raise ValueError("no vocabulary here")

estimator.export_saved_model("out", receiver)
"""


def test_a_program_that_fails_in_its_export_is_recorded_without_that_part(tmp_path):
    (tmp_path / "fails.py").write_text(_FAILS)
    ran = e2s("record", "--out", "golden", "--program", "fails.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "wrote golden: evaluate, train, 2 steps" in ran.stderr
    assert "without predict, export: ValueError: no vocabulary here" in ran.stderr
    # What fails in the replay of a golden is no reason to leave it out.
    assert e2s("verify", "golden", "--cores=0", cwd=tmp_path).returncode == 2
    part = e2s("verify", "golden", "--cores=0", "--part=evaluate", cwd=tmp_path)
    assert part.returncode == 0, part.stderr
    first = part.stderr.splitlines()[0]
    assert first == "e2s verify: replaying golden; TensorFlow starts ..."


def test_part_chooses_what_is_recorded(tmp_path):
    (tmp_path / "fails.py").write_text(_FAILS)
    command = ("record", "--out", "golden", "--part", "evaluate", "--program", "fails.py")
    ran = e2s(*command, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "e2s record: note" not in ran.stderr
    about = json.loads((tmp_path / "golden" / "golden.json").read_text())
    assert "evaluate" in about
    assert set(about["batches"]) == {"train", "eval"}
