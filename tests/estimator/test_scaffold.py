"""Scaffold: how a model's state starts, what is saved of it, and when it is ready."""

from __future__ import annotations

import glob
import os

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


def with_scaffold(make):
    """`falling` with the Scaffold that `make(weight)` returns."""

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        return spec._replace(scaffold=make(tf1.global_variables("weight")[0]))

    return model_fn


def weight_after(model_dir, model_fn, steps=1):
    model = host_estimator(model_dir, model_fn)
    model.train(numbers(9), steps=steps)
    return float(model.get_variable_value("weight"))


class TestStart:
    def test_init_op_with_its_feeds_replaces_the_default_one(self, model_dir):
        def make(weight):
            fed = tf1.placeholder(tf.float32, [])
            step = tf1.train.get_global_step()
            init = tf.group(tf1.assign(weight, fed), step.initializer)
            return tf1.train.Scaffold(init_op=init, init_feed_dict={fed: 20.0})

        assert weight_after(model_dir, with_scaffold(make)) == 19.0

    def test_init_fn_runs_after_the_init_op_and_not_after_a_restore(self, model_dir):
        calls = []

        def make(weight):
            def init_fn(scaffold, session):
                calls.append(float(session.run(weight)))
                session.run(weight.initializer, {weight.initializer.inputs[1]: 7.0})

            return tf1.train.Scaffold(init_fn=init_fn)

        assert weight_after(model_dir, with_scaffold(make)) == 6.0
        assert weight_after(model_dir, with_scaffold(make)) == 5.0
        assert calls == [0.0]

    def test_local_init_op_runs_in_each_mode_beside_the_default_one_in_evaluation(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            local = tf1.get_variable("local", [], collections=["local_variables"])
            scaffold = tf1.train.Scaffold(local_init_op=tf1.assign(local, 5.0).op)
            if mode == estimator.ModeKeys.PREDICT:
                spec = spec._replace(predictions={"sum": features + local})
            elif mode == estimator.ModeKeys.EVAL:
                metrics = {"mean": tf1.metrics.mean(features + local)}
                spec = spec._replace(eval_metric_ops=metrics)
            return spec._replace(scaffold=scaffold)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(2), steps=1)
        assert model.evaluate(numbers(3))["mean"] == 7.0
        assert [float(p["sum"]) for p in model.predict(numbers(2))] == [6.0, 7.0]

    def test_what_is_not_ready_is_an_error(self, model_dir):
        def make(weight):
            return tf1.train.Scaffold(ready_op=tf.constant(["weight"]))

        with pytest.raises(RuntimeError, match=r"(?i)init.*weight"):
            weight_after(model_dir, with_scaffold(make))

    def test_variables_without_a_value_are_named(self, model_dir):
        def make(weight):
            return tf1.train.Scaffold(init_op=tf1.train.get_global_step().initializer)

        with pytest.raises(RuntimeError, match="weight"):
            weight_after(model_dir, with_scaffold(make))

    def test_ready_for_local_init_op_holds_back_the_local_init_op(self, model_dir):
        def make(weight):
            return tf1.train.Scaffold(ready_for_local_init_op=tf.constant(["weight"]))

        with pytest.raises(RuntimeError, match="weight"):
            weight_after(model_dir, with_scaffold(make))

    def test_what_a_copied_scaffold_leaves_open_comes_from_the_other(self, model_dir):
        def make(weight):
            def seven(scaffold, session):
                session.run(weight.initializer, {weight.initializer.inputs[1]: 7.0})

            saver = tf1.train.Saver([weight, tf1.train.get_global_step()])
            return tf1.train.Scaffold(
                saver=saver, copy_from_scaffold=tf1.train.Scaffold(init_fn=seven)
            )

        assert weight_after(model_dir, with_scaffold(make)) == 6.0

    def test_lookup_tables_are_initialised(self, model_dir):
        def model_fn(features, labels, mode, params):
            table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer([1, 2], [10.0, 20.0]), default_value=0.0
            )
            return falling(table.lookup(tf.cast(features, tf.int32)), labels, mode, params)

        assert weight_after(model_dir, model_fn, steps=3) == -30.0


class TestSummaryOp:
    def test_it_replaces_the_merged_summaries(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            mine = tf1.summary.scalar("mine", spec.loss)
            return spec._replace(scaffold=tf1.train.Scaffold(summary_op=mine))

        host_estimator(model_dir, model_fn).train(numbers(3), steps=2)
        tf1.summary.FileWriterCache.clear()
        (path,) = glob.glob(os.path.join(model_dir, "events*"))
        tags = {
            value.tag for event in tf1.train.summary_iterator(path) for value in event.summary.value
        }
        assert tags == {"mine"}


class TestSaver:
    def test_a_scaffolds_saver_is_the_only_one(self, model_dir):
        savers = []

        class Look(tf1.train.SessionRunHook):
            def begin(self):
                savers.extend(tf1.get_collection(tf1.GraphKeys.SAVERS))

        def make(weight):
            return tf1.train.Scaffold(saver=tf1.train.Saver())

        model = host_estimator(model_dir, with_scaffold(make))
        model.train(numbers(2), steps=1, hooks=[Look()])
        assert savers == []

    def test_a_saver_in_the_collection_is_used(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            names = {"other": tf1.global_variables("weight")[0]}
            names["global_step"] = tf1.train.get_global_step()
            tf1.add_to_collection(tf1.GraphKeys.SAVERS, tf1.train.Saver(names))
            return spec

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(2), steps=1)
        assert model.get_variable_names() == ["global_step", "other"]

    def test_a_partial_saver_leaves_the_rest_to_the_init_op_again(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            count = tf1.get_variable("count", [], initializer=tf1.zeros_initializer())
            weight = tf1.global_variables("weight")[0]
            saver = tf1.train.Saver([weight, tf1.train.get_global_step()])
            predictions = {"count": features * 0 + count, "weight": features * 0 + weight}
            return spec._replace(
                scaffold=tf1.train.Scaffold(
                    saver=saver,
                    local_init_op=tf.group(
                        count.initializer, tf1.train.Scaffold.default_local_init_op()
                    ),
                    ready_for_local_init_op=tf1.report_uninitialized_variables([weight]),
                ),
                predictions=predictions,
            )

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(9), steps=3)
        (prediction,) = model.predict(numbers(1))
        assert prediction == {"count": 0.0, "weight": -6.0}

    def test_moving_averages_are_restored_in_place_of_the_variables(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            weight = tf1.global_variables("weight")[0]
            average = tf.train.ExponentialMovingAverage(0.5)
            if mode == estimator.ModeKeys.TRAIN:
                with tf.control_dependencies([spec.train_op]):
                    return spec._replace(train_op=average.apply([weight]))
            names = average.variables_to_restore([weight])
            return spec._replace(scaffold=tf1.train.Scaffold(saver=tf1.train.Saver(names)))

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(9), steps=2)
        # The average of a weight that was 0, -1, -3: 0, then -0.5, then -1.75.
        (prediction,) = model.predict(numbers(1))
        assert prediction["sum"] == 1.0 - 1.75

    def test_object_based_checkpoints_on_request(self, model_dir):
        def make(weight):
            step = tf1.train.get_global_step()
            return tf1.train.Scaffold(saver=tf.train.Checkpoint(w=weight, step=step))

        model = host_estimator(model_dir, with_scaffold(make))
        model.train(numbers(9), steps=2)
        model.train(numbers(9), steps=1)
        names = model.get_variable_names()
        assert "w/.ATTRIBUTES/VARIABLE_VALUE" in names
        assert model.get_variable_value("w/.ATTRIBUTES/VARIABLE_VALUE") == -4.0


@pytest.fixture
def old(tmp_path):
    """A checkpoint with scope/a = [1, 2], scope/b = [3, 4], scope/part = [0..3]."""
    with tf.Graph().as_default(), tf1.Session() as session:
        with tf1.variable_scope("scope"):
            tf1.get_variable("a", initializer=[1.0, 2.0])
            tf1.get_variable("b", initializer=[3.0, 4.0])
            tf1.get_variable("part", initializer=np.arange(4, dtype=np.float32))
        tf1.train.create_global_step()
        session.run(tf1.global_variables_initializer())
        return tf1.train.Saver().save(session, str(tmp_path / "old" / "model.ckpt"))


def make_new():
    """new/a and new/b of the model, which start at zero."""
    with tf1.variable_scope("new"):
        zeros = tf1.zeros_initializer()
        return [tf1.get_variable(name, [2], initializer=zeros) for name in "ab"]


class TestInitFromCheckpoint:
    """`tf.train.init_from_checkpoint` in model_fn, with each form of assignment map."""

    def values(self, model_dir, old, assignment_map, make=make_new):
        def model_fn(features, mode):
            variables = make()
            chosen = assignment_map(variables)
            tf1.train.init_from_checkpoint(old, chosen)
            values = [tf.convert_to_tensor(variable) for variable in variables]
            values.append(features * 0)  # so that each prediction takes an example
            predictions = {"values": tf.expand_dims(tf.concat(values, 0), 0)}
            return estimator.EstimatorSpec(mode, predictions=predictions)

        (prediction,) = estimator.Estimator(model_fn, model_dir).predict(numbers(1))
        return prediction["values"].tolist()[:-1]

    @pytest.mark.parametrize(
        ("assignment_map", "expected"),
        [
            (lambda v: {"scope/": "new/"}, [1.0, 2.0, 3.0, 4.0]),
            (lambda v: {"scope/a": "new/b"}, [0.0, 0.0, 1.0, 2.0]),
            (lambda v: {"scope/b": v[0]}, [3.0, 4.0, 0.0, 0.0]),
            (lambda v: [("scope/a", v[0]), ("scope/a", v[1])], [1.0, 2.0, 1.0, 2.0]),
        ],
        ids=["scope", "name", "variable", "pairs"],
    )
    def test_each_form_of_map(self, model_dir, old, assignment_map, expected):
        assert self.values(model_dir, old, assignment_map) == expected

    def test_root_scope(self, model_dir, old):
        def make():
            with tf1.variable_scope("scope"):
                return [tf1.get_variable("a", [2]), tf1.get_variable("b", [2])]

        assert self.values(model_dir, old, lambda v: {"/": "/"}, make) == [1.0, 2.0, 3.0, 4.0]

    @pytest.mark.parametrize("as_list", [True, False])
    def test_a_partitioned_variable(self, model_dir, old, as_list):
        def make():
            partitioner = tf1.fixed_size_partitioner(2)
            return [tf1.get_variable("p", [4], partitioner=partitioner)]

        def assignment_map(variables):
            return {"scope/part": list(variables[0]) if as_list else "p"}

        assert self.values(model_dir, old, assignment_map, make) == [0.0, 1.0, 2.0, 3.0]

    def test_a_name_that_the_checkpoint_lacks_is_refused(self, model_dir, old):
        with pytest.raises(ValueError, match="scope/c"):
            self.values(model_dir, old, lambda v: {"scope/c": v[0]})

    def test_another_shape_is_refused(self, model_dir, old):
        with pytest.raises(ValueError, match=r"(?i)shape"):
            self.values(model_dir, old, lambda v: {"scope/part": v[0]})
