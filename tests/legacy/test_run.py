"""`e2s run` runs a legacy program as `python` ran it under TF 1.15."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from estimator2strategy.legacy import python2, run
from tests import fresh

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "programs" / "legacy_project"


def e2s(
    *arguments: str, folder: Path = PROJECT, python: str | None = None
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [python or fresh.python(), "-m", "estimator2strategy", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


LOADED = """\
import importlib.util
from importlib.machinery import SourceFileLoader

spec = importlib.util.spec_from_file_location("of_spec", "../plugins/net.py")
of_spec = importlib.util.module_from_spec(spec)
spec.loader.exec_module(of_spec)
loader = SourceFileLoader("of_loader", "../plugins/net.py")
of_loader = importlib.util.module_from_spec(importlib.util.spec_from_loader("of_loader", loader))
loader.exec_module(of_loader)
print(of_spec.version, of_loader.version)
"""


def test_modules_that_are_loaded_by_their_path_get_tensorflow_1_15(tmp_path):
    for folder in ("plugins", "program"):
        (tmp_path / folder).mkdir()
    (tmp_path / "plugins/net.py").write_text("import tensorflow as tf\n\nversion = tf.VERSION\n")
    (tmp_path / "program/main.py").write_text(LOADED)
    loaded = e2s("run", "main.py", folder=tmp_path / "program", python=sys.executable)
    assert loaded.stdout == "1.15.5 1.15.5\n", loaded.stderr


@pytest.fixture(scope="module")
def ran():
    # The program's flags come after its name, also those that e2s has too.
    return e2s("run", "main.py", "--units=5", "--fail", "more", python=sys.executable)


@pytest.fixture(scope="module")
def observed(ran):
    return json.loads(ran.stdout)


def test_the_program_is_main_with_its_own_arguments(ran, observed):
    assert ran.returncode == 1, ran.stderr
    assert observed["name"] == "__main__"
    assert observed["argv"] == ["main.py", "more"]


def test_every_import_gives_tensorflow_1_15(observed):
    assert observed["version"] == "1.15.5"
    assert observed["same"] == [True, True, False]
    assert observed["imported"] == "TPUConfig"
    assert observed["deep"] == [True, True, True]


def test_graphs_sessions_and_shapes_are_those_of_tensorflow_1(observed):
    assert observed["eager"] is False
    assert observed["run"] == [[1, 5], [0, 2, 4]]
    assert (observed["dimension"], observed["helper dimension"]) == (5, 1)
    assert observed["variables"] == ["dense/kernel"]
    assert observed["is variable"]
    assert observed["step"] == "global_step:0"
    assert observed["left after reset"] == 0


def test_a_module_that_names_this_package_is_tf2_code(observed):
    migrated = observed["migrated"]
    assert migrated["shape"] == ["int", "int"]
    assert not migrated["contrib"]
    assert migrated["keras"].startswith("keras.")
    assert migrated["same types"]


def test_an_error_shows_the_lines_of_the_program_only(ran):
    assert 'main.py", line' in ran.stderr
    assert "RuntimeError: the program's own error" in ran.stderr
    assert "estimator2strategy/legacy/run.py" not in ran.stderr


@pytest.mark.slow
def test_processes_that_the_program_starts_have_its_tensorflow():
    ran = e2s("run", "-m", "package.workers", python=sys.executable)
    assert ran.returncode == 3, ran.stderr
    observed = json.loads(ran.stdout)
    assert observed["spawned"] == [["1.15.5", 3, False]]
    assert observed["script"] == "1.15.5 False"
    assert observed["package"] == "package"


@pytest.mark.slow
def test_a_program_that_seeds_first_draws_what_it_drew(tmp_path):
    program = tmp_path / "draws.py"
    program.write_text(
        "import random\n\nrandom.seed(1)\nbefore = random.getstate()\n"
        "import tensorflow as tf\n\ntf.estimator\nassert random.getstate() == before\n"
    )
    ran = e2s("run", "draws.py", folder=tmp_path, python=sys.executable)
    assert ran.returncode == 0, ran.stderr


def test_a_package_that_imports_tensorflow_starts_in_graph_mode(tmp_path):
    package = tmp_path / "trainer" / "jobs"
    package.mkdir(parents=True)
    (tmp_path / "trainer" / "__init__.py").write_text("import tensorflow as tf\n")
    (package / "__init__.py").write_text("")
    (package / "task.py").write_text(
        "import tensorflow as tf\nimport trainer\n"
        "print(tf.executing_eagerly(), trainer.tf.constant(1).graph is tf.get_default_graph())\n"
    )
    ran = e2s("run", "-m", "trainer.jobs.task", folder=tmp_path)
    assert ran.stdout == "False True\n", ran.stderr


def test_numbers_of_numpy_print_as_in_numpy_1(tmp_path):
    (tmp_path / "prints.py").write_text(
        "import ast\nimport numpy as np\n\nnp.set_printoptions(threshold=5)\n"
        "import tensorflow as tf\n\n"
        "text = str({'loss': np.float32(0.5), 'steps': np.int64(3), 'best': np.bool_(True)})\n"
        "print(text, ast.literal_eval(text)['steps'] + 1, np.arange(9))\n"
    )
    ran = e2s("run", "prints.py", folder=tmp_path)
    expected = "{'loss': 0.5, 'steps': 3, 'best': True} 4 [0 1 2 ... 6 7 8]\n"
    assert ran.stdout == expected, ran.stderr


@pytest.mark.slow
def test_a_program_of_tensorflow_2_15_gets_its_tensorflow():
    # Which Keras it has is settled while TensorFlow is imported.
    ran = e2s("run", "--tf2", "tf2_style.py", python=sys.executable)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "eager": True,
        "dimension": "int",
        "keras": "tf_keras",
        "mean": 2.0,
        "step": 4,
    }


PROJECT_WITH_TESTS = {
    "model.py": """
import tensorflow as tf

def width(x):
    return tf.contrib.layers.layer_norm(x).shape[1].value
""",
    "model_test.py": """
import tensorflow as tf
import model

tf.flags.DEFINE_integer("units", 3, "How wide the model is.")
FLAGS = tf.flags.FLAGS

class ModelTest(tf.test.TestCase):
    def test_width(self):
        x = tf.placeholder(tf.float32, [2, FLAGS.units])
        self.assertEqual(model.width(x), 3)
        with self.test_session():
            self.assertAllEqual(tf.ones([2]).eval(), [1, 1])

def test_assertions_are_explained():
    assert tf.__version__ == "2.0"
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "conftest",
    [
        'pytest_plugins = ["estimator2strategy.legacy_pytest"]',
        None,
    ],
)
def test_a_line_in_conftest_or_an_option_runs_the_tests_of_a_project(tmp_path, conftest):
    for name, source in PROJECT_WITH_TESTS.items():
        (tmp_path / name).write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "model_test.py"]
    if conftest:
        (tmp_path / "conftest.py").write_text(conftest)
    else:
        command += ["-p", "estimator2strategy.legacy_pytest"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "assert '1.15.5' == '2.0'" in ran.stdout, ran.stdout
    assert "1 failed, 1 passed" in ran.stdout


@pytest.mark.slow
def test_ctrl_c_saves_and_ends_the_program_as_python_would(tmp_path):
    with (
        (tmp_path / "log").open("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "estimator2strategy", "run", "endless.py", str(tmp_path)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # A shell starts what runs in the background without Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process,
    ):
        steps = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
    log = (tmp_path / "log").read_text()
    assert steps == ["a step\n"] * 3, log
    assert process.returncode == -signal.SIGINT  # 130 in a shell
    assert "trained for ever" not in out
    done = 3 + out.count("a step")
    assert (
        f"Training stopped by SIGINT. The latest checkpoint is {tmp_path}/model.ckpt-{done}." in log
    )
    assert 'endless.py", line' in log
    assert "estimator2strategy/legacy/run.py" not in log
    assert log.rstrip().endswith("KeyboardInterrupt")


def test_python_2_syntax_is_refused_with_its_line():
    ran = e2s("run", "python2/statement.py")
    assert ran.returncode == 1
    assert 'statement.py", line 4' in ran.stderr
    assert "this is Python 2 (a print statement, line 4)" in ran.stderr
    assert "2to3" in ran.stderr


def test_python_2_names_are_explained_where_they_fail():
    ran = e2s("run", "python2/names.py")
    assert ran.returncode == 1
    assert 'names.py", line 1' in ran.stderr
    assert "`xrange` is a built-in of Python 2" in ran.stderr


def test_a_map_that_was_a_list_in_python_2_is_explained():
    for wrong in (lambda: len(map(int, "12")), lambda: map(int, "12")[0]):
        with pytest.raises(TypeError) as error:
            wrong()
        assert "`map` made a list in Python 2" in python2.hint(error.value)
    assert python2.hint(TypeError("object of type 'int' has no len()")) is None


@pytest.mark.parametrize(
    ("statement", "is_advised"),
    [("import tensorflow.no_such", True), ("import tensorflow_no_such", False)],
)
def test_only_a_package_that_lacks_a_name_of_tensorflow_may_be_for_tensorflow_1(
    statement, is_advised
):
    with pytest.raises(ImportError) as caught:
        exec(statement, {"__name__": "some_library"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run.legacy_code, "mark_in", lambda names: None)
        hint = run._foreign_hint(caught.value, _last_of("some_library", caught.value.__traceback__))
    assert (hint is not None) is is_advised


def _last_of(module, trace):
    """The traceback from a module's code on, without the frames of the importer below it."""
    while trace.tb_frame.f_globals["__name__"] != module:
        trace = trace.tb_next
    return types.TracebackType(None, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def test_a_library_that_needs_an_older_setuptools_is_explained():
    error = ModuleNotFoundError("No module named 'pkg_resources'", name="pkg_resources")
    assert 'pip install "setuptools<82"' in python2.hint(error)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_does_not_import_tensorflow(arguments):
    program = (
        "import sys\nfrom estimator2strategy import __main__ as cli\n"
        "try:\n    code = cli.main(sys.argv[1:])\n"
        "except SystemExit as end:\n    code = end.code\n"
        "print(code, 'tensorflow' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "0 False"
    assert "e2s" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "which program"),
        (["run", "-m"], "which program"),
        (["run", "no_such_file.py"], "no file 'no_such_file.py'"),
        (["run", "-m", "no_such_module"], "no module 'no_such_module'"),
        (["run", "-m", "no_such.module"], "no module 'no_such.module'"),
        (["run", "."], "'.' is a folder"),
        (["run", "--emulate-tpu-cores=0", "main.py"], "at least 1"),
        (["run", "--emulate-tpu-cores=2x", "main.py"], "as in 2x4"),
        (["run", "--emulate_cores=8", "main.py"], "Did you mean --emulate-tpu-cores?"),
        (["run", "--emulate_tpu_cores", "8", "no.py"], "no file 'no.py'"),
        (["run", "--use_tpu=True", "main.py"], "Flags of the program come after its name"),
    ],
)
def test_wrong_use_is_an_error_that_says_so(arguments, message):
    ran = e2s(*arguments)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


FAILS_IN_A_STEP = """\
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(features, 2))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

tf.estimator.Estimator(model_fn).train(lambda: (tf.ones([1, 2]), tf.constant([5])), steps=1)
"""


def test_a_step_that_fails_is_one_report_with_lines_of_the_program_alone(tmp_path):
    (tmp_path / "main.py").write_text(FAILS_IN_A_STEP)
    ran = e2s("run", "main.py", folder=tmp_path)
    trace = ran.stderr[ran.stderr.index("Traceback") :]
    assert trace.count("Traceback") == 1
    assert "Received a label value of 5" in trace
    assert "made at main.py:4" in trace
    assert "Original stack trace for" in trace
    places = [line for line in trace.splitlines() if line.startswith("  File")]
    assert places[-1] == '  File "main.py", line 4, in model_fn'
    assert not [place for place in places if str(ROOT / "estimator2strategy") in place]


def test_a_message_of_ours_in_an_error_of_tensorflow_comes_after_the_lines_of_the_program(tmp_path):
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\n"
        "def model_fn(features, labels, mode): pass\n"
        "estimator = tf.estimator.Estimator(model_fn, '/dev/null/model')\n"
        "estimator.train(lambda: tf.data.Dataset.from_tensors(1.0), steps=1)\n"
    )
    ran = e2s("run", "main.py", folder=tmp_path)
    trace = ran.stderr[ran.stderr.index("Traceback") :].splitlines()
    assert [line for line in trace if line.startswith("  File")] == [
        '  File "main.py", line 4, in <module>'
    ]
    assert "model_dir '/dev/null/model' cannot be made" in trace[-1]


@pytest.mark.parametrize(
    ("tf_config", "message"),
    [
        ("no JSON", "TF_CONFIG is not valid JSON"),
        ('{"cluster": {"worker": ["a:1"]}}', "TF_CONFIG: cluster is"),
        ('{"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}', "TF_CONFIG: task is {}"),
        ("{}", "steps must be"),
    ],
)
def test_a_refusal_ends_in_one_sentence_after_the_lines_of_the_program(
    tmp_path, monkeypatch, tf_config, message
):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\n"
        "config = tf.estimator.RunConfig('model')\n"
        "tf.estimator.EvalSpec(print, steps='10')\n"
    )
    ran = e2s("run", "main.py", folder=tmp_path)
    assert ran.returncode == 1
    report = ran.stderr[ran.stderr.index("Traceback") :].splitlines()
    files = [line for line in report if line.startswith("  File ")]
    assert [file.split('"')[1] for file in files] == ["main.py"]
    last = next(i for i, line in enumerate(report) if "Error: " in line)
    assert message in report[last]
    assert report[last + 1].startswith("  At main.py:")


@pytest.mark.parametrize(("cores", "found"), [("4", [4, 1]), ("2x3", [6, 2])])
def test_as_many_cores_on_as_many_hosts_as_asked_are_emulated(cores, found, tmp_path):
    (tmp_path / "main.py").write_text(
        "from estimator2strategy.engine.runtime import devices\n"
        "devices.emulate_tpu_if_asked()\n"
        "hosts = devices.hosts(devices.emulated_strategy())\n"
        "print([devices.emulated_cores(), len(hosts)])\n"
    )
    ran = e2s("run", f"--emulate-tpu-cores={cores}", str(tmp_path / "main.py"))
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == found


def test_without_tensorflow_one_line_says_so(tmp_path):
    program = (
        "import importlib.util, sys\nfrom estimator2strategy import __main__ as cli\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'tensorflow' else found(name)\n"
        "cli.main(['run', 'main.py'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("e2s run: TensorFlow is not installed in this environment: pip")
    assert len(ran.stderr.splitlines()) == 1


def test_a_terminal_is_told_that_tensorflow_is_starting(tmp_path):
    (tmp_path / "program.py").write_text("import tensorflow as tf\nprint(tf.__version__)\n")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "estimator2strategy", "run", "program.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=terminal, check=True
    )
    assert ran.stdout == b"1.15.5\n"
    assert os.read(controller, 4096).startswith(b"e2s: starting TensorFlow ...\r\n")
    os.close(controller)
    os.close(terminal)


@pytest.mark.slow
def test_a_program_on_mesh_tensorflow_trains_and_evaluates(tmp_path):
    ran = e2s("run", "mesh.py", str(tmp_path), folder=PROJECT.parent)
    assert ran.returncode == 0, ran.stderr
    before, after = json.loads(ran.stdout.splitlines()[-1])
    assert after < before / 3
    assert (tmp_path / "model.ckpt-60.index").exists()


@pytest.mark.slow
def test_bert_of_the_registry_runs_whole(tmp_path):
    data = ROOT / "tests" / "goldens" / "bert_classifier" / "data"
    ran = e2s(
        "run",
        "--emulate-tpu-cores=2",
        "-m",
        "bert.run_classifier",
        "--use_tpu=true",
        "--num_tpu_cores=2",
        "--task_name=mrpc",
        "--do_train=true",
        "--do_eval=true",
        "--do_predict=true",
        f"--data_dir={data}",
        f"--vocab_file={data}/vocab.txt",
        f"--bert_config_file={data}/bert_config.json",
        f"--init_checkpoint={data}/pretrained/model.ckpt-20",
        f"--output_dir={tmp_path}/out",
        "--max_seq_length=32",
        "--train_batch_size=8",
        "--eval_batch_size=8",
        "--predict_batch_size=8",
        "--num_train_epochs=0.5",
        "--iterations_per_loop=5",
    )
    assert ran.returncode == 0, ran.stderr
    evaluated = (tmp_path / "out" / "eval_results.txt").read_text()
    assert "global_step = 5" in evaluated
    assert "eval_accuracy = " in evaluated
    predicted = (tmp_path / "out" / "test_results.tsv").read_text().splitlines()
    assert len(predicted) == len((data / "test.tsv").read_text().splitlines()) - 1
    assert all(sum(map(float, line.split())) == pytest.approx(1) for line in predicted)
