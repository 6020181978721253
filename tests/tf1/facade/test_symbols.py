"""Every name of TF 1.15 works, or is refused by name with what to do."""

from __future__ import annotations

import ast

import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.engine.names import name_table
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tf1.facade.refused import Refused
from tests.test_package import in_fresh_process
from tests.tf1.facade import symbol_table

pytestmark = pytest.mark.oldest


def _names():
    return [
        f"{m}.{n}" for m, listed in name_table.names().items() for n in listed if m != "tf.contrib"
    ]


def test_every_public_name_of_tensorflow_1_15_works_or_is_refused():
    absent = []
    for name in _names():
        try:
            namespace.resolve(name)
        except AttributeError:
            absent.append(name)
    assert len(_names()) == 4154
    assert absent == []


def test_every_row_of_the_table_leads_somewhere():
    for name, row in name_table.rows().items():
        assert (row.status == "refused") == (not row.home), name
        assert row.advice or row.home, name
        namespace.from_row(row)


def test_the_table_is_read_without_tensorflow():
    modules = in_fresh_process(
        "from estimator2strategy.engine.names import name_table\n"
        "import sys\n"
        "print(name_table.find('tf.nn.rnn_cell.LSTMCell').home)\n"
        "print([m for m in ('tensorflow', 'numpy', 'keras') if m in sys.modules])"
    )
    home, imported = modules.splitlines()
    assert home == "tf_keras.api._v1.keras.__internal__.legacy.rnn_cell:LSTMCell"
    assert ast.literal_eval(imported) == []


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("tf.nn.dropout", "tensorflow.compat.v1:nn.dropout"),
        ("tf.compat.v1.nn.dropout", "tensorflow.compat.v1:nn.dropout"),
        ("tf.app.flags.DEFINE_string", "tensorflow.compat.v1:flags.DEFINE_string"),
        ("tf.keras.layers.Dense", "tf_keras.api._v1.keras:layers.Dense"),
        (
            "tf.python.estimator.model_fn.ModeKeys.EVAL",
            "estimator2strategy.estimator:ModeKeys.EVAL",
        ),
        (
            "tensorflow_estimator.python.estimator.export.export_output.PredictOutput",
            "estimator2strategy.estimator:export.PredictOutput",
        ),
    ],
)
def test_the_table_says_where_a_name_lives(name, home):
    assert name_table.find(name).home == home


def test_the_table_does_not_know_what_tensorflow_1_15_had_not():
    assert name_table.find("tf.softmax") is None


def test_what_public_programs_use_works_as_the_migration_guide_says():
    rows = symbol_table.read()
    broken = [r.symbol for r in rows if r.status == "works" and _status(r.symbol) != "works"]
    assert broken == []
    uses = sum(row.uses for row in rows if row.status == "works")
    assert (uses, sum(row.uses for row in rows)) == (93821, 94021)
    common = [row.status for row in rows if row.repositories >= 3]
    assert (common.count("works"), len(common)) == (911, 919)


def _status(symbol: str) -> str:
    return symbol_table.status(symbol)[0]


def test_an_unknown_name_is_an_error_that_names_the_nearest():
    with pytest.raises(
        AttributeError, match=r"TF 1.15 had no tf.placeholdr. Did you mean"
    ) as error:
        _ = tf.placeholdr
    assert "tf.placeholder?" in str(error.value)
    assert "r1.15/api_docs/python/tf " in str(error.value)
    assert error.value.name == "placeholdr"
    with pytest.raises(AttributeError, match=r"Did you mean tf.nn.dropout\?"):
        _ = tf.nn.dropuot


@pytest.mark.parametrize(
    ("name", "since"), [("models", "tf.nn.rnn_cell"), ("mul", "tf.multiply"), ("pack", "tf.stack")]
)
def test_a_name_from_before_tensorflow_1_0_is_an_error_that_says_what_it_is_now(name, since):
    with pytest.raises(AttributeError, match=rf"no tf.{name}. Did you mean {since}\?"):
        getattr(tf, name)


def test_a_refused_name_imports_and_says_at_its_use_what_to_do():
    refused = tf.estimator.BoostedTreesClassifier
    assert not isinstance(3, refused)
    uses = (refused, lambda: refused.from_config, lambda: refused[0], lambda: list(refused))
    for use in uses:
        with pytest.raises(UnsupportedError, match=r"BoostedTreesClassifier.*pip install ydf"):
            use()
    with pytest.raises(UnsupportedError, match="pip install ydf"):

        class Forest(refused):
            pass


def test_a_name_of_a_refused_module_imports_and_says_at_its_use_what_to_do():
    inference = tf.examples.tutorials.mnist.mnist.inference
    with pytest.raises(UnsupportedError, match=r"mnist.mnist.inference .*tf.layers"):
        inference(None, 1, 1)


def test_a_name_that_was_private_to_the_estimator_is_refused_at_its_use():
    head = tf.python.estimator.canned.head
    assert isinstance(head._no_such_head, Refused)
    with pytest.raises(UnsupportedError, match=r"tf.python.estimator.canned.head._no_such_head"):
        head._no_such_head()


def test_star_import_gives_the_names_of_tensorflow_and_nothing_of_ours():
    names = {}
    exec("from estimator2strategy.tf1 import *", names)
    assert {"float32", "layers", "placeholder", "Session", "contrib", "estimator"} <= set(names)
    assert {"namespace", "import_module", "importlib"}.isdisjoint(names)
    assert set(dir(tf)) > {"float32", "layers"}


def test_no_row_refuses_a_name_that_works():
    stale = [
        name
        for name, row in name_table.rows().items()
        # Of those that are announced, some may have come meanwhile.
        if row.status == "refused" and "carried over yet" not in row.advice
        if not isinstance(namespace.resolve(name), Refused)
    ]
    assert stale == []


@pytest.mark.parametrize(
    "name",
    [
        "tf.estimator.nonsense",
        "tf.python.estimator.nonsense",
        "tf.python.estimator.canned.head._no_such",
        "tensorflow_estimator.python.estimator.nonsense",
        "tf.estimator.tpu.nonsense",
    ],
)
def test_the_table_does_not_say_that_an_unknown_name_works(name):
    assert name_table.find(name) is None
