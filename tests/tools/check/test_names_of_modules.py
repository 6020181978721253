"""Names that a program's modules get from one another."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.settings import Settings


@pytest.fixture
def found(tmp_path):
    def run(rule, **files):
        (tmp_path / ".git").mkdir()
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        report = check([str(tmp_path)], Settings())
        return [f.message for f in report.findings if f.rule == rule]

    return run


STAR = "from helpers import *\n\nprint(load(), save())\n"


def test_a_name_that_a_star_does_not_bring_is_found(found):
    assert found("E2S007", train=STAR, helpers="def load():\n    pass\n") == [
        "nothing binds the name save"
    ]


@pytest.mark.parametrize(
    "helpers",
    [
        "def load():\n    pass\n\n\nsave = load\n",
        "from numpy import *\n",
        "globals().update(load=1)\n",
        "from more import *\n",
    ],
)
def test_a_name_that_a_star_may_bring_is_not(found, helpers):
    more = "def load():\n    pass\n\n\nfor save in []:\n    pass\n"
    assert found("E2S007", train=STAR, helpers=helpers, more=more) == []


def test_a_name_with_an_underscore_is_not_brought(found):
    train = "from helpers import *\n\nprint(_load())\n"
    helpers = "def _load():\n    pass\n"
    assert found("E2S007", train=train, helpers=helpers) == ["nothing binds the name _load"]


def test_a_name_that_a_module_does_not_have_is_found(found):
    train = "from helpers import load, save\n"
    assert found("E2S010", train=train, helpers="load = 1\n") == ["helpers.py has no name save"]


@pytest.mark.parametrize("module", ["io", "abc", "codecs", "stat"])
def test_no_file_hides_a_module_that_python_has_loaded(found, module):
    train = f"import tensorflow as tf\nfrom {module} import name\n"
    assert found("E2S010", train=train, **{module: "other = 1\n"}) == []


PACKAGE = "{}\n\nMODELS = {{'0': nets.Net}}\n"


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("import package.nets", 0),
        ("from package.nets import Net", 0),
        ("from .nets import Net", 0),
        ("from .blocks import x", 0),
        ("import os", 1),
    ],
)
def test_an_import_of_its_own_module_binds_it_in_the_file_of_a_package(found, text, times):
    files = {"package__in____init__": PACKAGE.format(text)}
    files |= {"package__in__nets": "class Net:\n    pass\n", "package__in__blocks": "x = 1\n"}
    assert len(found("E2S007", **files)) == times


def test_an_import_of_a_module_beside_it_does_not_bind_it_in_any_other_file(found):
    files = {"package__in__use": PACKAGE.format("import package.nets")}
    files |= {"package__in__nets": "class Net:\n    pass\n", "package__in____init__": ""}
    assert len(found("E2S007", **files)) == 1


def test_an_import_through_a_module_of_the_program_is_reported_there(found):
    names = "from tensorflow.python.platform import flags\n"
    assert len(found("E2S104", train="from names import flags\n", names=names)) == 1


def test_a_name_with_an_underscore_may_be_a_compiled_module(found):
    program = {"train": "from helpers import _C\n", "helpers__in____init__": "load = 1\n"}
    assert found("E2S010", **program) == []


@pytest.mark.parametrize(
    ("name", "said"), [("more", []), ("most", ["augment.py has no name most"])]
)
def test_a_folder_that_is_no_package_may_be_meant(found, name, said):
    program = {
        "augment__in__augment": "load = 1\n",
        "augment__in__more": "save = 1\n",
        "augment__in__train": f"from augment import {name}\n",
    }
    assert found("E2S010", **program) == said


def test_a_package_is_named_by_its_folder(found):
    program = {"train": "from helpers import Loader\n", "helpers__in____init__": "load = 1\n"}
    assert found("E2S010", **program) == ["helpers/__init__.py has no name Loader"]


@pytest.mark.parametrize(
    ("train", "helpers"),
    [
        ("from helpers import load\n", "if True:\n    import load\n"),
        ("from helpers import load\n", "def __getattr__(name):\n    return 1\n"),
        ("from helpers import load\n", "from elsewhere import *\n"),
        ("from helpers import load\n", "def f():\n    global load\n    load = 1\n"),
        ("try:\n    from helpers import load\nexcept ImportError:\n    load = 1\n", ""),
        ("from pkg import load\n", ""),
    ],
)
def test_a_name_that_a_module_may_have_is_not(found, train, helpers):
    assert found("E2S010", train=train, helpers=helpers, pkg__in____init__="") == []


def test_a_module_of_the_same_name_elsewhere_may_be_meant(found):
    train = "from helpers import load\n"
    assert found("E2S010", train=train, helpers="", src__in__helpers="load = 1\n") == []


def test_a_star_may_mean_another_module_of_that_name(found):
    save = "def save():\n    pass\n\n\nload = save\n"
    assert found("E2S007", train=STAR, helpers="", src__in__helpers=save) == []


def test_a_folder_that_is_called_as_a_library_does_not_hide_it(found):
    text = "from sklearn import datasets\n\nx = datasets.load_boston()\n"
    assert found("E2S109", sklearn__in__boston=text) == ["sklearn.datasets.load_boston is gone"]


def test_a_package_may_bring_names_of_its_own_beside_those_of_tensorflow(found):
    package = "from tensorflow import *\nfrom .main import *\n"
    train = "import sugar as tf\n\nwith tf.sg_context():\n    tf.placeholder(tf.sg_other)\n"
    main = "def sg_context():\n    pass\n"
    said = found("E2S105", train=train, sugar__in____init__=package, sugar__in__main=main)
    assert said == ["tf.sg_other is neither in TensorFlow 1.15 nor in 2"]


@pytest.mark.parametrize(
    "main", ["sg_eps = 1e-7\n", "import numpy as np\n\nsg_eps = np.pi\n", "from .base import *\n"]
)
def test_a_constant_of_such_a_package_is_not_looked_for_in_tensorflow(found, main):
    package = "from tensorflow import *\nfrom .main import *\n"
    said = found(
        "E2S105",
        train="import sugar as tf\n\nx = tf.sg_eps + tf.sg_other\n",
        sugar__in____init__=package,
        sugar__in__main=main,
        sugar__in__base="sg_eps = 1e-7\n",
    )
    assert said == ["tf.sg_other is neither in TensorFlow 1.15 nor in 2"]


def test_a_name_that_another_file_of_the_program_gives_tensorflow(found):
    patch = "import tensorflow as tf\n\ntf.redcue = tf.reduce_sum\n"
    train = "import patch\nimport tensorflow as tf\n\nx = tf.redcue(1) + tf.reduce_all_(2)\n"
    said = found("E2S105", train=train, patch=patch)
    assert said == ["tf.reduce_all_ is neither in TensorFlow 1.15 nor in 2"]


PATCH = "import tensorflow as tf\n\ntf.redcue = tf.reduce_sum\n"
MODEL_OF_PATCH = "import tensorflow as tf\n\nx = tf.redcue(1)\n"


@pytest.mark.parametrize(
    ("files", "times"),
    [
        ({"train": "import patch, model\n"}, 0),
        ({"train": "import model\n", "other": "import patch\n"}, 1),
        ({"train": "import patch\nimport importlib\n\nimportlib.import_module('model')\n"}, 0),
        # `model` alone is not in the package whose file imports the patch.
        ({"pack__in____init__": "import patch\n", "pack__in__net": MODEL_OF_PATCH}, 1),
        ({"conftest": PATCH}, 0),
        ({}, 1),
    ],
)
def test_a_name_that_a_file_gives_tensorflow_is_there_for_the_program_that_runs_it(
    found, files, times
):
    files = {"model": MODEL_OF_PATCH, "patch": PATCH, **files}
    assert len(found("E2S105", **files)) == times


@pytest.mark.parametrize(("file", "said"), [("iris_data", True), ("data", False)])
def test_a_module_beside_the_file_is_none_of_tensorflow(file, said, tmp_path):
    (tmp_path / "train.py").write_text("from tensorflow import iris_data\n")
    (tmp_path / f"{file}.py").write_text("")
    (finding,) = check([str(tmp_path)], Settings()).findings
    assert ("`import iris_data`" in finding.fix) == said


@pytest.mark.parametrize(("helpers", "times"), [("", 1), ("map = [1][0]\n", 0)])
def test_a_built_in_function_that_a_star_hides_is_not_pythons(found, helpers, times):
    train = "from helpers import *\n\nx = map(str, [1])[0]\n"
    assert len(found("E2S008", train=train, helpers=helpers)) == times


@pytest.mark.parametrize(
    ("file", "text", "times"),
    [
        ("jupyterhub_config", "c.JupyterHub.port = 80\nload_subconfig('other.py')\n", 0),
        ("settings", "c = get_config()\nc.JupyterHub.port = 80\n", 0),
        ("settings", "def f():\n    return get_config()\n", 1),
        ("jupyterhub_config", "c.JupyterHub.port = no_name\n", 1),
    ],
)
def test_names_that_jupyter_gives_its_settings_are_bound(found, file, text, times):
    assert len(found("E2S007", **{file: text})) == times


MODEL = "import tensorflow as tf\n\n\ndef model_fn(features, mode):\n{}\n    return {}\n"
SYNC = "    tf.train.SyncReplicasOptimizer(features, 4)"
QUEUE = (
    "import tensorflow as tf\n\n\ndef batches(params):\n    return tf.train.batch([params.x], 8)\n"
)


@pytest.mark.parametrize("imported", [True, False])
def test_queues_and_optimizers_are_an_estimator_s_if_its_program_imports_them(imported, tmp_path):
    model = MODEL.format("    pass", "tf.estimator.tpu.TPUEstimatorSpec(mode)")
    files = {"queues": QUEUE, "sync": MODEL.format(SYNC, "0")}
    files["model"] = "import queues, sync\n" * imported + model
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    severity = "WARNING" if imported else "INFO"
    findings = check([str(tmp_path)], Settings()).findings
    said = [(f.rule, f.severity.name) for f in findings if f.rule in ("E2S223", "E2S301")]
    assert said == [("E2S301", severity), ("E2S223", severity)]


@pytest.mark.parametrize(("text", "severity"), [("import model\n", "WARNING"), ("", "INFO")])
def test_a_strategy_of_another_program_refuses_no_optimizer(text, severity, tmp_path):
    hook = "    features.make_session_run_hook(True)"
    model = MODEL.format(f"{SYNC}\n{hook}", "tf.estimator.EstimatorSpec(mode)")
    train = f"{text}import tensorflow as tf\n\ntf.estimator.RunConfig(train_distribute=strategy)\n"
    (tmp_path / "model.py").write_text(model)
    (tmp_path / "train.py").write_text(train)
    findings = check([str(tmp_path)], Settings()).findings
    assert [f.severity.name for f in findings if f.rule == "E2S223"] == [severity]


@pytest.mark.parametrize(("use_tpu", "times"), [("False", 0), ("FLAGS.use_tpu", 1), ("True", 1)])
def test_a_program_that_never_takes_a_tpu_has_no_finding_about_one(found, use_tpu, times):
    summary = "    tf.summary.scalar('loss', features)"
    model = MODEL.format(summary, "tf.contrib.tpu.TPUEstimatorSpec(mode, loss=features)")
    train = (
        "import tensorflow as tf\nfrom model import model_fn\n\n"
        f"tf.contrib.tpu.TPUEstimator(model_fn, use_tpu={use_tpu})\n"
    )
    assert len(found("E2S226", model=model, train=train)) == times


@pytest.mark.parametrize(
    ("task", "count"),
    [
        ("import model\n\nmodel.BATCH_SIZE = 3\n", 0),
        ("from trainer import model as m\n\nm.BATCH_SIZE = 3\n", 0),
        ("import model\n\nmodel.OTHER = 3\n", 1),
        ("import model\n\nmodel.Model.BATCH_SIZE = 3\n", 1),
    ],
)
def test_a_name_that_another_file_sets_in_a_module_is_bound(found, task, count):
    model = "class Model:\n    pass\n\n\ndef size():\n    return BATCH_SIZE\n"
    files = {"trainer__in__model": model, "trainer__in__task": task}
    assert len(found("E2S007", **files)) == count


@pytest.mark.parametrize("name", ["__name__", "__doc__", "__dict__", "__spec__", "__package__"])
def test_names_that_python_gives_every_module_are_no_findings(found, name):
    text = f"import tensorflow as tf\nimport helpers\n\nprint(helpers.{name}, helpers.other)\n"
    text += f"print(tf.{name}, tf.estimator.{name}, tf.layers.{name})\n"
    assert found("E2S014", train=text, helpers="x = 1\n") == ["helpers.py has no name other"]


def test_misspelt_layers_are_known_by_name(found):
    text = "import tensorflow as tf\n\na = tf.layers.dens(1, 8)\nb = tf.layers.batch_norm(a)\n"
    said = "is neither in TensorFlow 1.15 nor in 2"
    assert found("E2S105", train=text) == [
        f"tf.layers.dens {said}",
        f"tf.layers.batch_norm {said}",
    ]
