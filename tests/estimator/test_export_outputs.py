"""Export outputs and input receivers: the two ends of what is served."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.estimator import export

tf1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    """The graph that is exported, in which every test runs."""
    with tf.Graph().as_default() as graph:
        yield graph


def examples():
    return tf1.placeholder(tf.string, [None], name="examples")


class TestOutputs:
    def test_a_classification_signature_has_classes_and_scores(self):
        output = export.ClassificationOutput(
            scores=tf.constant([[0.5]]), classes=tf.constant([["a"]])
        )
        signature = output.as_signature_def({"input": examples()})
        assert signature.method_name == tf.saved_model.CLASSIFY_METHOD_NAME
        assert set(signature.outputs) == {"classes", "scores"}

    def test_a_classification_needs_classes_or_scores(self):
        with pytest.raises(ValueError, match="Cannot create a ClassificationOutput with empty"):
            export.ClassificationOutput()

    def test_a_regression_needs_floats(self):
        with pytest.raises(ValueError, match="Regression output value must be a float32 Tensor"):
            export.RegressionOutput(tf.constant(1))

    def test_a_lone_prediction_is_called_output(self):
        value = tf.constant(1.0)
        assert export.PredictOutput(value).outputs == {"output": value}

    def test_train_and_eval_outputs_are_prefixed_by_their_kind(self):
        value = tf.constant(1.0)
        output = export.EvalOutput(value, {"p": value}, {"m": (value, tf.no_op())})
        assert list(output.loss) == ["loss"]
        assert list(output.predictions) == ["predictions/p"]
        assert set(output.metrics) == {"metrics/m/value", "metrics/m/update_op"}

    def test_an_output_made_by_tensorflow_itself_is_one_of_ours(self):
        from tensorflow.python.saved_model.model_utils import export_output

        assert isinstance(export_output.PredictOutput(tf.constant(1.0)), export.ExportOutput)

    @pytest.mark.parametrize(
        ("mode", "signature"),
        [("train", "train"), ("eval", "eval"), ("infer", "serving_default")],
    )
    def test_each_mode_has_its_signature(self, mode, signature):
        value = tf.constant(1.0)
        outputs = export.export_outputs_for_mode(mode, None, value, value, None)
        assert list(outputs) == [signature]


class TestServingInputReceiver:
    def test_lone_tensors_get_names(self):
        x, serialized = tf.constant([1.0]), examples()
        receiver = export.ServingInputReceiver(x, serialized)
        assert receiver == ({"feature": x}, {"input": serialized}, None)

    def test_dicts_are_kept(self):
        features = {"x": tf.constant([1.0]), 7: tf.SparseTensor([[0]], [1], [1])}
        assert export.ServingInputReceiver(features, examples()).features is features

    def test_alternatives_get_names_too(self):
        x = tf.constant([1.0])
        receiver = export.ServingInputReceiver(x, examples(), {"raw": x})
        assert receiver.receiver_tensors_alternatives == {"raw": {"input": x}}

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (None, "features must be defined"),
            ({"x": [1.0]}, "feature x must be a Tensor, SparseTensor, or RaggedTensor"),
            ([1.0], "feature feature must be a Tensor"),
            ({1.5: None}, "feature keys must be strings or ints: 1.5"),
        ],
    )
    def test_features_that_are_no_tensors_are_refused(self, features, message):
        with pytest.raises(ValueError, match=message):
            export.ServingInputReceiver(features, examples())

    @pytest.mark.parametrize(
        ("tensors", "message"),
        [
            (None, "receiver_tensors must be defined"),
            ({"x": "text"}, "receiver_tensor x must be a Tensor"),
            ({1: None}, "receiver_tensor keys must be strings: 1"),
        ],
    )
    def test_receiver_tensors_that_are_no_tensors_are_refused(self, tensors, message):
        with pytest.raises(ValueError, match=message):
            export.ServingInputReceiver(tf.constant([1.0]), tensors)

    def test_alternatives_outside_of_a_dict_are_refused(self):
        with pytest.raises(ValueError, match="receiver_tensors_alternatives must be a dict"):
            export.ServingInputReceiver(tf.constant([1.0]), examples(), [examples()])


class TestOtherReceivers:
    def test_a_tensor_receiver_keeps_the_lone_tensor(self):
        x = tf.constant([1.0])
        assert export.TensorServingInputReceiver(x, examples()).features is x

    def test_a_tensor_receiver_refuses_a_dict(self):
        with pytest.raises(ValueError, match="feature must be a Tensor"):
            export.TensorServingInputReceiver({"x": tf.constant([1.0])}, examples())

    def test_an_unsupervised_receiver_is_a_serving_receiver_without_alternatives(self):
        receiver = export.UnsupervisedInputReceiver(tf.constant([1.0]), examples())
        assert isinstance(receiver, export.ServingInputReceiver)
        assert receiver.receiver_tensors_alternatives is None

    def test_a_supervised_receiver_keeps_lone_tensors(self):
        x, y = tf.constant([1.0]), tf.constant([0])
        receiver = export.SupervisedInputReceiver(x, y, examples())
        assert (receiver.features is x, receiver.labels is y) == (True, True)

    def test_a_supervised_receiver_needs_labels(self):
        with pytest.raises(ValueError, match="labels must be defined"):
            export.SupervisedInputReceiver(tf.constant([1.0]), None, examples())


class TestReceiverFunctions:
    def test_the_parsing_one_is_fed_serialized_examples(self, graph):
        spec = {"x": tf.io.FixedLenFeature([2], tf.float32)}
        receiver = export.build_parsing_serving_input_receiver_fn(spec)()
        assert receiver.receiver_tensors["examples"].op.name == "input_example_tensor"
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.extend([1.0, 2.0])
        with tf1.Session() as session:
            feed = {receiver.receiver_tensors["examples"]: [example.SerializeToString()]}
            assert session.run(receiver.features["x"], feed).tolist() == [[1.0, 2.0]]
        assert "ParseExample/ParseExampleV2" in [op.name for op in graph.get_operations()]

    def test_the_batch_size_can_be_fixed(self):
        spec = {"x": tf.io.FixedLenFeature([], tf.int64)}
        receiver = export.build_parsing_serving_input_receiver_fn(spec, default_batch_size=3)()
        assert receiver.features["x"].shape.as_list() == [3]

    def test_the_raw_one_is_fed_the_features_by_dtype_shape_and_name(self):
        with tf.Graph().as_default():
            features = {"x": tf.zeros([5, 2], tf.int32, name="x_of_input_fn")}
        receiver = export.build_raw_serving_input_receiver_fn(features)()
        placeholder = receiver.receiver_tensors["x"]
        assert receiver.features == {"x": placeholder}
        assert (placeholder.dtype, placeholder.shape.as_list()) == (tf.int32, [None, 2])
        assert placeholder.op.name == "x_of_input_fn"

    def test_the_raw_one_takes_eager_tensors(self):
        with tf.init_scope():
            features = {"x": tf.zeros([5, 2])}
        receiver = export.build_raw_serving_input_receiver_fn(features)()
        assert receiver.features["x"].shape.as_list() == [None, 2]

    def test_the_supervised_one_is_fed_features_and_labels(self):
        features, labels = {"x": tf.zeros([5, 2])}, tf.zeros([5], tf.int64)
        receiver = export.build_raw_supervised_input_receiver_fn(features, labels)()
        assert set(receiver.receiver_tensors) == {"x", "label"}
        assert receiver.labels is receiver.receiver_tensors["label"]

    def test_features_and_labels_cannot_share_a_name(self):
        x = {"x": tf.zeros([1])}
        with pytest.raises(ValueError, match=r"must have distinct keys.*'x'"):
            export.build_raw_supervised_input_receiver_fn(x, x)

    def test_an_input_fn_of_a_dataset_tells_what_is_fed(self):
        def input_fn(size):
            return tf.data.Dataset.from_tensors(({"x": tf.zeros([size, 2])}, tf.zeros([size])))

        receiver = export.build_supervised_input_receiver_fn_from_input_fn(input_fn, size=4)()
        assert receiver.features["x"].shape.as_list() == [None, 2]
        assert receiver.labels.shape.as_list() == [None]

    def test_an_input_fn_without_labels_is_refused(self):
        with pytest.raises(ValueError, match="len 2 tuple"):
            export.build_supervised_input_receiver_fn_from_input_fn(lambda: tf.zeros([1]))
