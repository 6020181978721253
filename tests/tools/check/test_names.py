"""Names are followed through aliases, imports and modules of the project; never guessed."""

from __future__ import annotations

import importlib

import pytest
from checked_programs import write

from estimator2strategy.engine.names import name_table, tables
from estimator2strategy.tools.check import checking
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.rules.tensorflow import tensorflow_names
from estimator2strategy.tools.check.settings import Settings, Target
from estimator2strategy.tools.reader.project import Project


def names(text, folder=None, **modules):
    """The canonical names of all calls in a program, None where they cannot be told."""
    path = "program.py"
    if folder is not None:
        write(folder, program=text, **modules)
        path = str(folder / "program.py")
    source = checking.parse(path, path, text)
    Project([source])
    return [call.name for call in source.calls]


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("import tensorflow as tf\ntf.layers.dense()", "tf.layers.dense"),
        ("import tensorflow\ntensorflow.layers.dense()", "tf.layers.dense"),
        ("import tensorflow.compat.v1 as tf\ntf.layers.dense()", "tf.layers.dense"),
        ("from tensorflow.compat import v1\nv1.layers.dense()", "tf.layers.dense"),
        ("import tensorflow as tf\ntf.compat.v1.layers.dense()", "tf.layers.dense"),
        ("from tensorflow.contrib import slim\nslim.conv2d()", "tf.contrib.slim.conv2d"),
        ("from tensorflow.contrib.slim import conv2d as c\nc()", "tf.contrib.slim.conv2d"),
        ("import tensorflow.contrib.slim as slim\nslim.conv2d()", "tf.contrib.slim.conv2d"),
        (
            "import tensorflow as tf\nslim = tf.contrib.slim\nslim.conv2d()",
            "tf.contrib.slim.conv2d",
        ),
        ("import estimator2strategy.tf1 as tf\ntf.layers.dense()", "tf.layers.dense"),
        (
            "from estimator2strategy import estimator\nestimator.Estimator()",
            "tf.estimator.Estimator",
        ),
        ("from estimator2strategy import TPUConfig\nTPUConfig()", "tf.estimator.tpu.TPUConfig"),
        (
            "try:\n  import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
            "  import tensorflow as tf\ntf.layers.dense()",
            "tf.layers.dense",
        ),
        ("from tensorflow import *\nplaceholder()", "tf.placeholder"),
        ("def f():\n  import tensorflow as tf\n  tf.ones()", "tf.ones"),
    ],
)
def test_alias_is_followed(program, name):
    assert names(program)[-1] == name


@pytest.mark.parametrize(
    "program",
    [
        "import tensorflow as tf\ndef f(tf):\n  tf.layers.dense()",
        "import tensorflow as tf\ntf = load()\ntf.layers.dense()",
        "import tensorflow as tf\nfor tf in modules:\n  tf.layers.dense()",
        "import tensorflow as tf\nclass A:\n  layers = tf.layers\n  def f(self): layers.dense()",
        "import numpy as tf\ntf.ones()",
    ],
)
def test_name_that_may_be_something_else_is_not_taken_for_tensorflow(program):
    assert not (names(program)[-1] or "").startswith("tf.")


def test_name_is_followed_through_modules_of_the_project(tmp_path):
    program = "from lib import ops\nfrom lib.names import *\nops.tf.ones()\ndense()\nops.make()"
    found = names(
        program,
        tmp_path,
        lib__ops="import tensorflow as tf\ndef make(): pass\n",
        lib__names="from tensorflow.layers import dense\n",
        lib____init__="",
    )
    assert found[:2] == ["tf.ones", "tf.layers.dense"]
    assert found[2].endswith("ops.py::make")


def test_module_that_imports_itself_in_a_circle_ends(tmp_path):
    found = names("from a import x\nx()", tmp_path, a="from b import x\n", b="from a import x\n")
    assert found == [None]


def test_modules_that_import_all_of_one_another_end(tmp_path):
    star = "from {} import *\n"
    found = names(star.format("a") + "x()", tmp_path, a=star.format("b"), b=star.format("a"))
    assert found == ["builtins.x"]


def test_module_of_the_project_that_cannot_be_parsed_is_unknown(tmp_path):
    assert names("from a import x\nx()", tmp_path, a="def (:\n") == [None]


class TestModelAcrossModules:
    """The part of a program that a TPU executes is found wherever it is written."""

    MODEL = (
        "import tensorflow as tf\nimport layers\n\n"
        "def model_fn(features, labels, mode, params):\n"
        "    loss = layers.Net().loss(features)\n"
        "    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)\n"
    )
    LAYERS = (
        "import tensorflow as tf\n\n"
        "class Net:\n"
        "    def __init__(self):\n"
        "        tf.py_func(abs, [1.0], tf.float32)\n\n"
        "def unused(x):\n"
        "    tf.py_func(abs, [x], tf.float32)\n"
    )

    def test_code_that_model_fn_calls_is_tpu_code_and_other_code_is_not(self, tmp_path):
        write(tmp_path, model=self.MODEL, layers=self.LAYERS)
        report = checking.check([str(tmp_path)], Settings(root=tmp_path))
        assert [(f.path, f.line) for f in report.findings if f.rule == "E2S401"] == [
            ("layers.py", 5)
        ]

    def test_code_that_runs_only_without_a_tpu_is_not(self, tmp_path):
        model = self.MODEL.replace(
            "    loss = layers", "    if not params['use_tpu']:\n        loss = layers"
        )
        write(tmp_path, model=model, layers=self.LAYERS)
        report = checking.check([str(tmp_path)], Settings(root=tmp_path))
        assert [f for f in report.findings if f.rule == "E2S401"] == []

    CHOICE = """\
import tensorflow as tf

def script(x):
    return tf.py_func(abs, [x], tf.float32)

def net(x, kind="plain", scale=None):
    if scale is not None:
        x = script(x)
    return script(x) if kind == "script" else x

def model_fn(features, labels, mode, params):
    loss = {}
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
"""

    @pytest.mark.parametrize(
        ("call", "times"),
        [
            ("net(features)", 0),
            ("net(features, 'plain')", 0),
            ("net(features, 'script')", 1),
            ("net(features, kind='script')", 1),
            ("net(features, params['kind'])", 1),
            ("net(features, **params)", 1),
            ("net()", 0),
            ("net(features, scale=2)", 1),
            ("net(features, scale=params['scale'])", 1),
            ("net(features) + net(features, 'script')", 1),
        ],
    )
    def test_code_in_a_branch_that_a_call_does_not_take_is_not(self, call, times):
        report = check_text(self.CHOICE.format(call))
        assert len([f for f in report.findings if f.rule == "E2S401"]) == times

    def test_a_constant_is_handed_on(self):
        through = "def outer(x, kind):\n    return net(x, kind)\n\ndef model_fn("
        text = self.CHOICE.replace("def model_fn(", through)
        for call, times in (("outer(features, 'plain')", 0), ("outer(features, 'script')", 1)):
            report = check_text(text.format(call))
            assert len([f for f in report.findings if f.rule == "E2S401"]) == times

    def test_a_constant_for_the_method_of_a_base_stands_after_self(self):
        base = (
            "class Base:\n    def __init__(self, kind=None, x=None):\n"
            "        self.x = script(x) if kind == 'script' else x\n\n"
            "class Net(Base):\n    def __init__(self, x):\n        Base.__init__(self, {}, x)\n\n"
        )
        text = self.CHOICE.replace("def model_fn(", base + "def model_fn(")
        for kind, times in (("'plain'", 0), ("'script'", 1)):
            report = check_text(text.format(kind, "Net(features).x"))
            assert len([f for f in report.findings if f.rule == "E2S401"]) == times

    def test_a_branch_that_asks_for_a_name_bound_again_may_be_taken(self):
        text = self.CHOICE.replace("    return script", "    kind = read()\n    return script")
        report = check_text(text.format("net(features)"))
        assert len([f for f in report.findings if f.rule == "E2S401"]) == 1


class TestTarget:
    LAYER = "import tensorflow as tf\nx = tf.layers.dense(1, 2)\n"

    def severities(self, text, target):
        report = check_text(text, Settings(target=target))
        return [str(f.severity) for f in report.findings if f.rule == "E2S102"]

    def test_what_the_facade_has_is_a_note(self):
        assert self.severities(self.LAYER, Target.FACADE) == ["info"]

    def test_on_tensorflow_itself_it_is_an_error(self):
        assert self.severities(self.LAYER, Target.TF2) == ["error"]

    def test_file_that_names_this_package_has_moved(self):
        text = f"from estimator2strategy import estimator\n{self.LAYER}"
        assert self.severities(text, Target.FACADE) == ["error"]

    def test_import_of_the_facade_is_no_finding(self):
        text = self.LAYER.replace("import tensorflow", "import estimator2strategy.tf1")
        assert self.severities(text, Target.TF2) == []

    def test_attributes_of_flags_are_one_use(self):
        text = "import tensorflow as tf\nFLAGS = tf.flags.FLAGS\nx = FLAGS.a + FLAGS.b\n"
        assert self.severities(text, Target.TF2) == ["error"]


@pytest.mark.parametrize("first", ["estimator2strategy.tf1", "tensorflow"])
def test_deep_imports_are_reported_where_they_do_not_work(first):
    known = ["contrib.tpu.python.tpu", "contrib.layers.python.layers.layers", "train", "estimator"]
    unknown = ["contrib.nothing", "nothing"]
    program = "".join(f"import {first}.{name}\n" for name in [*known, *unknown])
    program += f"import {first} as tf\ntf.estimator.Estimator\n"
    findings = check_text(program).findings
    reported = {f.line for f in findings if f.rule in ("E2S101", "E2S105")}
    assert reported == {5, 6}


def advice(text, rule):
    return [f.fix for f in check_text(text, Settings()).findings if f.rule == rule]


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        ("from tensorflow.tools.graph_transforms import TransformGraph", ["E2S101"]),
        ("from tensorflow.tools.compatibility import tf_upgrade_v2", []),
        ("from tensorflow.compiler.xla.experimental.xla_sharding import xla_sharding", ["E2S102"]),
        ("from tensorflow.compiler.tf2xla.python import xla", []),
        ("from tensorflow.python import ops\n\ngraph = ops.Graph()", ["E2S102"]),
        ("from tensorflow.python.ops import math_ops\n\nx = math_ops.add(1, 2)", []),
    ],
)
def test_what_is_gone_from_the_files_of_tensorflow_is_told(lines, rules):
    report = check_text(lines + "\n", Settings(target=Target.TF2))
    told = [f.rule for f in report.findings if f.severity is not Severity.INFO]
    assert [rule for rule in told if rule != "E2S104"] == rules


def test_the_advice_about_a_name_that_contrib_never_had():
    text = "import tensorflow as tf\n\nx = tf.contrib.{}\n"
    assert advice(text.format("data._make_csv_dataset"), "E2S101") == [
        "Did you mean tf.contrib.data.make_csv_dataset?"
    ]
    assert advice(text.format("layers.python.layers.layers._no_such_name"), "E2S101") == [
        "If the program needs it, copy it from TensorFlow 1.15's "
        "tensorflow/contrib/layers/python/layers/layers, with what it calls."
    ]


def test_the_advice_about_a_private_name_of_the_estimator_says_where_it_was():
    text = "from tensorflow.python.estimator.canned import dnn\n\nx = dnn._no_such_name(1)\n"
    (said,) = advice(text, "E2S101")
    assert "TensorFlow 1.15's tensorflow_estimator/python/estimator/canned/dnn," in said


def test_a_private_name_of_a_file_is_none_of_the_function_of_that_name():
    text = (
        "from tensorflow.contrib.estimator.python.estimator import multi_head\n\n\n"
        "class Head(multi_head._MultiHead):\n    pass\n"
    )
    (said,) = advice(text, "E2S101")
    assert "tensorflow/contrib/estimator/python/estimator/multi_head, with" in said


def test_a_private_module_of_the_estimator_that_is_not_used_is_no_finding():
    text = "from tensorflow.python.estimator import estimator\n"
    assert advice(text, "E2S101") == []
    assert len(advice(text + "\nx = estimator._no_such_name(1)\n", "E2S101")) == 1


@pytest.mark.parametrize("name", ["__dict__", "__doc__", "__file__", "__name__", "__spec__"])
@pytest.mark.parametrize(
    "module",
    ["", ".compat.v1", ".contrib", ".contrib.slim", ".estimator", ".estimator.tpu", ".layers"],
)
def test_what_every_module_has_is_no_finding(module, name):
    text = f"import tensorflow as tf\n\nx = tf{module}.{name}\n"
    assert [advice(text, rule) for rule in ("E2S101", "E2S105")] == [[], []]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layers.dens", "Did you mean tf.layers.dense?"),
        ("layers.Dens", "Did you mean tf.layers.Dense?"),
        ("layers.batch_norm", "Did you mean tf.layers.batch_normalization?"),
        ("layers.experimental.keras_style_scop", "Did you mean tf.layers.experimental.keras_style"),
    ],
)
def test_a_misspelt_layer_of_tf_layers_is_found(name, said):
    (fix,) = advice(f"import tensorflow as tf\n\nx = tf.{name}(1)\n", "E2S105")
    assert fix.startswith(said)
    for right in ("layers.dense", "layers.Dense.build", "layers.experimental.keras_style_scope"):
        assert advice(f"import tensorflow as tf\n\nx = tf.{right}\n", "E2S105") == []


def test_a_module_is_not_said_to_be_another_one_of_its_name():
    text = "from tensorflow.models.rnn.translate import data_utils\n"
    (said,) = advice(text, "E2S105")
    assert "tf.keras.models" not in said
    assert "tensorflow/models/rnn/translate" in said


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nn.ctc_beam_search_decoder_trie", False),
        ("nn.ctc_beam_search_decodr", True),
        ("constants", True),
        ("nn.softmax_cross_entropy_with_logits_v3", True),
        ("tpu_config", False),  # only private modules have it
    ],
)
def test_a_name_with_a_word_more_is_not_taken_for_the_one_without(name, meant):
    (said,) = advice(f"import tensorflow as tf\n\nx = tf.{name}(1)\n", "E2S105")
    assert ("Did you mean" in said) == meant


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("factorization.gmm", "sklearn.mixture.GaussianMixture"),
        ("cloud.configure_gcs", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("cloud.BigQueryReader", "BigQuery"),
        ("compiler.xla.estimator_model_fn", "TrainingOptions(jit_compile=True)"),
        ("eager.implicit_gradients", "tf.GradientTape"),
        ("eager.python.tfe.num_gpus", "tf.config.list_physical_devices('GPU')"),
        ("learn.infer", "predict"),
    ],
)
def test_the_advice_about_names_that_lie_beside_others(name, said):
    text = f"import tensorflow as tf\n\nx = tf.contrib.{name}(1)\n"
    assert said in advice(text, "E2S101")[0]


def test_the_advice_about_the_session_of_keras():
    text = "from keras.backend.tensorflow_backend import set_session\n"
    assert advice(text, "E2S109") == ["Today: tf.keras.backend."]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layers.python.encoders", "Did you mean tf.contrib.layers.python.layers.encoders?"),
        ("layer.l2_regularizer", "Did you mean tf.contrib.layers?"),
        ("opt.ElasticAverageCustomGetter", "ElasticAverageOptimizer wrapped"),
        ("opt.LazyAdamGSOptimizer", "tf.contrib.opt.LazyAdamOptimizer"),
        ("graph_editor.get_tensors", "for op in graph.get_operations() for t in op.outputs"),
        ("tfprof.ProfileContext", "tf.train.ProfilerHook"),
        (
            "seq2seq.python.ops.beam_search_decoder._beam_search_step",
            "copy it from TensorFlow 1.15's tensorflow/contrib/seq2seq/python/ops/beam_search",
        ),
        ("microsoft.dnn", "tf.contrib.microsoft is of a fork of TensorFlow, or of a release"),
        ("rnn._linear", "for its scope, put `with tf.variable_scope(...)` around the call"),
        ("training.batch_sequences_with_states", "pad the sequences in tf.data"),
    ],
)
def test_the_advice_about_a_name_of_contrib_leads_to_what_there_is(name, said):
    (fix,) = advice(f"import tensorflow as tf\n\nx = tf.contrib.{name}(1)\n", "E2S101")
    assert said in fix


def test_a_private_module_is_told_the_public_one():
    text = "import tensorflow as tf\n\nx = tf.backend_config.epsilon()\n"
    assert advice(text, "E2S105") == ["Its names are in tf.keras.backend."]


def test_the_levels_of_pythons_logging_are_told_by_tensorflows_names():
    text = "import tensorflow as tf\n\nlevel = tf.compat.v1.logging.WARNING\n"
    assert advice(text, "E2S105") == ["Did you mean tf.logging.WARN?"]


@pytest.mark.parametrize(
    ("module", "said"),
    [("tensorflow.compat.v1", "write tf.compat.v2.nn.RNNCell"), ("tensorflow", "e2s run --tf2")],
)
def test_a_name_that_compat_v1_never_had_is_told_so(module, said):
    text = f"import {module} as tf\n\nx = tf.nn.RNNCellDropoutWrapper(1)\n"
    (fix,) = advice(text, "E2S113")
    assert said in fix


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tf.image.per_image_whitening(x)", "Use tf.image.per_image_standardization."),
        ("tf.nn.deconv2d(x)", "Use tf.nn.conv2d_transpose."),
        ("tf.nn.rnn(cell, x)", "Use tf.nn.static_rnn."),
        ("tf.batch_matrix_inverse(x)", "Use tf.matrix_inverse."),
        (
            "tf.image_summary('x', x, max_images=2)",
            "Use tf.summary.image; tag is name, max_images is max_outputs.",
        ),
        ("tf.nn.seq2seq.sequence_loss(x)", "Its names are in tf.contrib.legacy_seq2seq."),
        ("tf.nn.seq2seq.my_loss(x)", "tf.contrib.legacy_seq2seq, which has no my_loss: mend the"),
    ],
)
def test_the_advice_about_names_of_tensorflow_0_can_be_followed(line, said):
    (fix,) = advice(f"import tensorflow as tf\n\nx = {line}\n", "E2S105")
    assert said in fix


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tf.ops.name_scope('a')", "Its names are in tf."),
        ("tf.math_ops.floor(x)", "Its names are in tf.math."),
        (
            "tf.tensor_util.constant_value(x)",
            "It is a private module: write `from tensorflow.python.framework import tensor_util` "
            "and tensor_util.constant_value.",
        ),
        ("tf.numbers.Real", "Python has a module of this name: write `import numbers`."),
    ],
)
def test_modules_that_are_none_of_tf_are_told_by_where_they_are(line, said):
    assert advice(f"import tensorflow as tf\n\nx = {line}\n", "E2S105") == [said]


@pytest.mark.parametrize(("name", "folder"), tensorflow_names._FOLDER_OF.items())
def test_a_private_module_lies_where_the_advice_says(name, folder):
    assert importlib.import_module(f"tensorflow.python.{folder}.{name.removeprefix('tf.')}")


@pytest.mark.parametrize("old", name_table.since_1_0())
def test_a_name_of_tensorflow_0_leads_to_one_that_is_served(old):
    row = tables.served(name_table.since_1_0()[old])
    assert getattr(row, "status", "refused") != "refused"
    assert tables.served(old) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from tensorflow.models.rnn import rnn_cell", "the names of tf.nn.rnn_cell"),
        ("from tensorflow.models.rnn import seq2seq", "the names of tf.contrib.legacy_seq2seq"),
        ("from tensorflow.models.rnn.ptb import reader", "Copy tensorflow/models/rnn/ptb from"),
        ("import tensorflow.models.image.mnist", "Copy tensorflow/models/image/mnist from"),
        ("from tensorflow.models.slim.nets import vgg", "a repository of their own"),
    ],
)
def test_the_models_of_tensorflow_0_are_told_by_where_they_are(line, said):
    (fix,) = advice(f"{line}\n", "E2S105")
    assert said in fix


def test_the_advice_about_the_graph_editor_works_with_the_variables_of_tensorflow_1():
    (fix,) = advice("import tensorflow as tf\n\nx = tf.contrib.graph_editor.sgv(1)\n", "E2S101")
    assert "tf.contrib.layers.recompute_grad after tf.enable_resource_variables()" in fix


def test_a_name_of_a_private_star_is_not_said_to_be_missing_from_a_public_one():
    text = (
        "from tensorflow.train import *\n"
        "from tensorflow.python.training.supervisor import *\n\n"
        "x = {}.get_checkpoint_state('a')\n"
    )
    assert advice(text.format("checkpoint_management"), "E2S105") == []
    alone = text.replace("from tensorflow.python.training.supervisor import *\n", "")
    assert len(advice(alone.format("checkpoint_management"), "E2S105")) == 1
    found = names(text.replace("{}.get_checkpoint_state", "Saver"))
    assert found == ["tf.train.Saver"]
