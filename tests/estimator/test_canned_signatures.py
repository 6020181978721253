"""The constructors of canned Estimators are those of TF 1.15 and 2.15, in one table."""

from __future__ import annotations

import pytest

import estimator2strategy.tf1 as tf1
from estimator2strategy import estimator
from estimator2strategy.estimator.canned import construction
from estimator2strategy.estimator.canned.construction import canned
from tests.estimator import canned_signatures

RECORDED = canned_signatures.read()
# TF 1.15 had these, and 2.15 has one argument more.
ADDED = {
    "tf.compat.v1.estimator.DNNLinearCombinedEstimator": "batch_norm=False",
    "tf.compat.v1.estimator.LinearEstimator": "warm_start_from=None",
}
# Its constructor does more than hand its arguments on.
NOT_IN_THE_TABLE = {"tf.contrib.learn.DynamicRnnEstimator"}


def ours(name):
    """The class of the package that serves a class of TensorFlow."""
    module, _, kind = name.rpartition(".")
    if module == "tf.compat.v1.estimator":
        return getattr(estimator, kind)
    if module == "tf.estimator":
        return getattr(estimator, f"{kind}V2")
    if module == "tf.estimator.experimental":
        return getattr(estimator.experimental, kind)
    return getattr(getattr(tf1.contrib, module.rpartition(".")[2]), kind)


@pytest.mark.parametrize(
    ("version", "name"), [(v, n) for v, names in RECORDED.items() for n in names]
)
def test_a_constructor_takes_the_arguments_of_the_original(version, name):
    recorded = RECORDED[version][name].split(", ")
    found = canned_signatures.written(ours(name).__init__).split(", ")
    if version == "1.15" and name in ADDED:
        found.remove(ADDED[name])
    assert found == recorded


def test_the_table_has_the_recorded_classes_and_no_other():
    recorded = {name for names in RECORDED.values() for name in names}
    assert set(construction._signatures()) == recorded - NOT_IN_THE_TABLE


def test_an_argument_that_a_canned_class_does_not_take_is_refused_with_its_line():
    with pytest.raises(TypeError) as refused:
        estimator.DNNClassifier([2], [], hiden_units=[2])
    assert "DNNClassifier.__init__ got an unexpected keyword argument 'hiden_units'" in str(
        refused.value
    )
    assert "test_canned_signatures.py" in str(refused.value)
    with pytest.raises(TypeError, match=r"LinearClassifier\.__init__: missing a required argument"):
        tf1.contrib.learn.LinearClassifier()


def test_a_subclass_of_a_program_calls_the_constructor_of_its_base():
    class Mine(estimator.BaselineRegressor):
        def __init__(self, folder):
            super().__init__(folder, label_dimension=2)

    class Two(estimator.BaselineClassifier):
        pass

    assert Mine("folder").model_dir == "folder"
    assert Two("folder", n_classes=3).model_dir == "folder"


def test_a_class_that_the_table_does_not_have_is_an_error_where_it_is_written():
    with pytest.raises(KeyError, match="Nobody"):
        canned("tf.estimator.Nobody", lambda given: ())(type("Nobody", (), {}))
