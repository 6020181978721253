"""Each switch between TF 1's behaviour and TF 2's switches, and is back where it was.

When a TensorFlow release breaks one of these, fix `engine/_tf_switches.py` before anything else.
"""

from __future__ import annotations

import importlib
import threading
import traceback

import keras
import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_switches

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


def test_tensor_shapes_switch_and_come_back():
    assert isinstance(tf.TensorShape([3])[0], int)
    with _tf_switches.tensor_shapes(v2=False):
        assert tf.TensorShape([3])[0].value == 3
    assert isinstance(tf.TensorShape([3])[0], int)


def test_tensor_shapes_are_what_the_caller_expects(monkeypatch):
    tensor_shape = importlib.import_module("tensorflow.python.framework.tensor_shape")
    override = "_TENSORSHAPE_V2_OVERRIDE"
    monkeypatch.setattr(tensor_shape, override, None)  # as if nothing legacy was imported yet
    shape = tf.TensorShape([3, 4])

    def one(i):
        return shape[i]

    def legacy():
        return [shape[0], *shape, *map(one, [1])]

    _tf_switches.tensor_shapes_by_caller(
        lambda frame: frame.f_code in (legacy.__code__, one.__code__)
    )
    assert [dimension.value for dimension in legacy()] == [3, 3, 4, 4]
    assert (shape[0], *shape) == (3, 3, 4)
    with _tf_switches.tensor_shapes(v2=False):
        assert shape[0].value == 3


def test_tensors_are_equal_to_what_the_caller_expects(monkeypatch):
    tensor = importlib.import_module("tensorflow.python.framework.tensor").Tensor
    monkeypatch.setattr(tensor, "_USE_EQUALITY", True)  # as if nothing legacy was imported yet
    variable = tf.Variable([1, 2])

    def legacy(a, b):
        return {a: 1, variable: 2}, a == b, a in [b, a], variable == variable

    def modern(a, b):
        with pytest.raises(TypeError, match="unhashable"):
            hash(a)
        with pytest.raises(TypeError, match="unhashable"):
            hash(variable)
        return (a == b).dtype

    _tf_switches.tensor_equality_by_caller(lambda frame: frame.f_code is legacy.__code__)

    @tf.function(autograph=False)
    def function(a, b):
        kept, equal, listed, same = legacy(a, b)
        assert [list(map(id, kept)), equal, listed, same] == [
            [id(a), id(variable)],
            False,
            True,
            True,
        ]
        assert modern(a, b) == tf.bool
        return a

    function(tf.constant([1, 2]), tf.constant([1, 2]))
    assert (tf.constant([1, 2]) == tf.constant([1, 3])).numpy().tolist() == [True, False]


def test_graphs_have_the_variables_and_control_flow_that_their_maker_expects(monkeypatch):
    for module, flag in _tf_switches._GRAPH_SWITCHES:
        monkeypatch.setattr(module, flag, True)

    def made():
        with tf.Graph().as_default() as graph:
            v = tf1.get_variable("v", [])
            tf1.while_loop(lambda i: i < 3.0, lambda i: i + v, [0.0])
        return {op.type for op in graph.get_operations()} & {"VarHandleOp", "While", "Enter"}

    def modern():
        return made()

    def legacy(frame):
        return modern.__code__ not in (frame.f_code, frame.f_back.f_code)

    with _tf_switches.graphs_of_the_process():
        _tf_switches.graphs_by_caller(legacy, legacy)  # too early
    assert made() == {"VarHandleOp", "While"}
    _tf_switches.graphs_by_caller(legacy, legacy)
    assert made() == {"Enter"}
    assert modern() == {"VarHandleOp", "While"}
    with _tf_switches.graphs_of_the_process():
        assert made() == {"VarHandleOp", "While"}
    assert made() == {"Enter"}


def test_ops_in_branches_of_v1_graphs_are_named_by_scope():
    names = []

    def body(i):
        names.append(tf.constant(1, name="one").name)
        return i + 1

    def loop():
        with tf1.name_scope("outer"), _tf_switches.control_flow_v2():
            tf1.while_loop(lambda i: i < 2, body, [tf.constant(0)])

    def names_in(graph):
        names.clear()
        with graph:
            loop()
        return set(names)

    assert names_in(tf.Graph().as_default()) == {"one:0"}
    with _tf_switches.names_in_branches_by_scope(True):
        assert names_in(tf.Graph().as_default()) == {"outer/while/one:0"}
    with _tf_switches.names_in_branches_by_scope(False):
        assert names_in(tf.Graph().as_default()) == {"one:0"}
    assert names_in(tf.Graph().as_default()) == {"one:0"}


def test_resource_variables_have_an_initialized_value(monkeypatch):
    missing = tf.Variable.initialized_value
    monkeypatch.setattr(_tf_switches.BaseResourceVariable, "initialized_value", missing)
    _tf_switches.give_variables_what_references_have()
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        value = 2 * variable.initialized_value()
        assert session.run(value).tolist() == [2, 4]
        session.run(variable.initializer)
        session.run(variable.assign([3.0, 4.0]))
        assert session.run(value).tolist() == [6, 8]


def test_resource_variables_have_a_ref_to_read_and_assign(monkeypatch):
    monkeypatch.delattr(_tf_switches.BaseResourceVariable, "_ref", raising=False)
    _tf_switches.give_variables_what_references_have()
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        value = tf.identity(variable._ref())
        assigned = tf1.assign_add(variable._ref(), [1.0, 1.0])
        (gradient,) = tf.gradients(value * value, [variable._ref()])
        session.run(variable.initializer)
        assert session.run(gradient).tolist() == [2, 4]
        session.run(assigned)
        assert session.run(value).tolist() == [2, 3]


def test_graph_mode_has_a_default_graph_that_can_be_reset():
    with _tf_switches.graph_mode():
        assert not tf.executing_eagerly()
        tf.constant(1)
        tf1.reset_default_graph()
        assert tf1.get_default_graph().get_operations() == []
    assert tf.executing_eagerly()


def test_eager_mode_reaches_out_of_a_graph():
    with tf.Graph().as_default(), _tf_switches.eager_mode():
        assert tf.executing_eagerly()
        assert tf.constant(1).numpy() == 1


def test_threads_of_legacy_code_and_of_coordinators_are_in_graph_mode(monkeypatch):
    context = _tf_switches._context
    monkeypatch.setattr(context, "default_execution_mode", context.EAGER_MODE)
    modes, coordinator = [], tf1.train.Coordinator()

    def modern():
        modes.append(tf.executing_eagerly())
        coordinator.request_stop()

    def legacy():
        modern()

    _tf_switches.threads_in_graph_mode(lambda frame: frame.f_code is legacy.__code__)
    for thread in (
        tf1.train.LooperThread(coordinator, None, modern),
        threading.Thread(target=legacy),
        threading.Thread(target=modern),
    ):
        thread.start()
        thread.join()
    assert modes == [False, False, True]
    assert tf.executing_eagerly()


def test_keras_names_layers_as_in_a_new_process_and_then_goes_on():
    def name():
        return keras.layers.Dense(1).name

    before = name()
    for _ in range(2):
        with _tf_switches.fresh_keras_names():
            assert (name(), name()) == ("dense", "dense_1")
    assert name() not in (before, "dense")


def test_keras_dtypes_are_what_the_code_that_makes_a_layer_expects(monkeypatch):
    import tf_keras
    from tf_keras.src.engine import base_layer_utils

    monkeypatch.setattr(base_layer_utils, "V2_DTYPE_BEHAVIOR", None)

    def legacy(x):
        return tf_keras.layers.Dense(1)(x).dtype

    def modern(x):
        return tf_keras.layers.Dense(1)(x).dtype

    _tf_switches.keras_dtypes_by_caller(lambda frame: frame.f_code is legacy.__code__)
    wide = tf.ones([1, 2], tf.float64)
    assert (legacy(wide), modern(wide)) == (tf.float64, tf.float32)


def test_keras_initializers_are_those_of_tf_1_in_v1_graphs(monkeypatch):
    import tf_keras
    from tf_keras.src import initializers

    monkeypatch.setattr(initializers, "LOCAL", initializers.LOCAL)
    _tf_switches.keras_initializers_by_graph()
    kernel = tf_keras.layers.Dense(1).kernel_initializer
    assert type(kernel) is tf_keras.initializers.GlorotUniform
    with tf.Graph().as_default():
        kernel = tf_keras.layers.Dense(1).kernel_initializer
        assert type(kernel) is tf1.glorot_uniform_initializer


def test_keras_metrics_are_named_as_the_code_that_compiles_expects(monkeypatch):
    import tf_keras
    from tf_keras.src.engine import training_utils_v1

    monkeypatch.setattr(
        training_utils_v1,
        "get_metric_name",
        getattr(training_utils_v1.get_metric_name, "of_tf_2", training_utils_v1.get_metric_name),
    )

    def modern():
        model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=[3])])
        named = tf_keras.metrics.MeanSquaredError(name="mine")
        model.compile("sgd", "mse", ["accuracy", "mae", named], weighted_metrics=["ce"])
        return model.metrics_names

    def legacy():
        return modern()

    for _ in range(2):
        _tf_switches.keras_metric_names_by_caller(
            lambda frame: frame.f_back is not None and frame.f_back.f_code is legacy.__code__
        )
    with tf.Graph().as_default():
        assert modern() == ["loss", "accuracy", "mae", "mine", "ce"]
        assert legacy() == ["loss", "acc", "mean_absolute_error", "mine", "weighted_ce"]


def test_keras_layer_names_are_those_of_who_makes_a_layer(monkeypatch):
    import tf_keras
    from tf_keras.api._v1.keras.__internal__.legacy import layers as legacy_layers
    from tf_keras.src.engine import base_layer_v1
    from tf_keras.src.utils import generic_utils

    modern = getattr(generic_utils.to_snake_case, "of_tf_2", generic_utils.to_snake_case)
    for module in (generic_utils, base_layer_v1):
        monkeypatch.setattr(module, "to_snake_case", modern)
    classes = [
        type("GPT2Layer", (base,), {}) for base in (tf_keras.layers.Layer, legacy_layers.Layer)
    ]

    def name(cls):
        with tf.Graph().as_default():
            return cls().name.rstrip("_1")  # a layer of tf.layers counts itself

    def names():
        return {name(cls) for cls in classes}

    def legacy():
        return names()

    for _ in range(2):
        _tf_switches.keras_layer_names_by_caller(
            lambda frame: any(
                above.f_code is legacy.__code__ for above, _ in traceback.walk_stack(frame)
            )
        )
    assert names() == {"gpt2_layer"}
    assert legacy() == {"gp_t2layer"}


@pytest.mark.parametrize("of", ["layers", "keras.layers"])
def test_moments_of_a_subclass_need_no_mask(of):
    keras2 = importlib.import_module("tf_keras")
    _tf_switches.keras_moments_may_lack_a_mask()
    legacy = importlib.import_module("tf_keras.src.legacy_tf_layers.normalization")
    norm = legacy if of == "layers" else keras2.layers

    class Doubled(norm.BatchNormalization):
        def _moments(self, inputs, reduction_axes, keep_dims):
            mean, variance = super()._moments(inputs, reduction_axes, keep_dims=keep_dims)
            return 2 * mean, variance

    with tf.Graph().as_default(), tf1.Session() as session:
        normed = Doubled(fused=False)(tf.constant([[1.0], [3.0]]), training=True)
        session.run(tf1.global_variables_initializer())
        assert session.run(normed).ravel() == pytest.approx([-2.9985, -0.9995], rel=1e-4)
