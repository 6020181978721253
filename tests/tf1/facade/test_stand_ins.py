"""What the facade has in the place of TensorFlow's own differs from it in what it builds alone."""

from __future__ import annotations

import fnmatch
import inspect

import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy import estimator
from estimator2strategy.tf1.facade import stand_ins

pytestmark = pytest.mark.oldest


def test_most_names_are_tensorflows_very_own():
    for name in ("constant", "reduce_mean", "float32", "Session", "Tensor", "name_scope"):
        assert getattr(tf, name) is getattr(tensorflow.compat.v1, name)


@pytest.mark.parametrize("name", ["cond", "get_variable", "while_loop"])
def test_a_function_has_the_name_and_arguments_of_tensorflows(name):
    ours, theirs = getattr(tf, name), getattr(tensorflow.compat.v1, name)
    assert ours is not theirs
    assert (ours.__name__, ours.__doc__) == (theirs.__name__, theirs.__doc__)
    assert inspect.signature(ours) == inspect.signature(theirs)


@pytest.mark.parametrize(
    ("function", "last"),
    [  # as TensorFlow 1.15 answers
        (tf.while_loop, ["name", "maximum_iterations", "return_same_structure"]),
        (tf.metrics.mean, ["metrics_collections", "updates_collections", "name"]),
        (tf.nn.sigmoid_cross_entropy_with_logits, ["labels", "logits", "name"]),
        (tf.nn.conv2d_transpose, ["input", "filters", "dilations"]),
    ],
)
def test_programs_that_read_a_functions_arguments_find_them(function, last):
    assert inspect.getfullargspec(function).args[-3:] == last


def test_a_function_is_one_under_all_of_its_names():
    assert tf.get_variable is tf.compat.v1.get_variable
    assert tf.train.create_global_step is tf.compat.v1.train.create_global_step


def test_patterns_name_functions_that_tensorflow_has():
    for path, patterns in stand_ins._BUILDERS.items():
        names = dir(getattr(tensorflow.compat.v1, path) if path else tensorflow.compat.v1)
        for pattern in patterns.split():
            assert fnmatch.filter(names, pattern), pattern


@pytest.mark.parametrize("name", ["Graph", "TensorArray"])
def test_instances_are_those_of_tensorflows_class(name):
    ours, theirs = getattr(tf, name), getattr(tensorflow, name)
    with tf.Graph().as_default():
        arguments = {"dtype": tf.float32, "size": 1} if name == "TensorArray" else {}
        made, other = ours(**arguments), theirs(**arguments)
    assert type(made) is theirs
    assert isinstance(other, ours)
    assert issubclass(theirs, ours)
    assert not isinstance(1, ours)


def test_a_subclass_of_a_graph_is_one():
    class Named(tf.Graph):
        def __init__(self, name):
            super().__init__()
            self.own_name = name

    graph = Named("mine")
    assert type(graph) is Named
    assert graph.own_name == "mine"
    assert isinstance(graph, tensorflow.Graph)
    assert not isinstance(tf.Graph(), Named)


def test_estimators_of_the_facade_are_estimators_and_the_other_way_round(model_dir):
    columns = [tf.feature_column.numeric_column("x")]
    ours = tf.estimator.LinearRegressor(columns, model_dir)
    others = estimator.LinearRegressor(columns, model_dir)
    for made in (ours, others):
        assert isinstance(made, tf.estimator.Estimator)
        assert isinstance(made, estimator.Estimator)
        assert not isinstance(made, tf.estimator.DNNRegressor)
    assert issubclass(tf.contrib.tpu.TPUEstimator, tf.estimator.Estimator)
    assert issubclass(tf.estimator.LinearRegressor, estimator.LinearRegressor)
    assert repr(tf.estimator.Estimator) == repr(estimator.Estimator)


def test_a_subclass_of_a_facades_estimator_may_replace_what_it_could():
    class Mine(tf.contrib.tpu.TPUEstimator):
        def train(self, *args, **kwargs):
            return self

    def model_fn(features, labels, mode, params):
        raise AssertionError

    def make():
        return Mine(model_fn, config=tf.contrib.tpu.RunConfig(), train_batch_size=1)

    with pytest.raises(ValueError, match="cannot override"):
        make()
    # As programs do it, in the class that the others come from.
    base, name = tf.estimator.Estimator, "_assert_members_are_not_overridden"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, name, lambda self: None, raising=False)
        assert make().train() is not None


def test_the_code_that_makes_an_estimator_decides_for_a_class_of_all(model_dir):
    columns = [tensorflow.feature_column.numeric_column("x")]
    names = {"columns": columns, "model_dir": model_dir}
    source = "made = estimator.LinearRegressor(columns, model_dir)._tf115"
    found = []
    for imports in ("", "import estimator2strategy.tf1 as tf\n"):
        own = dict(names)
        exec(f"from estimator2strategy import estimator\n{imports}{source}", own)
        found.append(own["made"])
    assert found == [False, True]
