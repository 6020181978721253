"""Each switch between TF 1's behaviour and TF 2's switches, and is back where it was.

When a TensorFlow release breaks one of these, fix `engine/_tf_switches.py` before anything else.
"""

from __future__ import annotations

import importlib
import subprocess
import threading
import types

import keras
import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_switches
from tests import fresh

tf1 = tf.compat.v1
_CONTROL_FLOW = "tensorflow.python.ops.control_flow_util"
pytestmark = pytest.mark.oldest


def test_tensor_shapes_switch_and_come_back():
    assert isinstance(tf.TensorShape([3])[0], int)
    with _tf_switches.tensor_shapes(v2=False):
        assert tf.TensorShape([3])[0].value == 3
    assert isinstance(tf.TensorShape([3])[0], int)


def test_shapes_of_one_context_are_not_seen_in_another():
    found = []

    def ask():
        found.append(isinstance(tf.TensorShape([3])[0], int))

    with _tf_switches.tensor_shapes(v2=False):
        ask()
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert found == [False, True]


def test_tensor_shapes_are_what_the_asking_code_expects(monkeypatch):
    tensor_shape = importlib.import_module("tensorflow.python.framework.tensor_shape")
    override = "_TENSORSHAPE_V2_OVERRIDE"
    monkeypatch.setattr(tensor_shape, override, None)  # as if nothing legacy was imported yet
    shape, asks = tf.TensorShape([3, 4]), []
    _tf_switches.tensor_shapes_by(lambda: bool(asks))
    assert (shape[0], *shape) == (3, 3, 4)
    with _tf_switches.tensor_shapes(v2=False):
        assert shape[0].value == 3
    asks.append("for dimensions")
    assert [dimension.value for dimension in [shape[0], *shape]] == [3, 3, 4]
    with _tf_switches.tensor_shapes(v2=True):
        assert isinstance(shape[0], int)
    asks.clear()


def test_tensors_are_equal_to_what_the_asking_code_expects(monkeypatch):
    tensor = importlib.import_module("tensorflow.python.framework.tensor").Tensor
    monkeypatch.setattr(tensor, "_USE_EQUALITY", True)  # as if nothing legacy was imported yet
    variable, asks = tf.Variable([1, 2]), []
    _tf_switches.tensor_equality_by(lambda: bool(asks))

    @tf.function(autograph=False)
    def function(a, b):
        with pytest.raises(TypeError, match="unhashable"):
            hash(a)
        with pytest.raises(TypeError, match="unhashable"):
            hash(variable)
        assert (a == b).dtype == tf.bool
        asks.append("for identity")
        assert list(map(id, {a: 1, variable: 2})) == [id(a), id(variable)]
        found = [a == b, a in [b, a], variable == variable]
        asks.clear()
        assert found == [False, True, True]
        return a

    function(tf.constant([1, 2]), tf.constant([1, 2]))
    assert (tf.constant([1, 2]) == tf.constant([1, 3])).numpy().tolist() == [True, False]


def made():
    with tf.Graph().as_default() as graph:
        v = tf1.get_variable("v", [])
        tf1.while_loop(lambda i: i < 3.0, lambda i: i + v, [0.0])
    return {op.type for op in graph.get_operations()} & {"VarHandleOp", "While", "Enter"}


def test_graphs_have_the_variables_and_control_flow_that_the_answers_say(monkeypatch):
    for module, flag in _tf_switches._GRAPH_SWITCHES:
        monkeypatch.setattr(module, flag, True)
    answers = []

    def answer(otherwise):
        return answers[-1] if answers else otherwise

    _tf_switches.graphs_by(answer, answer)
    assert made() == {"VarHandleOp", "While"}
    answers.append(False)
    assert made() == {"Enter"}
    assert (tf1.resource_variables_enabled() == False) is True  # noqa: E712
    answers.clear()
    assert made() == {"VarHandleOp", "While"}


def test_answers_are_given_what_the_process_has_chosen(monkeypatch):
    for module, flag in _tf_switches._GRAPH_SWITCHES:
        monkeypatch.setattr(module, flag, True)
    given = []

    def answer(otherwise):
        given.append(otherwise)
        return otherwise

    _tf_switches.graphs_by(answer, answer)
    assert made() == {"VarHandleOp", "While"}
    tf1.disable_resource_variables()
    tf1.disable_control_flow_v2()
    _tf_switches.graphs_by(answer, answer)
    given.clear()
    assert made() == {"Enter"}
    assert set(given) == {False}


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


def test_variables_of_graphs_are_true_as_any_object(monkeypatch):
    monkeypatch.setattr(_tf_switches.BaseResourceVariable, "__bool__", None)
    _tf_switches.give_variables_what_references_have()
    with tf.Graph().as_default():
        assert tf1.get_variable("v", initializer=0.0, use_resource=True)
    assert [bool(tf.Variable(value)) for value in (0.0, 1.0)] == [False, True]


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


def test_new_threads_are_in_graph_mode_where_they_say_so(monkeypatch):
    context = _tf_switches._context
    monkeypatch.setattr(context, "default_execution_mode", context.EAGER_MODE)
    modes = []
    _tf_switches.threads_in_graph_mode(lambda: threading.current_thread().name == "legacy")
    for name in ("legacy", "modern"):
        thread = threading.Thread(target=lambda: modes.append(tf.executing_eagerly()), name=name)
        thread.start()
        thread.join()
    assert modes == [False, True]
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

    modern = base_layer_utils.v2_dtype_behavior_enabled
    modern = getattr(modern, "of_tf_2", modern)
    monkeypatch.setattr(base_layer_utils, "v2_dtype_behavior_enabled", modern)

    asks = ["for TF 1.15's"]
    _tf_switches.keras_dtypes_by(lambda: bool(asks))
    wide = tf.ones([1, 2], tf.float64)
    layer = tf_keras.layers.Dense(1)
    assert layer(wide).dtype == tf.float64
    asks.clear()
    assert layer(wide).dtype == tf.float64
    assert tf_keras.layers.Dense(1)(wide).dtype == tf.float32


def test_keras_initializers_are_those_of_tf_1_in_v1_graphs(monkeypatch):
    import tf_keras
    from tf_keras.src import initializers

    objects = dict.copy(initializers.LOCAL.ALL_OBJECTS or {})
    kept = types.SimpleNamespace(**{**vars(initializers.LOCAL), "ALL_OBJECTS": objects})
    monkeypatch.setattr(initializers, "LOCAL", kept)
    of_tf2 = []
    _tf_switches.keras_initializers_by_graph(lambda: bool(of_tf2))
    kernel = tf_keras.layers.Dense(1).kernel_initializer
    assert type(kernel) is tf_keras.initializers.GlorotUniform
    with tf.Graph().as_default():
        kernel = tf_keras.layers.Dense(1).kernel_initializer
        assert type(kernel) is tf1.glorot_uniform_initializer
        # That of TF 2 gives each layer the same weights.
        scaled = {type(initializers.get(n)) for n in ("VarianceScaling", "variance_scaling")}
        assert scaled == {tf1.variance_scaling_initializer}
        of_tf2.append("all the same")
        kernel = tf_keras.layers.Dense(1).kernel_initializer
        assert type(kernel) is tf_keras.initializers.GlorotUniform


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

    asks = []
    for _ in range(2):
        _tf_switches.keras_metric_names_by(lambda: bool(asks))
    with tf.Graph().as_default():
        assert modern() == ["loss", "accuracy", "mae", "mine", "ce"]
        asks.append("for TF 1.15's")
        assert modern() == ["loss", "acc", "mean_absolute_error", "mine", "weighted_ce"]


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

    asks = []
    for _ in range(2):
        _tf_switches.keras_layer_names_by(lambda: bool(asks))
    assert names() == {"gpt2_layer"}
    asks.append("for TF 1.15's")
    assert names() == {"gp_t2layer"}


def test_recurrent_layers_of_keras_2_run_in_loops_of_v1(monkeypatch):
    import tf_keras

    monkeypatch.setattr(importlib.import_module(_CONTROL_FLOW), "ENABLE_CONTROL_FLOW_V2", False)
    _tf_switches.keras_loops_keep_all_outputs()
    with tf.Graph().as_default(), tf1.Session() as session:
        last = tf_keras.layers.SimpleRNN(2)(tf.ones([1, 3, 2]))
        session.run(tf1.global_variables_initializer())
        assert session.run(last).shape == (1, 2)


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


def test_layers_of_tf1_build_as_the_code_that_made_them():
    """In its own process, as classes are switched once; fails by name where tf-keras moves one."""
    code = (
        "import contextlib, tensorflow as tf\n"
        "from estimator2strategy.engine import _tf_switches\n"
        "from tf_keras.api._v1 import keras\n"
        "seen = []\n"
        "legacy = keras.__internal__.legacy\n"
        "def building_as(maker):\n"
        "    seen.append(maker)\n"
        "    return contextlib.nullcontext()\n"
        "maker = lambda made: type(made).__name__\n"
        "for _ in range(2):\n"
        "    _tf_switches.layers_of_tf1_build_as(maker, building_as)\n"
        "with tf.Graph().as_default():\n"
        "    legacy.layers.Dense(1)(tf.ones([1, 2]))\n"
        "    assert set(seen) == {'Dense'}, seen\n"
        "    cell = legacy.rnn_cell.BasicRNNCell(2)\n"
        "    cell(tf.ones([1, 2]), tf.ones([1, 2]))\n"
        "    assert seen[-1] == 'BasicRNNCell', seen\n"
    )
    subprocess.run([fresh.python(), "-c", code], check=True)
