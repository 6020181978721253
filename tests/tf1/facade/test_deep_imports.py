"""Imports of a program work with their first word changed, however deep they are."""

from __future__ import annotations

import importlib
import operator
import sys

import pytest

from estimator2strategy.engine.names import name_table
from estimator2strategy.tf1 import contrib
from estimator2strategy.tf1.facade import namespace
from tests.test_package import in_fresh_process

FACADE = "estimator2strategy.tf1"
PRIVATE = {
    "tf.python.framework.ops",
    "tf.python.ops.control_flow_ops",
    "tf.python.platform.tf_logging",
    "tf.python.estimator.canned.head",
    "tf.python.keras.layers",
}

pytestmark = pytest.mark.oldest


@pytest.mark.parametrize("modules", ["public", "contrib", "private"])
def test_every_module_of_the_facade_can_be_imported(modules):
    names = {
        "public": name_table.names().keys() - {"tf", "tf.contrib"},
        "contrib": contrib.table().modules,
        "private": PRIVATE,
    }[modules]
    missing = []
    for name in sorted(names):
        try:
            found = importlib.import_module(FACADE + name.removeprefix("tf"))
        except ImportError as error:
            missing.append(f"{name}: {error}")
            continue
        if modules == "private":
            assert found is namespace.resolve(name), name
    assert missing == []


@pytest.mark.parametrize(
    "statement",
    [
        "from estimator2strategy.tf1.contrib.tpu.python.tpu import tpu_config",
        "from estimator2strategy.tf1.contrib.tpu.python.tpu.tpu_config import RunConfig",
        "import estimator2strategy.tf1.contrib.slim as slim",
        "import estimator2strategy.tf1.contrib.layers.python.layers.layers as layers",
        "from estimator2strategy.tf1.python.framework import ops",
        "from estimator2strategy.tf1.python.autograph import convert, do_not_convert, to_graph",
        "from estimator2strategy.tf1.python.ops.rnn_cell_impl import LSTMCell",
        "from estimator2strategy.tf1.train import Saver, SessionRunHook",
        "from estimator2strategy.tf1.keras.layers import Dense",
        "from estimator2strategy.tf1.estimator.export import ServingInputReceiver",
        "from estimator2strategy.tf1.contrib.layers import *",
    ],
)
def test_an_import_with_its_first_word_changed_works(statement):
    exec(statement, {})


def test_the_first_import_of_a_process_may_be_deep():
    program = (
        "from estimator2strategy.tf1.contrib.tpu.python.tpu import tpu_config\n"
        "import estimator2strategy.tf1 as tf\n"
        "print(tpu_config.TPUConfig is tf.contrib.tpu.TPUConfig)"
    )
    assert in_fresh_process(program) == "True"


@pytest.mark.parametrize("name", ["contrib.nothing", "nothing", "train.Saver", "facade.nothing"])
def test_what_is_no_module_cannot_be_imported_as_one(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{FACADE}.{name}")


def test_an_import_leaves_the_modules_of_tensorflow_as_they_are():
    import tensorflow.compat.v1.losses as losses

    spec = losses.__spec__
    importlib.import_module(f"{FACADE}.python.ops.array_ops")
    importlib.import_module(f"{FACADE}.losses")
    assert losses.__spec__ is spec
    array_ops = importlib.import_module("tensorflow.python.ops.array_ops")
    assert array_ops.__spec__.name == "tensorflow.python.ops.array_ops"
    # None of its files ran a second time.
    names = {m.__name__ for m in sys.modules.values() if hasattr(m, "__file__")}
    facades = {name for name in names if name.startswith(f"{FACADE}.")}
    files = ("contrib", "facade", "layers", "recurrent")
    assert {name for name in facades if name.split(".")[2] not in files} == set()


def test_private_names_that_programs_call_are_there():
    import estimator2strategy.tf1 as tf

    condition = tf.python.layers.utils.smart_cond
    assert condition(True, lambda: 1, lambda: 2) == 1
    ops = tf.contrib.distribute.python.cross_tower_ops.AllReduceCrossTowerOps
    assert ops is tf.contrib.distribute.AllReduceCrossTowerOps


def test_modules_of_ops_are_also_in_the_package_above():
    from estimator2strategy.tf1.python import math_ops, state_ops
    from estimator2strategy.tf1.python.ops import math_ops as below

    assert math_ops is below
    assert callable(state_ops.assign_add)


def test_ops_of_tensorflow_python_is_the_framework_and_the_package_of_ops():
    from estimator2strategy.tf1.python import ops
    from estimator2strategy.tf1.python.framework import ops as framework
    from estimator2strategy.tf1.python.ops import math_ops

    assert ops.convert_to_tensor is framework.convert_to_tensor
    assert ops.Tensor is framework.Tensor
    assert callable(math_ops.add)


@pytest.mark.parametrize(
    ("private", "public"),
    [
        ("python.shape", "shape"),
        ("python.ConfigProto", "ConfigProto"),
        ("python.framework.ops.enable_tensor_equality", "enable_tensor_equality"),
        ("python.ops.nn.dynamic_rnn", "nn.dynamic_rnn"),
        ("python.ops.nn.rnn_cell", "nn.rnn_cell"),
        ("python.ops.random_ops.random_crop", "random_crop"),
        ("python.ops.standard_ops.stack", "stack"),
        ("python.ops.variable_scope.resource_variables_enabled", "resource_variables_enabled"),
        ("python.ops.variables.is_variable_initialized", "is_variable_initialized"),
    ],
)
def test_private_modules_have_the_public_names_that_they_imported(private, public):
    module, _, name = private.rpartition(".")
    found: dict = {}
    exec(f"from {FACADE}.{module} import {name} as found", found)
    import estimator2strategy.tf1 as tf

    assert found["found"] is operator.attrgetter(public)(tf)


def test_a_private_module_has_no_name_that_nobody_had():
    nn = importlib.import_module(f"{FACADE}.python.ops.nn")
    with pytest.raises(AttributeError, match=r"TF 1\.15 had no tf\.python\.ops\.nn\.nothing"):
        nn.nothing  # noqa: B018
