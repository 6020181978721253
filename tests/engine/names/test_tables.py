"""What the check says of a name is what TensorFlow and the facade do with it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_names

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import rows, tables
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tf1.facade.refused import Refused
from tests.tools.check.checked_programs import ENVIRONMENT

NAMES = sorted(f"{module}.{name}" for module, names in facade.names().items() for name in names)
PUBLIC = [name for name in NAMES if not name.startswith(("tf.python", "tf.contrib"))]


def has(root, name):
    value = root
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return False
    return True


TABLE = tensorflow_names.TABLE.read_text()


@pytest.mark.skipif(
    not tf.__version__.startswith(f"{rows.release(rows.TENSORFLOW)}."),
    reason="the table is made from the newest TensorFlow",
)
def test_table_is_that_of_the_newest_tensorflow():
    # In a process of its own: what is imported later adds names.
    command = [sys.executable, tensorflow_names.__file__, "--print"]
    printed = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert printed.stdout == TABLE, "Run: python tests/engine/names/tensorflow_names.py"


@pytest.mark.oldest
def test_name_that_is_said_to_be_gone_is_gone():
    gone = [name for name in PUBLIC if tables.exists(name, "v2") is False]
    assert len(gone) == 1132
    # What TensorFlow 2.16 still had and 2.21 has not.
    assert [name for name in gone if has(tf, name)] == [] or tf.__version__ < "2.21"


def test_name_that_is_said_to_be_there_is_there():
    there = [name for name in PUBLIC if tables.exists(name, "v2")]
    assert len(there) == 1715
    assert [name for name in there if not has(tf, name)] == []


def test_name_of_compat_v1_that_is_said_to_be_gone_is_gone():
    gone = [name for name in PUBLIC if tables.exists(name, "v1") is False]
    estimator = ("tf.estimator", "tf.contrib")
    unexpected = [n for n in gone if has(tf.compat.v1, n) and not n.startswith(estimator)]
    # There beside Keras 2 only, and known to be so.
    assert [n for n in unexpected if not n.startswith(tables.NEED_KERAS_2)] == []


def test_name_that_is_said_to_be_refused_is_refused():
    refused = [n for n in PUBLIC if (row := tables.served(n)) and row.status == "refused"]
    assert refused
    served = [n for n in refused if not isinstance(namespace.resolve(n), Refused)]
    assert served == []


def test_name_of_the_estimator_that_is_said_to_work_works():
    names = [n for n in PUBLIC if n.startswith("tf.estimator.")]
    working = [n for n in names if (row := tables.served(n)) and row.status != "refused"]
    assert "tf.estimator.train_and_evaluate" in working
    assert [n for n in working if isinstance(namespace.resolve(n), Refused)] == []


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("tf.flags.FLAGS.batch_size", "tf.flags.FLAGS"),
        ("tf.estimator.ModeKeys.TRAIN", "tf.estimator.ModeKeys"),
        ("tf.float32.as_numpy_dtype", "tf.float32"),
        ("tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2", "tf.contrib.tpu.InputPipelineConfig"),
        ("tf.nn.relu", "tf.nn.relu"),
        ("tf.no_such", "tf.no_such"),
    ],
)
def test_name_belongs_to_a_symbol(name, symbol):
    assert tables.public(name) == symbol


@pytest.mark.parametrize(
    "name",
    [
        "tf.python.estimator.tpu.tpu_estimator.TPUEstimator",
        "tf.python.tpu.tpu_config.TPUConfig",
        "tf.python.estimator.estimator._load_global_step_from_checkpoint_dir",
        "tf.contrib.tpu.python.tpu.tpu_config.RunConfig",
        "tf.contrib.slim.tfexample_decoder.Image",
        "tf.contrib.slim.python.slim.nets.vgg.vgg_16",
        "tf.contrib.layers.python.layers.layers.conv2d",
    ],
)
def test_deep_name_that_is_said_to_work_works(name):
    assert tables.served(name).status != "refused"
    assert not isinstance(namespace.resolve(name), Refused)
