"""Cases that were reported once and are none, and the advice of some that are."""

from __future__ import annotations

import dataclasses
import pydoc
import re

import pytest

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings, Target

TF = "import tensorflow as tf\n\n"


def findings(text, target=Target.FACADE):
    return check_text(TF + text, Settings(target=target)).findings


def severities(text, rule, target=Target.FACADE):
    return [f.severity.name for f in findings(text, target) if f.rule == rule]


def advice(text, target=Target.FACADE):
    return [f"{f.message}. {f.fix}" for f in findings(text, target)]


def test_the_test_of_an_input_fn_may_have_a_session():
    text = "class T(tf.test.TestCase):\n    def test_input_fn(self):\n        tf.Session()\n"
    assert severities(text, "E2S221") == []
    assert severities(text.replace("test_input_fn", "input_fn"), "E2S221") == ["WARNING"]


QUEUE = "def batches(params):\n    return tf.train.batch([params.x], 8)\n"
SPEC = "\n\ndef model_fn(features, mode):\n    return tf.estimator.EstimatorSpec(mode)\n"


CORES = "\n\nmodel = tf.estimator.tpu.TPUEstimator(model_fn)\n"
REPLICAS = "\n\nconfig = tf.estimator.RunConfig({}=strategy)\n"


def test_queues_run_and_are_a_note():
    assert severities(QUEUE + SPEC, "E2S301") == ["INFO"]
    assert severities(QUEUE.replace("batches", "input_fn") + SPEC, "E2S301") == ["INFO"]


@pytest.mark.parametrize("module", ["training", "training.python.training.bucket_ops"])
def test_the_buckets_of_contrib_are_queues(module):
    text = f"def input_fn(x):\n    return tf.contrib.{module}.bucket([x], 0, 8, 1)\n"
    assert severities(text, "E2S301") == ["INFO"]
    assert severities(text + CORES, "E2S301") == ["ERROR"]


@pytest.mark.parametrize("argument", ["train_distribute", "eval_distribute"])
def test_queues_for_replicas_are_an_error(argument):
    text = QUEUE.replace("batches", "input_fn") + SPEC
    assert severities(text + REPLICAS.format(argument), "E2S301") == ["ERROR"]
    assert severities(text + REPLICAS.format(argument).replace("strategy", "None"), "E2S301") == [
        "INFO"
    ]


def test_queues_for_cores_are_an_error_in_an_input_fn():
    queue = QUEUE.replace("batches", "input_fn")
    assert severities(queue + CORES, "E2S301") == ["ERROR"]
    assert severities(QUEUE + CORES, "E2S301") == ["WARNING"]
    assert severities(queue + CORES.replace("fn)", "fn, use_tpu=False)"), "E2S301") == ["INFO"]


QUEUES_BESIDE = """\
import tensorflow as tf

import data

def input_fn(params):
    return data.batches(tf.app.flags.FLAGS)

tf.estimator.tpu.TPUEstimator(model_fn).train(input_fn)
"""


def test_a_queue_beside_the_file_of_the_input_fn_is_an_error(tmp_path, monkeypatch):
    from estimator2strategy.tools.check.checking import check

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.py").write_text(f"{TF}{QUEUE}\n\ndef others():\n    tf.TFRecordReader()\n")
    (tmp_path / "train.py").write_text(QUEUES_BESIDE)
    report = check(["."], Settings(root=tmp_path))
    found = [(f.severity.name, f.line) for f in report.findings if f.rule == "E2S301"]
    line = f"{TF}{QUEUE}".count("\n")
    assert sorted(found) == [("ERROR", line), ("INFO", line + 4)]


SYNC = "optimizer = tf.train.SyncReplicasOptimizer(base, 4)\n"


HOOK = "hook = optimizer.make_session_run_hook(True)\n"


def test_an_optimizer_that_gathers_gradients_needs_its_hook():
    assert severities(SYNC + SPEC, "E2S223") == ["WARNING"]
    assert severities(SYNC + HOOK + SPEC, "E2S223") == ["INFO"]


@pytest.mark.parametrize(
    "refused",
    [
        "config = tf.estimator.RunConfig(train_distribute=strategy)\n",
        "options = estimator2strategy.TrainingOptions(jit_compile=True)\n",
    ],
)
def test_an_optimizer_that_gathers_gradients_is_refused_in_step(refused):
    assert severities(SYNC + HOOK + refused + SPEC, "E2S223") == ["WARNING"]


def test_an_optimizer_that_gathers_gradients_beside_no_strategy_is_a_note():
    none = "config = tf.estimator.RunConfig(train_distribute=None)\n"
    assert severities(SYNC + HOOK + none + SPEC, "E2S223") == ["INFO"]


def test_an_optimizer_beside_sessions_of_its_own_is_a_note():
    session = "with tf.train.MonitoredTrainingSession() as session:\n    pass\n"
    assert severities(SYNC + session + SPEC, "E2S223") == ["INFO"]


@pytest.mark.parametrize("method", ["make_dataset_iterator", "make_input_fn_iterator"])
@pytest.mark.parametrize("target", Target)
def test_methods_that_every_strategy_has_are_no_finding(method, target):
    strategy = "strategy = tf.distribute.experimental.TPUStrategy(resolver)\n"
    assert severities(f"{strategy}x = strategy.{method}(data)\n", "E2S508", target) == []


def test_an_argument_with_another_name_and_the_same_meaning_is_no_finding():
    text = "x = tf.to_float(1)\ntf.summary.histogram('x', x)\n"
    assert severities(text, "E2S103", Target.TF2) == []


def test_names_of_tensorflow_0_have_those_of_today():
    assert advice("y = tf.mul(2, 3)\n") == ["tf.mul is gone since TensorFlow 1.0. Use tf.multiply."]


def test_a_name_in_the_wrong_module_is_found_in_its_own():
    text = "spec = tf.estimator.TPUEstimatorSpec(mode='train')\n"
    message = "tf.estimator.TPUEstimatorSpec is neither in TensorFlow 1.15 nor in 2. "
    assert f"{message}Did you mean tf.estimator.tpu.TPUEstimatorSpec?" in advice(text)


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("inspect.getargspec", "inspect.getfullargspec"),
        ("numpy.NINF", "-math.inf"),
        ("numpy.cast", "numpy.asarray(values, dtype)"),
    ],
)
def test_advice_names_what_one_can_write(name, today):
    text = f"import inspect\nimport numpy\n\nx = {name}\n"
    assert advice(text, Target.TF2) == [f"{name} is gone. Today: {today}."]


@pytest.mark.parametrize("module", ["urlparse", "httplib"])
def test_modules_of_python_2_are_errors(module):
    assert severities(f"import {module}\n", "E2S003") == ["ERROR"]


def test_a_dropped_name_is_found_under_a_condition_too():
    text = "import numpy as np\n\nif FLAGS.small:\n    x = np.float(3)\n"
    assert severities(text, "E2S109", Target.TF2) == ["ERROR"]


OLD_PB2 = (
    "from google.protobuf import descriptor as _descriptor\n\n"
    "A = _descriptor.FieldDescriptor(name='a')\nB = _descriptor.FieldDescriptor(name='b')\n"
)


def test_code_by_an_old_protoc_is_one_finding(tmp_path, monkeypatch):
    from estimator2strategy.tools.check.checking import check

    monkeypatch.chdir(tmp_path)
    for name in ("model_pb2.py", "model.py"):
        (tmp_path / name).write_text(OLD_PB2)
    report = check(["."], Settings(root=tmp_path))
    assert [(f.path, f.line, f.rule) for f in report.findings] == [("model_pb2.py", 3, "E2S109")]


def test_flags_that_absl_has_are_taken():
    import absl.app
    import absl.logging  # noqa: F401
    from absl import flags

    from estimator2strategy.tools.check.rules.tensorflow import program_flags

    assert set(flags.FLAGS) >= program_flags._TAKEN - {"help"}
    text = "tf.app.flags.DEFINE_string('log_dir', '/tmp', 'logs')\n"
    assert severities(text, "E2S111") == ["ERROR"]
    allowed = text.replace("'logs'", "'logs', allow_override=True")
    assert severities(allowed, "E2S111") == []


GRADIENT = """\

@tf.RegisterGradient("{0}")
def first(op, grad):
    return grad

@tf.RegisterGradient("{1}")
def second(op, grad):
    return grad
"""


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("Mine", "Mine"), 1),
        (("Mine", "Other"), 0),
        (("Relu", "Mine"), 1),
        (("ClipByValue", "Mine"), 0),
    ],
)
def test_a_gradient_is_registered_once(names, found):
    assert severities(GRADIENT.format(*names), "E2S112") == ["ERROR"] * found


def test_a_gradient_that_is_registered_under_a_condition_may_be_new():
    text = "if x:\n    tf.RegisterGradient('Relu')(f)\n"
    assert severities(text, "E2S112") == []


def test_parsing_flags_as_in_tf_1_4_is_a_note_for_programs_that_are_run():
    text = "tf.app.flags.FLAGS._parse_flags()\n"
    assert severities(text, "E2S110") == ["INFO"]
    assert severities(text, "E2S110", Target.TF2) == ["ERROR"]


UNBOUND = [
    ("y = missing(x)", 1),
    ("def f():\n    return missing", 1),
    ("def f(x: 'missing'):\n    y: missing = x", 0),
    ("from layers import *\ny = missing(x)", 0),
    ("def f():\n    global found\n    found = 1\n\ny = found", 0),
    ("class A:\n    found = 1\n\n    def f(self):\n        return found", 1),
    ("class A:\n    def f(self):\n        return __class__, __file__", 0),
    ("y = [found for found in range(3)]\nz = lambda found: found", 0),
    ("try:\n    text = missing\nexcept NameError:\n    text = str", 0),
    ("exec('missing = 1')\ny = missing", 0),
    ("if (found := f(1)):\n    print(found)\nfor other in found:\n    print(other)\n", 0),
    ("print(__name__, xrange(3), get_ipython())", 0),
]


@pytest.mark.parametrize(("text", "found"), UNBOUND)
def test_a_name_that_nothing_binds(text, found):
    given = "def f(x):\n    return x\n\nx = 1\n"
    assert severities(given + text + "\n", "E2S007") == ["ERROR"] * found


METHODS = """\
class Folds:
    def fold(self, n):
        return n

    def __iter__(self):
        return map({}, range(3))
"""


def test_a_method_that_is_called_like_a_function_has_a_hint():
    said = [a for a in advice(METHODS.format("fold")) if "binds the name" in a]
    assert said == ["nothing binds the name fold. Did you mean self.fold?"]
    (said,) = [a for a in advice(METHODS.format("folds")) if "binds the name" in a]
    assert "self" not in said


def test_a_function_without_self_is_told_how_to_get_it():
    given = "class Model:\n    def run(x):\n        return self.x\n"
    (said,) = [a for a in advice(given) if "binds the name" in a]
    assert said.endswith("Make it the first argument of the method: `def run(self, ...)`.")
    (said,) = [a for a in advice("def run(x):\n    return self.x\n") if "binds the name" in a]
    assert said.endswith("run is no method: give it the object as an argument.")


def test_the_advice_about_names_of_python_2_leads_to_a_line_that_runs():
    (said,) = [f for f in findings("x = unicode(y, 'utf8')\n") if f.rule == "E2S003"]
    assert said.fix.startswith("Text is Unicode in Python 3: leave the call out")
    (said,) = [f for f in findings("x = unicode(y)\n") if f.rule == "E2S003"]
    assert "2to3" in said.fix


def test_pandas_dropped_one_of_the_methods_of_dictionaries():
    said = [f.message for f in findings("a.has_key(1)\na.iteritems()\n") if f.rule == "E2S003"]
    assert said == [
        ".has_key() went with Python 2: in",
        ".iteritems() went with Python 2 (and pandas 2): items",
    ]


@pytest.mark.parametrize(
    ("line", "today"),
    [
        ("from configparser import SafeConfigParser", "configparser.ConfigParser"),
        ("import types\n\nx = types.StringType", "str"),
        ("import string\n\nx = string.replace('a', 'b', 'c')", "the method replace of the text"),
        ("import os\n\nx = os.errno.EEXIST", "errno, a module to import"),
        ("import telnetlib", "the same module, by pip install standard-telnetlib."),
    ],
)
def test_names_that_python_dropped_have_those_of_today(line, today):
    (said,) = [f for f in check_text(f"{line}\n").findings if f.rule == "E2S012"]
    assert said.fix.startswith(f"Today: {today}")


def is_of_python(name):
    return rows.library_of(name) == rows.PYTHON


OF_PYTHON = [today for name, today in rows.by_hand("today").items() if is_of_python(name)]


@pytest.mark.parametrize("today", OF_PYTHON)
def test_what_has_the_place_of_a_name_that_python_dropped_is_there(today):
    name = today.partition(",")[0]
    if re.fullmatch(r"[\w.]+", name):
        assert pydoc.locate(name) is not None


MODEL = "def g(features, params):\n    return len(params['n'])\n\n"
LISTS = [
    ("y = map(f, x) + [1]", 1),
    ("y = range(3) + range(4)", 2),
    ("y = numpy.zeros([3]) + range(3)", 0),
    ("y = list(map(f, x)) + [1]", 0),
    ("y = zip(x, x)[:-1]", 1),
    ("y = range(3)[1]", 0),
    ("y = numpy.zeros((2, 2))[zip(*x)]", 1),
    ("y = numpy.zeros((2, 2))[tuple(zip(*x))]", 0),
    ("y = x.items()[0]", 1),
    ("y = x.values(level=1)[0]", 0),
    ("y = x.keys()[0]", 0),
    ("y = len(filter(f, x))", 1),
    ("def g():\n    y = map(f, x)\n    return y[0]", 1),
    ("def g():\n    y = map(f, x)\n    y = list(y)\n    return y[0]", 0),
    ("y = range(3)\nrandom.shuffle(y)", 1),
    ("y = range(3)\nprint(y.index(2))", 0),
    ("y = map(f, x)\ny.sort()", 1),
    ("y = x.keys()\ny.sort()", 1),
    ("y = x.keys()\ny.append(1)", 0),
    ("y = x.values()\ny.remove(1)", 1),
    ("y = x.values(level=1)\ny.remove(1)", 0),
    ("y = list(x.values())\ny.remove(1)", 0),
    ("random.shuffle(x.values())", 1),
    ("tf.decode_csv(x, x.values())", 1),
    ("tf.decode_csv(x, list(x.values()))", 0),
    ("tf.feature_column.categorical_column_with_vocabulary_list('a', map(str, x))", 1),
    ("tf.feature_column.categorical_column_with_vocabulary_list('a', x.keys())", 0),
    ("with tf.Session() as session:\n    session.run(filter(f, x))", 1),
    ("tf.SparseTensor(indices=zip(x, y), values=[1], dense_shape=[2])", 1),
    ("tf.SparseTensor(indices=list(zip(x, y)), values=[1], dense_shape=[2])", 0),
    ("tf.reshape(x, map(int, y))", 1),
    ("tf.stack(x.values())", 1),
    ("tf.data.Dataset.from_tensor_slices(zip(x, y))", 1),
    ("tf.data.Dataset.from_tensor_slices(x.values())", 0),
    ("tf.zeros(map(int, y))", 0),
    ("numpy.concatenate(map(f, x))", 1),
    ("for k, v in x.items():\n    if v:\n        del x[k]", 1),
    ("for k in x.keys():\n    x.pop(k)\n    continue", 1),
    ("for k in list(x.keys()):\n    x.pop(k)", 0),
    ("for k in x.keys():\n    x.pop(k)\n    break", 0),
    ("for k in x.keys():\n    if k:\n        del x[k]\n    break", 0),
    ("for k in x.keys():\n    v = x.pop(k)\n    x[v] = k", 0),
    ("for k in x.keys():\n    y.pop(k)", 0),
    ("for k in x.keys():\n    g(lambda: x.pop(k))", 0),
    ("for k in os.environ.keys():\n    del os.environ[k]", 0),
    ("import pandas\nfor k in x.keys():\n    del x[k]", 0),
    ("from six.moves import map\ny = map(f, x)[0]", 0),
    (f"{MODEL}e = tf.estimator.Estimator(g, params={{'n': map(f, x)}})", 1),
    (f"{MODEL}p = {{'n': map(f, x)}}\ne = tf.estimator.Estimator(g, params=p)", 1),
    (f"{MODEL}e = tf.estimator.Estimator(g, params={{'n': list(map(f, x))}})", 0),
    (f"{MODEL}p = {{'n': map(f, x)}}\np['n'] = [1]\ne = Estimator(g, params=p)", 0),
    (f"{MODEL}Estimator(g, params={{'n': map(f, x)}})\nEstimator(g, params=other())", 0),
]


@pytest.mark.parametrize(("text", "found"), LISTS)
def test_a_list_of_python_2(text, found):
    given = "import random, numpy\nimport tensorflow as tf\n\n"
    assert severities(given + text + "\n", "E2S008") == ["ERROR"] * found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tf.random.set_seed(2)\ntf.random.set_seed(3)", 1),
        ("tf.random.set_random_seed(2)", 0),
        ("tf.compat.v2.random.set_seed(2)", 0),
        ("if tf.__version__ >= '2':\n    tf.random.set_seed(2)", 0),
        ("try:\n    tf.random.set_seed(2)\nexcept AttributeError:\n    pass", 0),
    ],
)
def test_a_name_of_tensorflow_2_in_a_program_of_tf_1_15(text, found):
    assert severities(text + "\n", "E2S113") == ["WARNING"] * found
    assert severities(text + "\n", "E2S113", Target.TF2) == []


SUMMARY = """\
def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    tf.summary.scalar("mean_label", tf.reduce_mean(labels))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
"""


@pytest.mark.parametrize(("line", "found"), [(5, ["E2S605"]), (6, ["E2S226", "E2S605"])])
def test_a_summary_that_source_and_graph_show_is_one_finding(line, found, tmp_path):
    from estimator2strategy.tools.check.check_report import Evidence, LevelReport
    from estimator2strategy.tools.check.checking import check

    (tmp_path / "model.py").write_text(TF + SUMMARY)
    settings = Settings(root=tmp_path)
    static = next(f for f in check([str(tmp_path)], settings).findings if f.rule == "E2S226")
    assert static.line == 5
    graph = dataclasses.replace(static, rule="E2S605", line=line)
    level = LevelReport(Evidence.RECORDED, "model:model_fn", findings=(graph,))
    report = check([str(tmp_path)], settings, [level])
    assert [f.rule for f in report.findings if f.severity.name != "INFO"] == found


def test_methods_that_pandas_dropped():
    text = "import pandas as pd\n\nt = pd.read_csv('a')\nx, y = t.as_matrix(), t.ix[0]\n"
    assert severities(text, "E2S109") == ["ERROR", "ERROR"]
    assert severities(text.replace("import pandas as pd", "import sympy as pd"), "E2S109") == []


def test_a_file_for_python_2_alone_is_no_finding(tmp_path, monkeypatch):
    from estimator2strategy.tools.check.checking import check

    monkeypatch.chdir(tmp_path)
    for name in ("_py2_var.py", "var.py"):
        (tmp_path / name).write_text("text = unicode\n")
    report = check(["."], Settings(root=tmp_path))
    assert [(f.path, f.rule) for f in report.findings] == [("var.py", "E2S003")]


def test_a_name_of_python_2_after_a_question_for_it_is_no_finding():
    text = "import six\n\ndef f(x):\n    return isinstance(x, str) or (six.PY2 and x is unicode)\n"
    assert severities(text, "E2S003") == []
    before = "import six\n\ndef f(x):\n    return x is unicode and six.PY2\n"
    assert severities(before, "E2S003") == ["ERROR"]


def test_a_name_that_numpy_2_has_again_is_a_warning_about_numpy_1():
    text = "import numpy as np\n\nmask = np.ones(3, dtype=np.bool)\n"
    assert severities(text, "E2S109", Target.TF2) == ["WARNING"]
    assert "NumPy 1.24 to 1.26" in advice(text, Target.TF2)[0]
    assert severities(text.replace("np.bool", "np.row_stack"), "E2S109", Target.TF2) == []


@pytest.mark.parametrize("name", ["data_decoder.DataDecoder", "parallel_reader.get_data_files"])
def test_what_lies_in_a_private_module_of_slim_is_served_with_it(name):
    folder = "from tensorflow.contrib.slim.python.slim.data import "
    text = f"{folder}{name.partition('.')[0]}\n\nx = {name}\n"
    assert severities(text, "E2S101") == []


@pytest.mark.parametrize("target", Target)
def test_a_name_that_the_program_sets_itself_is_no_finding(target):
    text = "tf.summary.create_file_writer = print\ntf.app = object()\ntf.app.run()\n"
    assert not findings(text, target)


def test_a_kept_half_is_a_dropped_half():
    text = "x = tf.to_float(1)\ny = tf.nn.dropout(x, 0.5)\n"
    assert severities(text, "E2S103", Target.TF2) == []
    assert severities(text.replace("0.5", "0.6"), "E2S103", Target.TF2) == ["ERROR"]


def test_a_copy_of_tpu_estimator_is_to_be_left_out():
    text = "class {}(tf.estimator.Estimator):\n    def train(self, input_fn):\n        pass\n"
    assert "in the place of this copy" in advice(text.format("TPUEstimator"))[-1]
    assert "another name" in advice(text.format("Loud"))[-1]


def test_a_library_that_ended_has_advice_of_its_own():
    assert "tf.contrib" in advice("import tensorflow_addons as tfa\n")[0]
    assert "e2s run" in advice("import tensorflow_estimator\n", Target.TF2)[0]
    assert "setuptools<82" in advice("import tensorflow_hub as hub\n")[0]


def test_a_library_that_only_an_older_tensorflow_installs_is_told():
    assert "pip install tensorboard" in advice("from tensorboard.plugins import projector\n")[0]
    assert "tf.keras.preprocessing" in advice("import keras_preprocessing\n")[0]


def test_a_name_is_not_reached_where_dir_does_not_list_it():
    text = (
        "if 'concat_v2' in dir(tf):\n    x = tf.concat_v2([], 0)\nelse:\n    x = tf.concat([], 0)\n"
    )
    assert severities(text, "E2S105") == []
    assert severities(text.replace(" in dir", " not in dir"), "E2S105") == ["WARNING"]


def test_a_name_after_an_attribute_error_is_for_another_release():
    text = "try:\n    x = tf.concat\nexcept AttributeError:\n    x = tf.{}\n"
    assert severities(text.format("concat_v2"), "E2S105") == []
    assert severities(text.format("random.set_seed"), "E2S113") == []
    gone = text.replace("tf.concat\n", "tf.pack\n")
    assert severities(gone.format("concat_v2"), "E2S105") == ["WARNING"]


def test_private_keras_in_a_try_is_no_finding():
    text = "try:\n    from tensorflow.python.keras import layers\nexcept ImportError:\n    pass\n"
    assert severities(text, "E2S507", Target.TF2) == []


def test_an_import_from_tensorflows_inside_is_reported_where_it_is_written():
    text = "from tensorflow.python.{} import x\n"
    assert severities(text.format("ops"), "E2S104", Target.TF2) == ["WARNING"]
    assert severities(text.format("ipu"), "E2S104", Target.TF2) == ["ERROR"]
    assert severities("from tensorflow.python import placeholder\n", "E2S104") == ["INFO"]


def test_imp_is_a_warning_about_python_3_12():
    assert severities("import imp\n", "E2S003") == ["WARNING"]
    assert "importlib.reload" in advice("from imp import reload\n")[0]


def test_a_star_hides_a_builtin_only_if_its_module_has_one():
    text = "from tensorflow.{} import *\n\nfor i in range(len('a')):\n    pass\n"
    assert severities(text.format("contrib.rnn"), "E2S101") == []
    assert severities("from tensorflow import *\n\nrange(3)\nlen('a')\n", "E2S105") == []


def test_a_name_that_is_merely_alike_is_not_proposed():
    assert "Did you mean" not in advice("x = tf.data.SSTableDataset('a')\n")[0]
    assert "tf.train.exponential_decay?" in advice("x = tf.exponential_decay(1)\n")[0]
    assert "tf.nn.conv2d?" in advice("x = tf.nn.convv2d(1)\n")[0]


@pytest.mark.parametrize(
    ("weights", "count"),
    [
        ("tf.sequence_mask(32)", 1),
        ("tf.sequence_mask(F.max_seq_length)", 1),
        ("tf.sequence_mask(F.max_seq_length, F.max_seq_length)", 1),
        ("tf.sequence_mask(lengths, 32)", 0),
        ("tf.sequence_mask([32, 8])", 0),
        ("tf.to_float(labels > 0)", 0),
    ],
)
def test_weights_of_one_row_of_a_batch(weights, count):
    text = (
        "import tensorflow as tf\nimport tf_metrics\n\nF = tf.flags.FLAGS\n\n"
        f"def metric_fn(labels, ids, lengths):\n    w = {weights}\n"
        "    return {'f': tf_metrics.f1(labels, ids, 11, [2], w)}\n"
    )
    assert severities(text, "E2S235") == ["WARNING"] * count


_HELD = """class Data:
    def __init__(self, path):
        self.a = np.load(path)
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("d = np.load('a.npy').item()\nprint(d['x'])", 1),
        ("for k in np.load('a.npy').item().keys():\n    print(k)", 1),
        ("d = np.load('a.npy', encoding='latin1').item()", 1),
        ("a = np.load('a.npy')\nd = a.item()\nprint(d.items())", 1),
        ("d = np.load('a.npz')['x'].item()\nprint(d['y'])", 1),
        ("a = np.load('a.npz')\nd = a['x'].item()\nprint(d[Fields.HITS])", 1),
        ("d = np.load('a.npz')['x'].item()\nprint(d[place.index])", 0),
        (f"{_HELD}        self.d = self.a['x'].item()\n        print(dict(**self.d))", 1),
        (f"{_HELD}        self.d = self.a['x'].item()\n        print(self.d + 1)", 0),
        (f"{_HELD}        self.a = {{}}\n        print(self.a['x'].item()['y'])", 0),
        ("d = np.load('a.npy', allow_pickle=True).item()\nprint(d['x'])", 0),
        ("n = np.load('a.npy').item()\nprint(n + 1)", 0),
        ("a = np.load('a.npz')\nprint(a['x'].item())", 0),
        ("try:\n    d = np.load('a.npy').item()\nexcept ValueError:\n    d = {}\nprint(d['x'])", 0),
    ],
)
def test_a_dict_that_numpy_pickled(text, count):
    assert severities(f"import numpy as np\n\n{text}\n", "E2S118") == ["ERROR"] * count


@pytest.mark.parametrize("target", Target)
def test_the_tf_of_another_library_is_not_tensorflow(target):
    text = "import tf\nfrom tf import transformations\n\nx = tf.TransformListener()\n"
    report = check_text(text + "y = tf.to_float(transformations.mul)\n", Settings(target=target))
    assert report.findings == ()


def test_a_name_that_is_asked_for_in_an_and_is_no_finding():
    of_tf2 = "isinstance(x, tf.optimizers.Optimizer)"
    assert severities(f"y = {of_tf2}\n", "E2S113") == ["WARNING"]
    assert severities(f"y = is_tfv2() and {of_tf2}\n", "E2S113") == []
    assert severities(f"if tf.__version__ < '2' or {of_tf2}:\n    y = 1\n", "E2S113") == []
    assert severities(f"y = use_it() and {of_tf2}\n", "E2S113") == ["WARNING"]


TOKENS = "class Hook(tf.train.SessionRunHook):\n    def begin(self):\n"


def test_a_hook_of_the_program_may_put_the_tokens_into_the_queue():
    own = TOKENS + "        self.tokens = optimizer.get_init_tokens_op(-1)\n"
    assert severities(SYNC + own + SPEC, "E2S223") == ["INFO"]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("tf.nn.ctc_loss(a, b, c)", "argument 3 was 'sequence_length', and is 'label_length'"),
        ("tf.math.count_nonzero(a, 0, True)", None),
        ("tf.name_scope('a', 'b')", "TF2 takes 1 argument, and no 'default_name'"),
    ],
)
def test_an_argument_that_only_has_another_name_may_stand_at_its_place(call, problem):
    text = f"x = {call}\ntf.Session()\n"
    said = [f.message for f in findings(text, Target.TF2) if f.rule == "E2S103"]
    assert len(said) == (problem is not None)
    assert problem is None or problem in said[0]


def test_a_star_of_a_module_inside_of_tensorflow_wants_its_names():
    text = "from tensorflow.python.ops.rnn_cell import *\n"
    assert any("and the names that the file uses" in text for text in advice(text))
    assert any("Write `import tensorflow as tf`" in a for a in advice("from tensorflow import *\n"))


def test_what_every_module_has_is_not_missing_from_contrib():
    assert severities("x = tf.contrib.rnn.__dict__\n", "E2S101") == []
    assert severities("x = tf.contrib.rnn.no_cell\n", "E2S101") == ["ERROR"]


def test_hbconfig_reads_no_yaml_beside_pyyaml_6():
    text = "from hbconfig import Config\n\nConfig('config')\n"
    (found,) = check_text(text, Settings()).findings
    assert (found.rule, found.message) == (
        "E2S107",
        "hbconfig: its last release, 0.5, calls yaml.load without a Loader, which PyYAML 6 refuses",
    )


def test_imgaug_needs_numpy_1():
    text = "from imgaug import augmenters as iaa\n"
    (found,) = check_text(text, Settings()).findings
    assert (found.rule, found.message) == (
        "E2S107",
        "imgaug: its last release, 0.4, does not import beside NumPy 2",
    )


def test_the_helpers_of_tflearn_are_in_keras():
    text = "from tflearn.data_utils import pad_sequences\n"
    assert any("padding='post'" in text for text in advice(text))


def test_a_reduction_is_proposed_by_its_name():
    assert any("Did you mean tf.reduce_prod?" in text for text in advice("x = tf.prod(y)\n"))


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow.python.ops.rnn_cell import _linear",
        "from tensorflow.python.ops.rnn_cell_impl import _linear",
        "from tensorflow.python.ops.rnn_cell_impl import _Linear as linear",
        "y = tf.nn.rnn_cell._linear([], 3, True)",
    ],
)
def test_the_private_linear_of_recurrent_cells_was_gone_before_1_15(line, target):
    assert [(f.rule, f.severity.name) for f in findings(f"{line}\n", target)] == [
        ("E2S105", "WARNING")
    ]


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("lambda labels: {'n': count(labels)}", 0),
        ("lambda x: {'n': count(labels)}", 1),
        ("lambda x, y=labels: {'n': count(y)}", 0),
        ("lambda x: {'n': count(map(lambda labels: labels, x))}", 0),
    ],
)
def test_an_argument_of_a_lambda_is_not_captured(function, found):
    text = (
        "def model_fn(features, labels, mode):\n"
        f"    metric_fn = {function}\n"
        "    return tf.contrib.tpu.TPUEstimatorSpec(mode, eval_metrics=(metric_fn, [labels]))\n"
    )
    assert severities(text, "E2S210") == ["ERROR"] * found


TABS = "def f(x):\n        y = 1\n\treturn x, y\n"


@pytest.mark.parametrize(("text", "word"), [(TABS, "expand -i"), ("print 'x'\n", "2to3")])
def test_2to3_is_no_advice_for_tabs_because_it_keeps_them(text, word):
    (found,) = [f for f in findings(text) if f.rule == "E2S002"]
    assert word in found.fix
    compile(TABS.expandtabs(8), "expanded", "exec")


UNEVEN = "e = tf.estimator.tpu.TPUEstimator(None, None, train_batch_size=1, eval_batch_size=12)\n"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("e.evaluate(input_fn, steps=2)\n", ["eval"]),
        ("e.train(input_fn, steps=2)\n", ["train"]),
        ("e.predict(input_fn)\n", []),
        ("tf.estimator.train_and_evaluate(e, a, b)\n", ["eval", "train"]),
        ("e.evaluate(input_fn, steps=2)\nrun(e)\n", ["eval", "train"]),
        (
            "def f():\n    e.evaluate(input_fn, steps=2)\n    e.train(input_fn, steps=2)\n",
            ["eval", "train"],
        ),
    ],
)
def test_a_batch_size_matters_if_the_estimator_takes_such_batches(use, said):
    found = [f.message.partition("_")[0] for f in findings(UNEVEN + use) if f.rule == "E2S216"]
    assert sorted(found) == said


PADDED = """\
def model_fn(features, labels, mode, params):
    padding = features["padding"]{}
    x = features["x"]
    if padding is not None:
        x = tf.boolean_mask(x, padding)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=x)
"""


@pytest.mark.parametrize(
    ("more", "found"),
    [("", ["WARNING"]), ("\n    padding = None if not params['pad'] else padding", [])],
)
def test_padding_that_a_program_may_leave_in_is_no_finding(more, found):
    assert severities(PADDED.format(more), "E2S403") == found


RUNS = """\
def main():
    e = tf.estimator.tpu.TPUEstimator(None, None, use_tpu=FLAGS.use_tpu)
    if FLAGS.do_predict:
        {}
        e.evaluate(input_fn)
"""


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("if FLAGS.use_tpu:\n            raise ValueError('not on TPUs')", 0),
        ("if FLAGS.use_tpu:\n            print('on TPUs')", 1),
        ("if not FLAGS.use_tpu:\n            raise ValueError('on TPUs alone')", 1),
        ("pass", 1),
    ],
)
def test_a_program_that_refuses_tpus_before_a_call_is_not_told_about_them(before, found):
    rules = [f.rule for f in findings(RUNS.format(before))]
    assert [rules.count(rule) for rule in ("E2S213", "E2S217")] == [found, found]


_PREDICTING = """\
import tensorflow as tf

def input_fn(mode):
    dataset = tf.data.TFRecordDataset("a").batch(8)
    {first}
    return dataset.repeat()

estimator = tf.estimator.Estimator(model_fn=None)
estimator.predict(input_fn)
"""


@pytest.mark.parametrize(
    ("first", "count"),
    [
        ('if mode == "infer":\n        return dataset', 0),
        ('if mode == "infer":\n        dataset = dataset.take(3)', 0),
        ('if mode == "train":\n        dataset = dataset.shuffle(9)', 1),
    ],
)
def test_an_input_that_may_return_before_it_repeats_may_end(first, count):
    report = check_text(_PREDICTING.format(first=first), Settings())
    assert [f.rule for f in report.findings].count("E2S212") == count


@pytest.mark.parametrize(("training", "told"), [("", True), (", training=True", False)])
def test_batch_norm_that_does_not_train_is_told_so(training, told):
    text = f"""\
import tensorflow as tf

def model_fn(features, labels, mode):
    hidden = tf.layers.batch_normalization(features{training})
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
    (fix,) = [f.fix for f in check_text(text, Settings()).findings if f.rule == "E2S220"]
    assert ("Give training=" in fix) == told
    assert "UPDATE_OPS" in fix


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("tf.estimator.ModeKeys.TRIAN", "tf.estimator.ModeKeys has no TRIAN. Did you mean TRAIN?"),
        ("tf.estimator.ModeKeys.INFER", "tf.estimator.ModeKeys has no INFER. It has EVAL,"),
        ("tf.contrib.learn.ModeKeys.PREDICT", "tf.contrib.learn.ModeKeys has no PREDICT. It has"),
        ("tf.estimator.ModeKeys.EVAL", None),
        ("tf.contrib.learn.ModeKeys.INFER", None),
        ("tf.estimator.ModeKeys.__dict__", None),
    ],
)
def test_a_mode_that_is_misspelt_or_of_the_other_class_is_found(mode, said):
    found = [
        text for text in advice(f"def f(mode):\n    return mode == {mode}\n") if "Keys" in text
    ]
    found = [text for text in found if "has no" in text]
    assert len(found) == bool(said)
    assert all(text.startswith(said) for text in found)
