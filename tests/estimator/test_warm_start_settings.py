"""WarmStartSettings: which variables are taken, under which name, row by row of a vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import numbers

tf1 = tf.compat.v1
Settings = estimator.WarmStartSettings

# `constant_initializer` wants a static shape, which no version of TensorFlow gives it here.
NINE = tf1.random_uniform_initializer(9.0, 9.0)


@pytest.fixture
def old(tmp_path):
    """A folder with a checkpoint: a/kernel = 1, a/bias = 2, b/kernel = 3, and rows of words."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.create_global_step()
        tf1.get_variable("a/kernel", initializer=1.0)
        tf1.get_variable("a/bias", initializer=2.0)
        tf1.get_variable("b/kernel", initializer=3.0)
        tf1.get_variable("words", initializer=[[1.0], [2.0], [3.0]])
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, str(tmp_path / "old" / "model.ckpt"))
    return str(tmp_path / "old")


@pytest.fixture
def started(model_dir):
    """`started(make, settings)`: values, before any training, of what `make()` makes."""

    def values_of(make, settings, call="predict"):
        def model_fn(features, mode):
            variables = make()
            flat = [tf.reshape(tf.convert_to_tensor(v), [-1]) for v in variables]
            values = tf.concat([*flat, features[:1] * 0], 0)
            loss = tf.reduce_sum(values)
            train_op = tf1.train.get_global_step().assign_add(1)
            predictions = {"values": tf.expand_dims(values, 0)}
            return estimator.EstimatorSpec(mode, predictions, loss, train_op)

        model = estimator.Estimator(model_fn, model_dir, warm_start_from=settings)
        if call == "evaluate":
            return model.evaluate(numbers(1))["loss"]
        (prediction,) = model.predict(numbers(1))
        return prediction["values"].tolist()[:-1]

    return values_of


def layers():
    """Zeros: a/kernel, a/bias, b/kernel; b/kernel is not trainable."""
    zeros = tf1.zeros_initializer()
    return [
        tf1.get_variable("a/kernel", [], initializer=zeros),
        tf1.get_variable("a/bias", [], initializer=zeros),
        tf1.get_variable("b/kernel", [], initializer=zeros, trainable=False),
    ]


class TestVarsToWarmStart:
    @pytest.mark.parametrize(
        ("variables", "expected"),
        [
            (".*", [1.0, 2.0, 0.0]),  # regular expressions choose among trainable variables
            (".*kernel", [1.0, 0.0, 0.0]),
            ("a/.*", [1.0, 2.0, 0.0]),
            (["a/bias"], [0.0, 2.0, 0.0]),
            (["a/k.*", "b/k.*"], [1.0, 0.0, 3.0]),  # a list of them among all
        ],
    )
    def test_expressions_choose(self, started, old, variables, expected):
        assert started(layers, Settings(old, variables)) == expected

    def test_a_name_that_there_is_not_is_refused(self, started, old):
        with pytest.raises((ValueError, KeyError)):
            started(layers, Settings(old, ["no_such"], var_name_to_prev_var_name={"no_such": "x"}))

    def test_variables_themselves_choose(self, started, old):
        chosen = []

        def make():
            variables = layers()
            chosen.extend(variables[1:])
            return variables

        assert started(make, Settings(old, chosen)) == [0.0, 2.0, 3.0]

    def test_evaluation_starts_from_them_too(self, started, old):
        assert started(layers, Settings(old), call="evaluate") == 3.0


class TestPreviousNames:
    def test_a_partitioned_variable_is_cut_from_a_whole_one(self, started, old):
        def make():
            partitioner = tf1.fixed_size_partitioner(3)
            zeros = tf1.zeros_initializer()
            return [tf1.get_variable("new", [3, 1], initializer=zeros, partitioner=partitioner)]

        settings = Settings(old, var_name_to_prev_var_name={"new": "words"})
        assert started(make, settings) == [1.0, 2.0, 3.0]


class TestVocabulary:
    """A vocabulary [c, d, a] where the checkpoint's was [a, b, c] with a row for each."""

    @pytest.fixture
    def vocabulary(self, tmp_path):
        (tmp_path / "new.txt").write_text("c\nd\na\n")
        (tmp_path / "old.txt").write_text("a\nb\nc\n")

        def info(**kwargs):
            return estimator.VocabInfo(
                new_vocab=str(tmp_path / "new.txt"),
                new_vocab_size=3,
                num_oov_buckets=kwargs.pop("num_oov_buckets", 0),
                old_vocab=str(tmp_path / "old.txt"),
                **kwargs,
            )

        return info

    def words(self, rows=3):
        return lambda: [tf1.get_variable("words", [rows, 1], initializer=tf1.zeros_initializer())]

    def test_rows_follow_their_words_and_new_ones_the_backup_initializer(
        self, started, old, vocabulary
    ):
        info = vocabulary(backup_initializer=NINE)
        settings = Settings(old, var_name_to_vocab_info={"words": info})
        assert started(self.words(), settings) == [3.0, 9.0, 1.0]

    def test_rows_for_unknown_words_are_initialised_too(self, started, old, vocabulary):
        info = vocabulary(backup_initializer=NINE, num_oov_buckets=1)
        settings = Settings(old, var_name_to_vocab_info={"words": info})
        assert started(self.words(4), settings) == [3.0, 9.0, 1.0, 9.0]

    def test_only_the_first_words_of_the_old_vocabulary(self, started, old, vocabulary):
        info = vocabulary(backup_initializer=NINE, old_vocab_size=2)
        settings = Settings(old, var_name_to_vocab_info={"words": info})
        assert started(self.words(), settings) == [9.0, 9.0, 1.0]

    def test_columns_on_request(self, started, old, vocabulary, tmp_path):
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.get_variable("words", initializer=[[1.0, 2.0, 3.0]])
            session.run(tf1.global_variables_initializer())
            path = tf1.train.Saver().save(session, str(tmp_path / "columns" / "model.ckpt"))
        info = vocabulary(backup_initializer=NINE, axis=1)

        def make():
            return [tf1.get_variable("words", [1, 3], initializer=tf1.zeros_initializer())]

        settings = Settings(path, var_name_to_vocab_info={"words": info})
        assert started(make, settings) == [3.0, 9.0, 1.0]

    def test_without_other_variables(self, started, old, vocabulary):
        info = vocabulary(backup_initializer=NINE)
        settings = Settings(old, vars_to_warm_start=None, var_name_to_vocab_info={"words": info})

        def make():
            return [*self.words()(), *layers()]

        assert np.array_equal(started(make, settings), [3.0, 9.0, 1.0, 0.0, 0.0, 0.0])
