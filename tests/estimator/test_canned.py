"""Canned Estimators do what those of TF 2.15 did: of `tf.compat.v1`, and (V2) of TF 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.names import name_table
from estimator2strategy.estimator.canned import optimizers
from estimator2strategy.tf1.facade import namespace
from tests.programs import canned as program
from tests.same import assert_same

tf1 = tf.compat.v1
fc = tf.feature_column
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "canned.json").read_text())
# The cases of v1 are those of v2, with the classes of TF 1; CI runs them, too.
CASES = [
    pytest.param(version, case, marks=[pytest.mark.slow] if version == "v1" else [])
    for version in GOLDEN
    for case in GOLDEN[version]
]
SIZE = fc.numeric_column("size", shape=(2,))
FEATURES = {"size": [[1.0, 2.0], [-2.0, 0.5]]}
TRAIN = estimator.ModeKeys.TRAIN


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_model_trains_evaluates_predicts_and_is_served_as_the_original(version, case, tmp_path):
    found = program.run(case, str(tmp_path), version)
    assert_same(json.loads(json.dumps(found)), GOLDEN[version][case], case)


def graph_of(model, labels=(0, 1), features=FEATURES, mode=TRAIN):
    """The graph that a model_fn makes."""
    with tf.Graph().as_default() as graph:
        tf1.train.create_global_step()
        tensors = features
        if isinstance(features, dict):
            tensors = {name: tf.constant(value) for name, value in features.items()}
        model.model_fn(tensors, tf.constant(labels), mode, model.config)
    return graph


def names(graph):
    return {variable.op.name for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)}


# --- Optimizers.


@pytest.mark.oldest
def test_an_optimizer_of_tf_1_is_a_name_an_instance_or_a_function():
    get = optimizers.get_optimizer_instance
    adam = tf1.train.AdamOptimizer(0.1)
    assert get(adam) is get(lambda: adam) is adam
    assert isinstance(get("SGD", 0.1), tf1.train.GradientDescentOptimizer)
    for given, message in [
        ("Adam", "learning_rate must be specified when opt is string"),
        (
            "adam",
            r"Unsupported optimizer name: adam. .*'Adagrad', 'Adam', 'Ftrl', 'RMSProp'",
        ),
        (object(), "The given object is not an Optimizer instance"),
        (lambda: "Adam", "The given object is not an Optimizer instance"),
    ]:
        with pytest.raises(ValueError, match=message):
            get(given)


@pytest.mark.oldest
def test_an_optimizer_of_tf_2_is_a_name_an_instance_or_a_function():
    import tf_keras

    get = optimizers.get_optimizer_instance_v2
    legacy = tf_keras.optimizers.legacy
    made = legacy.Adam(0.25)
    assert get(lambda: made) is made
    assert get(made) is not made  # which has the variables of the first graph that used it
    assert get(made).get_config() == made.get_config()
    own = type("Own", (legacy.Optimizer,), {"get_config": lambda self: None})("own")
    assert get(own) is own
    assert get("Adagrad").get_config()["learning_rate"] == 0.001
    assert get("RMSProp", 0.5).get_config()["learning_rate"] == 0.5
    converted = get(tf_keras.optimizers.Adam(0.25))
    assert isinstance(converted, legacy.Adam)
    assert converted.get_config()["learning_rate"] == 0.25
    for given, message in [
        ("adam", "Unsupported optimizer name: adam"),
        (tf1.train.AdamOptimizer(), "not a tf.keras.optimizers.Optimizer instance"),
        (lambda: "Adam", "not a tf.keras.optimizers.Optimizer instance"),
    ]:
        with pytest.raises(ValueError, match=message):
            get(given)


def test_an_instance_of_an_optimizer_of_tf_2_serves_training_after_training(model_dir):
    import tf_keras

    def input_fn():
        return tf.data.Dataset.from_tensors((FEATURES, [[1.0], [0.0]])).repeat()

    optimizer = tf_keras.optimizers.Adam(0.25)
    model = estimator.LinearRegressorV2([SIZE], model_dir, optimizer=optimizer)
    model.train(input_fn, steps=1).train(input_fn, steps=1)
    assert model.get_variable_value("global_step") == 2
    assert model.get_variable_value("training/Adam/learning_rate") == 0.25
    assert "training/Adam/linear/linear_model/size/weights/m" in model.get_variable_names()


def _decay():
    step = tf1.train.get_global_step()
    return tf1.train.exponential_decay(0.5, step, decay_steps=1, decay_rate=0.5)


def _schedule(keras):
    return keras.optimizers.schedules.ExponentialDecay(0.5, decay_steps=1, decay_rate=0.5)


@pytest.mark.parametrize(
    ("rate", "bias", "more"),
    [
        (lambda keras: 0.25, 0.1875, {"training/SGD/learning_rate": 0.25}),
        (lambda keras: _decay(), 0.125, {}),
        (_schedule, 0.125, {}),
    ],
    ids=["number", "tensor", "schedule"],
)
def test_a_function_may_return_an_optimizer_that_was_a_legacy_one_until_tf_2_10(
    rate, bias, more, model_dir
):
    """The variables and their values are those of TF 2.7.4."""
    import tf_keras

    def input_fn():
        return tf.data.Dataset.from_tensors((FEATURES, [[1.0], [0.0]])).repeat()

    made = estimator.LinearRegressorV2(
        [SIZE], model_dir, optimizer=lambda: tf_keras.optimizers.SGD(rate(tf_keras))
    )
    made.train(input_fn, steps=2).train(input_fn, steps=1)
    found = {name: made.get_variable_value(name).tolist() for name in made.get_variable_names()}
    assert found == {
        "global_step": 3,
        "linear/linear_model/bias_weights": [bias],
        "linear/linear_model/size/weights": [[bias], [2 * bias]],
        "training/SGD/decay": 0.0,
        "training/SGD/momentum": 0.0,
        **more,
    }


# --- Arguments.

NO_DICT = "features should be a dictionary of `Tensor`s"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: estimator.DNNClassifier([2], [SIZE], n_classes=1), "n_classes must be > 2"),
        (lambda: estimator.DNNClassifierV2([2], [SIZE], n_classes=1), "n_classes must be > 2"),
        (lambda: estimator.LinearRegressor([SIZE], label_dimension=0), "label_dimension 0"),
        (
            lambda: estimator.LinearClassifier([SIZE], loss_reduction="sum"),
            "Invalid loss_reduction: sum",
        ),
        (
            lambda: estimator.BaselineClassifierV2(loss_reduction="weighted_sum"),
            "Invalid loss_reduction: weighted_sum",
        ),
        (
            lambda: estimator.DNNLinearCombinedRegressor(dnn_hidden_units=[2]),
            "Either linear_feature_columns or dnn_feature_columns must be defined",
        ),
        (
            lambda: estimator.experimental.dnn_logit_fn_builder(
                "2", [2], [SIZE], None, None, None, False
            ),
            r"units must be an int.  Given type: <class 'str'>",
        ),
    ],
)
def test_arguments_are_checked_when_an_estimator_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", ["", "V2"])
def test_what_is_wrong_with_features_and_columns_is_said_when_the_graph_is_made(kind):
    def made(name, **arguments):
        return getattr(estimator, name + kind)(**arguments)

    categorical = fc.categorical_column_with_identity("size", 3)
    both = {"linear_feature_columns": [SIZE], "dnn_feature_columns": [SIZE]}
    deep = {"hidden_units": [2]}
    with pytest.raises(ValueError, match=NO_DICT):
        graph_of(made("LinearClassifier", feature_columns=[SIZE]), features=[[1.0]])
    with pytest.raises(ValueError, match=NO_DICT):
        graph_of(made("DNNClassifier", feature_columns=[SIZE], **deep), features=[[1.0]])
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined"):
        graph_of(made("DNNLinearCombinedClassifier", **both))
    with pytest.raises(ValueError, match="wrap a categorical column with an embedding_column"):
        graph_of(made("DNNClassifier", feature_columns=[categorical], **deep))
    with pytest.raises(ValueError, match="Duplicate feature column name"):
        graph_of(made("LinearClassifier", feature_columns=[SIZE, SIZE]))
    with pytest.raises(TypeError, match="Weight column must be either a string or NumericColumn"):
        graph_of(made("BaselineClassifier", weight_column=categorical))


def test_columns_of_tf_1_are_for_estimators_of_tf_1():
    ids = [fc.categorical_column_with_identity(name, 3) for name in ("day", "hour")]
    with tf.Graph().as_default():
        shared = tf1.feature_column.shared_embedding_columns(ids, 2)
    features = {"day": [[0], [1]], "hour": [[2], [2]]}
    found = names(graph_of(estimator.DNNClassifier([2], shared), features=features))
    embedding = "dnn/input_from_feature_columns/input_layer/day_hour_shared_embedding/"
    assert f"{embedding}embedding_weights/part_0" in found
    linear = estimator.LinearClassifier([*shared, SIZE])
    found = names(graph_of(linear, features={**features, **FEATURES}))
    assert {
        f"linear/linear_model/{name}/part_0" for name in ("size/weights", "bias_weights")
    } < found
    for model in (estimator.DNNClassifierV2([2], shared), estimator.LinearClassifierV2(shared)):
        with pytest.raises(ValueError, match="a feature column from TensorFlow v1, but this is a"):
            graph_of(model, features=features)


def test_two_optimizers_cannot_be_synchronized():
    sync = tf1.train.SyncReplicasOptimizer(tf1.train.AdamOptimizer(), 1)
    for which in ("linear", "dnn"):
        options = {f"{which}_optimizer": sync, f"{which}_feature_columns": [SIZE]}
        model = estimator.DNNLinearCombinedClassifier(dnn_hidden_units=[2], **options)
        with pytest.raises(ValueError, match="SyncReplicasOptimizer does not support multi"):
            graph_of(model)


# --- Networks.


def test_wide_and_deep_takes_one_column_without_a_list():
    word = tf.feature_column.categorical_column_with_hash_bucket("word", 5)
    features = {**FEATURES, "word": ["a", "b"]}
    for columns in ({"linear_feature_columns": word}, {"dnn_feature_columns": SIZE}):
        model = estimator.DNNLinearCombinedClassifier(dnn_hidden_units=[2], **columns)
        in_list = {name: [column] for name, column in columns.items()}
        same = estimator.DNNLinearCombinedClassifier(dnn_hidden_units=[2], **in_list)
        made = [names(graph_of(one, features=features)) for one in (model, same)]
        assert made[0] == made[1]
    with pytest.raises(ValueError, match="a list of feature columns"):
        estimator.DNNClassifier([2], SIZE)


def test_a_partitioner_cuts_variables_up_and_the_parts_are_trained(model_dir):
    ids = fc.categorical_column_with_identity("ids", 4)
    halves = tf1.fixed_size_partitioner(2)
    config = estimator.RunConfig(model_dir, tf_random_seed=1)
    model = estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[ids],
        dnn_feature_columns=[fc.embedding_column(ids, 3)],
        dnn_hidden_units=[2],
        input_layer_partitioner=halves,
        config=config,
    )
    data = ({"ids": [[0], [3]]}, [[1.0], [2.0]])
    graph = graph_of(model, [[1.0], [2.0]], {"ids": [[0], [3]]})
    weights = "linear/linear_model/ids/weights"
    assert {f"{weights}/part_0", f"{weights}/part_1"} < names(graph)
    model.train(lambda: tf1.data.Dataset.from_tensors(data).repeat(), steps=2)
    # A checkpoint has the whole of it; ids 1 and 2 were never seen.
    assert (model.get_variable_value(weights) != 0).ravel().tolist() == [True, False, False, True]
    alone = estimator.LinearRegressor([ids], partitioner=halves)
    assert f"{weights}/part_1" in names(graph_of(alone, [[1.0], [2.0]], {"ids": [[0], [3]]}))


def test_parameter_servers_cut_up_what_is_large(monkeypatch):
    machines = {"ps": ["a:1", "b:1"], "chief": ["c:1"]}
    task = {"type": "chief", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": machines, "task": task}))
    model = estimator.DNNClassifier([70_000, 1], [SIZE], config=estimator.RunConfig())
    found = names(graph_of(model))
    # 2 x 70,000 floats are over 256 kB, each row a part; those of the logits are not.
    assert "dnn/hiddenlayer_0/kernel/part_1" in found
    assert "dnn/logits/kernel/part_1" not in found


@pytest.mark.parametrize("model", [estimator.DNNClassifier, estimator.DNNRegressorV2])
def test_hidden_units_of_a_deep_network_are_not_none(model):
    with pytest.raises(TypeError, match="hidden_units must be a list of numbers above 0"):
        model(None, [SIZE])


def test_hidden_units_may_be_what_a_flag_was_split_into():
    graph = graph_of(estimator.DNNClassifier(["3", "2"], [SIZE]))
    sizes = {v.op.name: v.shape.as_list() for v in graph.get_collection("trainable_variables")}
    assert sizes["dnn/hiddenlayer_1/kernel/part_0"] == [3, 2]


def test_an_activation_may_be_a_name_or_none():
    def ops(activation):
        model = estimator.DNNClassifier([2], [SIZE], activation_fn=activation)
        return {op.type for op in graph_of(model).get_operations()}

    assert "Selu" in ops("selu")
    assert "Tanh" in ops(tf.nn.tanh)
    assert "Relu" not in ops(None)


def test_logit_fns_are_blocks_of_a_model_fn_of_ones_own():
    dnn = estimator.experimental.dnn_logit_fn_builder(3, [2], [SIZE], tf.nn.relu, None, None, True)
    linear = estimator.experimental.linear_logit_fn_builder(3, [SIZE])
    with tf.Graph().as_default() as graph:
        features = {"size": tf.constant(FEATURES["size"])}
        call = estimator.experimental.call_logit_fn
        logits = [call(logit_fn, features, TRAIN, {}, None) for logit_fn in (dnn, linear)]
        assert [one.shape.as_list() for one in logits] == [[2, 3], [2, 3]]
    assert {"hiddenlayer_0/batchnorm_0/gamma", "linear_model/bias_weights"} < names(graph)


def test_metrics_can_be_added_to_a_canned_estimator():
    def input_fn():
        return tf.data.Dataset.from_tensors((FEATURES, [[1], [0]]))

    def sure(labels, predictions):
        return {"sure": tf1.metrics.mean(tf.abs(predictions["logistic"] - 0.5))}

    found = estimator.add_metrics(estimator.LinearClassifier([SIZE]), sure).evaluate(input_fn)
    assert found["sure"] == 0.0  # all weights are 0
    assert found["accuracy"] == 0.5


# --- Records.


def test_examples_of_classifiers_and_regressors_are_parsed():
    spec = estimator.classifier_parse_example_spec([SIZE], "label", tf.string, "none", "weight")
    assert spec == {
        "size": tf.io.FixedLenFeature((2,), tf.float32),
        "label": tf.io.FixedLenFeature((1,), tf.string, "none"),
        "weight": tf.io.FixedLenFeature((1,), tf.float32),
    }
    spec = estimator.regressor_parse_example_spec([SIZE], "label", label_dimension=3)
    assert spec["label"] == tf.io.FixedLenFeature((3,), tf.float32)
    for arguments, message in [
        (("size",), "label should not be used as feature. label_key: size"),
        (("label", tf.int64, None, "size"), "weight_column should not be used as feature"),
        (("label", tf.int64, None, 3), "should be an instance of tf.feature_column.numeric_column"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimator.classifier_parse_example_spec([SIZE], *arguments)


# --- Names.


def test_programs_of_tf_1_and_of_tf_2_each_find_their_own():
    assert issubclass(namespace.resolve("tf.estimator.DNNClassifier"), estimator.DNNClassifier)
    of_tf2 = "tf.compat.v2.estimator.DNNClassifier"
    assert issubclass(namespace.resolve(of_tf2), estimator.DNNClassifierV2)
    assert namespace.resolve(of_tf2, tf2=True) is estimator.DNNClassifierV2
    private = "tensorflow_estimator.python.estimator.canned.dnn.DNNClassifierV2"
    assert namespace.resolve(private, tf2=True) is estimator.DNNClassifierV2
    assert namespace.resolve("tf.compat.v2.estimator.RunConfig") is estimator.RunConfig
    assert name_table.find("tf.compat.v2.estimator.LinearRegressor").home.endswith(
        "LinearRegressorV2"
    )
    assert name_table.find("tf.compat.v2.estimator.RunConfig").home.endswith(":RunConfig")
    assert name_table.find("tf.estimator.LinearRegressor").home.endswith(":LinearRegressor")
