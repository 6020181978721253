"""EstimatorSpec and TPUEstimatorSpec: what they accept, what they make of it, what they refuse."""

from __future__ import annotations

import copy
import functools
from unittest import mock

import pytest
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.export import ClassificationOutput, PredictOutput
from estimator2strategy.estimator.specs import EstimatorSpec, HostCallHook, TPUEstimatorSpec

tf1 = tf.compat.v1
SERVING = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Hook(tf1.train.SessionRunHook):
    pass


@pytest.fixture(autouse=True)
def graph():
    """The graph of a model_fn, in which every test runs."""
    with tf.Graph().as_default() as graph:
        yield graph


def train_spec(**fields):
    return EstimatorSpec(
        **{"mode": ModeKeys.TRAIN, "loss": tf.constant(1.0), "train_op": tf.no_op(), **fields}
    )


def eval_spec(**fields):
    return EstimatorSpec(**{"mode": ModeKeys.EVAL, "loss": tf.constant(1.0), **fields})


def predict_spec(**fields):
    fields = {"mode": ModeKeys.PREDICT, "predictions": tf.constant([1.0]), **fields}
    return EstimatorSpec(**fields)


def tpu_spec(**fields):
    return TPUEstimatorSpec(**{"mode": ModeKeys.EVAL, "loss": tf.constant(1.0), **fields})


def from_another_graph(build):
    with tf.Graph().as_default():
        return build()


class TestFields:
    def test_fields_come_in_the_legacy_order(self):
        assert EstimatorSpec._fields == (
            "mode",
            "predictions",
            "loss",
            "train_op",
            "eval_metric_ops",
            "export_outputs",
            "training_chief_hooks",
            "training_hooks",
            "scaffold",
            "evaluation_hooks",
            "prediction_hooks",
        )

    def test_fields_can_be_given_by_position(self):
        predictions, loss, train_op = tf.constant(0.0), tf.constant(1.0), tf.no_op()
        spec = EstimatorSpec(ModeKeys.TRAIN, predictions, loss, train_op)
        assert spec[:4] == (ModeKeys.TRAIN, predictions, loss, train_op)

    def test_a_field_cannot_be_assigned(self):
        with pytest.raises(AttributeError):
            train_spec().loss = tf.constant(2.0)

    def test_asdict_gives_all_fields(self):
        assert train_spec()._asdict()["mode"] == ModeKeys.TRAIN

    def test_a_shallow_copy_is_equal(self):
        spec = train_spec()
        assert copy.copy(spec) == spec

    def test_replace_changes_one_field_and_keeps_the_others(self):
        spec = train_spec()
        replaced = spec._replace(predictions={"p": spec.loss})
        assert replaced.predictions == {"p": spec.loss}
        assert replaced.train_op is spec.train_op

    def test_replace_checks_the_new_value(self):
        with pytest.raises(ValueError, match="Loss must be scalar"):
            train_spec()._replace(loss=tf.constant([1.0, 2.0]))

    def test_replace_refuses_another_mode(self):
        with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
            train_spec()._replace(mode=ModeKeys.EVAL)

    def test_replace_refuses_an_unknown_field(self):
        with pytest.raises(ValueError, match=r"no fields.*'losses'"):
            train_spec()._replace(losses=tf.constant(1.0))


class TestLoss:
    def test_a_scalar_is_kept_as_it_is(self):
        loss = tf.constant(1.0)
        assert train_spec(loss=loss).loss is loss

    def test_a_loss_of_shape_one_becomes_a_scalar(self):
        assert train_spec(loss=tf.constant([1.0])).loss.shape.rank == 0

    def test_a_vector_is_refused(self):
        with pytest.raises(ValueError, match="Loss must be scalar"):
            train_spec(loss=tf.constant([1.0, 2.0]))

    def test_a_number_is_refused(self):
        with pytest.raises(TypeError, match="loss must be Tensor"):
            train_spec(loss=1.0)

    @pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL])
    def test_train_and_eval_need_a_loss(self, mode):
        with pytest.raises(ValueError, match="Missing loss"):
            EstimatorSpec(mode, train_op=tf.no_op())

    @pytest.mark.parametrize("shape", [[], [1]])
    def test_a_loss_of_another_graph_is_refused(self, shape):
        loss = from_another_graph(lambda: tf.ones(shape, name="old_loss"))
        with pytest.raises(ValueError, match=r"old_loss.*must be from the default graph"):
            train_spec(loss=loss)


class TestTrainOp:
    def test_train_needs_a_train_op(self):
        with pytest.raises(ValueError, match="Missing train_op"):
            EstimatorSpec(ModeKeys.TRAIN, loss=tf.constant(1.0))

    def test_a_variable_stands_for_its_assignment(self):
        step = tf1.get_variable("step", [], use_resource=True)
        assert train_spec(train_op=tf1.assign_add(step, 1.0)).train_op.type == "AssignAddVariableOp"

    def test_a_string_is_refused(self):
        with pytest.raises(TypeError, match="train_op must be Operation or Tensor"):
            train_spec(train_op="train")

    def test_an_op_of_another_graph_is_refused(self):
        with pytest.raises(ValueError, match=r"train_op.*must be from the default graph"):
            train_spec(train_op=from_another_graph(tf.no_op))


class TestPredictions:
    def test_predict_needs_predictions(self):
        with pytest.raises(ValueError, match="Missing predictions"):
            EstimatorSpec(ModeKeys.PREDICT)

    def test_they_default_to_an_empty_dict_elsewhere(self):
        assert train_spec().predictions == {}

    def test_a_number_in_the_dict_is_refused_by_its_key(self):
        with pytest.raises(TypeError, match=r"predictions\[score\] must be Tensor"):
            predict_spec(predictions={"score": 1.0})

    def test_a_sparse_tensor_is_refused(self):
        sparse = tf.SparseTensor([[0]], [1.0], [1])
        with pytest.raises(TypeError, match="predictions must be Tensor"):
            predict_spec(predictions=sparse)

    def test_a_tensor_of_another_graph_is_refused_by_its_key(self):
        old = from_another_graph(lambda: tf.constant(1.0))
        with pytest.raises(ValueError, match=r"score: Const:0.*must be from the default graph"):
            predict_spec(predictions={"score": old})

    def test_later_changes_of_the_users_dict_do_not_reach_the_spec(self):
        predictions = {"score": tf.constant(1.0)}
        spec = predict_spec(predictions=predictions)
        predictions.clear()
        assert list(spec.predictions) == ["score"]


class TestExportOutputs:
    def test_predictions_become_the_default_signature(self):
        spec = predict_spec()
        assert spec.export_outputs[SERVING].outputs == {"output": spec.predictions}

    def test_a_single_output_is_also_the_default_signature(self):
        output = PredictOutput(tf.constant(1.0))
        spec = predict_spec(export_outputs={"mine": output})
        assert spec.export_outputs == {"mine": output, SERVING: output}

    def test_several_outputs_need_a_default_among_them(self):
        output = PredictOutput(tf.constant(1.0))
        with pytest.raises(ValueError, match="Multiple `export_outputs` were provided"):
            predict_spec(export_outputs={"a": output, "b": output})

    def test_an_output_outside_of_a_dict_is_refused(self):
        with pytest.raises(TypeError, match="`export_outputs` must be dict"):
            predict_spec(export_outputs=ClassificationOutput(classes=tf.constant("a")))

    def test_a_bare_tensor_is_refused(self):
        with pytest.raises(TypeError, match="must be ExportOutput objects"):
            predict_spec(export_outputs={"a": tf.constant(1.0)})

    def test_they_are_not_looked_at_outside_of_predict(self):
        assert eval_spec(export_outputs="anything").export_outputs == "anything"


class TestHooksAndScaffold:
    FIELDS = ("training_chief_hooks", "training_hooks", "evaluation_hooks", "prediction_hooks")

    @pytest.mark.parametrize("field", FIELDS)
    def test_a_list_of_hooks_becomes_a_tuple(self, field):
        hook = Hook()
        assert getattr(train_spec(**{field: [hook]}), field) == (hook,)

    @pytest.mark.parametrize("field", FIELDS)
    def test_what_is_no_hook_is_refused(self, field):
        with pytest.raises(TypeError, match=r"must be SessionRunHook.*must be a SessionRunHook"):
            train_spec(**{field: ["hook"]})

    def test_a_mock_of_a_hook_is_a_hook(self):
        hook = mock.Mock(spec=tf1.train.SessionRunHook)
        assert train_spec(training_hooks=[hook]).training_hooks == (hook,)

    def test_a_scaffold_is_made_when_none_is_given(self):
        assert isinstance(train_spec().scaffold, tf1.train.Scaffold)

    def test_what_is_no_scaffold_is_refused(self):
        with pytest.raises(TypeError, match=r"scaffold must be tf\.train\.Scaffold"):
            train_spec(scaffold="scaffold")


class TestEvalMetricOps:
    def test_they_default_to_an_empty_dict(self):
        assert eval_spec().eval_metric_ops == {}

    def test_a_pair_with_a_nested_value_is_kept(self):
        pair = ((tf.constant(1), (tf.constant(2), tf.constant(3))), tf.no_op())
        assert eval_spec(eval_metric_ops={"m": pair}).eval_metric_ops["m"] is pair

    def test_a_tensor_in_place_of_the_dict_is_refused(self):
        with pytest.raises(TypeError, match="eval_metric_ops must be a dict"):
            eval_spec(eval_metric_ops=tf.constant(1.0))

    def test_a_lone_tensor_is_refused_by_its_key(self):
        with pytest.raises(TypeError, match=r"\(metric_value, update_op\) tuples.*for key: m"):
            eval_spec(eval_metric_ops={"m": tf.constant(1.0)})

    def test_a_pair_of_another_graph_is_refused(self):
        pair = from_another_graph(lambda: (tf.constant(1.0), tf.no_op()))
        with pytest.raises(ValueError, match=r"m: Const:0.*must be from the default graph"):
            eval_spec(eval_metric_ops={"m": pair})


@pytest.fixture(params=["keras", "tf_keras"])
def metrics(request):
    return pytest.importorskip(request.param).metrics


class TestMetricObjects:
    def updated_mean(self, metrics):
        metric = metrics.Mean(name="mean")
        metric.update_state(tf.constant([1.0, 2.0, 6.0]))
        return metric

    def test_a_metric_object_becomes_a_pair_that_computes_it(self, metrics):
        value, update = eval_spec(
            eval_metric_ops={"m": self.updated_mean(metrics)}
        ).eval_metric_ops["m"]
        with tf1.Session() as session:
            session.run(tf1.local_variables_initializer())
            session.run(update)
            session.run(update)
            assert session.run(value) == 3.0

    def test_its_variables_are_local_metric_variables(self, metrics):
        eval_spec(eval_metric_ops={"m": self.updated_mean(metrics)})
        assert len(tf1.local_variables()) == 2
        assert len(tf1.get_collection(tf1.GraphKeys.METRIC_VARIABLES)) == 2

    def test_its_variables_stay_out_of_the_checkpoint(self, metrics):
        weight = tf1.get_variable("w", [])
        eval_spec(eval_metric_ops={"m": self.updated_mean(metrics)})
        assert [v.name for v in tf1.global_variables()] == [weight.name]

    def test_giving_it_twice_keeps_its_variables_once(self, metrics):
        metric = self.updated_mean(metrics)
        eval_spec(eval_metric_ops={"a": metric, "b": metric})
        assert len(tf1.local_variables()) == 2

    def test_one_that_was_never_updated_is_refused(self, metrics):
        with pytest.raises(ValueError, match=r'Please call update_state\(...\) on the "idle"'):
            eval_spec(eval_metric_ops={"m": metrics.Mean(name="idle")})

    def test_one_of_another_graph_is_refused(self, metrics):
        metric = from_another_graph(lambda: self.updated_mean(metrics))
        with pytest.raises(ValueError, match="must be from the default graph"):
            eval_spec(eval_metric_ops={"m": metric})


class TestTPUEstimatorSpec:
    def test_fields_come_in_the_legacy_order(self):
        assert TPUEstimatorSpec._fields == (
            "mode",
            "predictions",
            "loss",
            "train_op",
            "eval_metrics",
            "export_outputs",
            "scaffold_fn",
            "host_call",
            "training_hooks",
            "evaluation_hooks",
            "prediction_hooks",
        )

    def test_it_checks_what_estimator_spec_checks(self):
        with pytest.raises(ValueError, match="Missing loss"):
            TPUEstimatorSpec(ModeKeys.EVAL)

    def test_what_is_no_hook_is_refused(self):
        with pytest.raises(TypeError, match="must be a SessionRunHook"):
            tpu_spec(evaluation_hooks=["hook"])

    def test_metric_fn_takes_a_list_by_position(self):
        pair = (tf.constant(1.0), tf.no_op())
        metric_fn = mock.Mock(return_value={"m": pair})
        spec = tpu_spec(eval_metrics=(metric_fn, [1, 2])).as_estimator_spec()
        metric_fn.assert_called_once_with(1, 2)
        assert spec.eval_metric_ops == {"m": pair}

    def test_metric_fn_takes_a_dict_by_name(self):
        metric_fn = mock.Mock(return_value={})
        tpu_spec(eval_metrics=(metric_fn, {"labels": 1, "logits": 2})).as_estimator_spec()
        metric_fn.assert_called_once_with(labels=1, logits=2)

    def test_two_specs_keep_their_metrics_apart(self):
        first = tpu_spec(eval_metrics=(lambda x: {"first": (x, x)}, [tf.constant(1.0)]))
        tpu_spec(eval_metrics=(lambda x: {"second": (x, x)}, [tf.constant(2.0)]))
        assert list(first.as_estimator_spec().eval_metric_ops) == ["first"]

    def test_the_scaffold_comes_from_scaffold_fn(self):
        scaffold = tf1.train.Scaffold()
        assert tpu_spec(scaffold_fn=lambda: scaffold).as_estimator_spec().scaffold is scaffold

    def test_functions_are_called_in_the_legacy_order(self):
        calls = []
        tpu_spec(
            scaffold_fn=lambda: calls.append("scaffold"),
            host_call=(lambda: calls.append("host"), []),
            eval_metrics=(lambda: calls.append("metrics"), []),
        ).as_estimator_spec()
        assert calls == ["metrics", "host", "scaffold"]

    def test_host_call_becomes_a_hook_of_every_mode(self):
        hook = Hook()
        spec = tpu_spec(host_call=(lambda x: x, [tf.constant([1.0])]), training_hooks=[hook])
        spec = spec.as_estimator_spec()
        (host_hook,) = spec.evaluation_hooks
        assert isinstance(host_hook, HostCallHook)
        assert spec.training_hooks == (hook, host_hook)
        assert spec.prediction_hooks == (host_hook,)

    def test_replace_takes_another_host_call(self):
        spec = tpu_spec()._replace(host_call=(lambda: None, []))
        assert len(spec.as_estimator_spec().evaluation_hooks) == 1


@pytest.mark.parametrize("field", ["eval_metrics", "host_call"])
class TestPairsOfFunctionAndTensors:
    def refused(self, field, pair, error, match):
        with pytest.raises(error, match=match):
            tpu_spec(**{field: pair})

    def test_a_lone_function_is_refused(self, field):
        self.refused(field, len, ValueError, f"{field} should be tuple or list")

    def test_a_triple_is_refused(self, field):
        self.refused(field, (len, [], []), ValueError, f"{field} should have two elements")

    def test_a_function_that_is_none_is_refused(self, field):
        self.refused(field, ("fn", []), TypeError, rf"{field}\[0\] should be callable")

    def test_a_bare_tensor_is_refused(self, field):
        pair = (lambda x: x, tf.constant(1.0))
        self.refused(field, pair, ValueError, rf"{field}\[1\] should be tuple or list, or dict")

    def test_a_list_of_another_length_is_refused(self, field):
        match = f"{field}, length of tensors 1 does not match method args.*takes 2"
        self.refused(field, (lambda a, b: None, [1]), RuntimeError, match)

    def test_a_dict_with_another_name_is_refused(self, field):
        match = rf"{field}, the names of the tensors \['logits'\] do not match.*takes \(labels\)"
        self.refused(field, (lambda labels: None, {"logits": 1}), TypeError, match)

    def test_a_function_of_any_number_of_arguments_takes_a_list(self, field):
        assert tpu_spec(**{field: (lambda *args: None, [1, 2, 3])})

    def test_a_partial_takes_the_arguments_that_are_left(self, field):
        function = functools.partial(lambda a, b, c: None, 0)
        assert tpu_spec(**{field: (function, [1, 2])})

    def test_a_bound_method_does_not_count_self(self, field):
        class Model:
            def function(self, a):
                return {}

        assert tpu_spec(**{field: (Model().function, [1])})


class TestHostCallHook:
    def test_it_evaluates_the_host_call_at_every_step(self):
        counter = tf1.get_variable("counter", [], initializer=tf1.zeros_initializer())
        hook = HostCallHook([tf1.assign_add(counter, 1.0)])
        batch = tf.constant(0)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(batch)
            session.run(batch)
            # A run that hooks do not see.
            read = session.run_step_fn(lambda step_context: step_context.session.run(counter))
        assert read == 2.0

    def test_it_opens_and_flushes_the_summary_writers_of_the_graph(self, tmp_path):
        batch = tf.constant(0)
        with tf.summary.create_file_writer(str(tmp_path)).as_default():
            tf.summary.write("loss", 0.5, step=7)
        hook = HostCallHook(tf1.summary.all_v2_summary_ops())
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(batch)
        (path,) = tmp_path.iterdir()
        events = tf1.train.summary_iterator(str(path))
        assert [event.step for event in events if event.summary.value] == [7]
