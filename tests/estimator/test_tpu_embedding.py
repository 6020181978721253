"""embedding_config_spec: on the host as the real one, and on cores as on the host."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tf_keras.api._v1.keras.layers import DenseFeatures

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.embedding_spec import (
    FeatureConfig,
    MomentumParameters,
    TableConfig,
)
from estimator2strategy.tools.xla.tpu_metadata import tpu_strategy
from tests.programs import embeddings

tf1 = tf.compat.v1
tpu = estimator.tpu
experimental = tpu.experimental
Adagrad = experimental.AdagradParameters
GOLDEN = Path(__file__).parents[1] / "goldens" / "embeddings.json"
DUMMY = "tpu_embedding_dummy_table_variable_"


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-6)


def make(model_dir, use_tpu=True, parameters=None, model_fn=None, pipeline=None, **kwargs):
    columns = embeddings.columns()
    model_fn = model_fn or embeddings.model_fn_of(
        DenseFeatures, tpu.TPUEstimatorSpec, columns, lambda: tf1.train.AdagradOptimizer(0.1)
    )
    spec = {"feature_columns": columns, "optimization_parameters": parameters or Adagrad(0.1)}
    tpu_config = tpu.TPUConfig(
        per_host_input_for_training=pipeline or tpu.InputPipelineConfig.PER_HOST_V1
    )
    strategy = kwargs.pop("strategy", None)
    return tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=model_dir, tpu_config=tpu_config),
        use_tpu=use_tpu,
        train_batch_size=embeddings.BATCH,
        eval_batch_size=embeddings.BATCH,
        predict_batch_size=embeddings.BATCH,
        strategy=strategy,
        embedding_config_spec=experimental.EmbeddingConfigSpec(**{**spec, **kwargs}),
    )


def golden():
    return json.loads(GOLDEN.read_text())["adagrad"]


def test_host_trains_as_the_real_one(model_dir):
    model = make(model_dir, use_tpu=False)
    model.train(embeddings.input_fn, steps=embeddings.STEPS)
    trained = embeddings.variables_of(model)
    assert trained.keys() == golden().keys()
    for name, values in golden().items():
        close(trained[name], values)


@pytest.mark.oldest
@pytest.mark.parametrize(
    "pipeline", [tpu.InputPipelineConfig.PER_HOST_V1, tpu.InputPipelineConfig.PER_HOST_V2]
)
def test_cores_train_as_the_host_does(model_dir, emulated_cores, pipeline):
    emulated_cores(2)
    model = make(model_dir, pipeline=pipeline)
    model.train(embeddings.input_fn, steps=embeddings.STEPS)
    trained = embeddings.variables_of(model)
    for name, values in golden().items():
        close(trained[name], values)
    # Beside those of the host there are the slots of what gradients come by, as there were.
    assert all(name.startswith(DUMMY) for name in trained.keys() - golden().keys())


def test_a_checkpoint_of_cores_is_one_of_the_host(model_dir, emulated_cores):
    emulated_cores(2)
    on_cores = make(model_dir)
    on_cores.train(embeddings.input_fn, steps=2)
    losses = [
        model.evaluate(embeddings.input_fn, steps=3)["loss"]
        for model in (on_cores, make(model_dir, use_tpu=False))
    ]
    close(losses[0], losses[1])


def one_row(model_dir, parameters, table=None, step_loss=lambda x: tf.reduce_sum(x), **kwargs):
    """Trains one step on a table of two rows of 1.0, of which each core looks up row 0 once.

    With two cores, which CrossShardOptimizer weighs with 1/2, the row's gradient is that of
    `step_loss`.
    """

    def input_fn(params):
        examples = tf.data.Dataset.from_tensors({"ids": tf.constant([0], tf.int64)}).repeat()
        return examples.batch(params["batch_size"], drop_remainder=True)

    def model_fn(features, labels, mode, params):
        loss = step_loss(features["ids"])
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    table = TableConfig(2, 1, tf1.ones_initializer(), combiner=None, **(table or {}))
    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=model_dir),
        train_batch_size=2,
        embedding_config_spec=experimental.EmbeddingConfigSpec(
            optimization_parameters=parameters,
            feature_to_config_dict={"ids": FeatureConfig("table")},
            table_to_config_dict={"table": table},
            **kwargs,
        ),
    )
    model.train(input_fn, steps=1)
    return model


def quarter(rows):
    return tf.reduce_sum(rows) / 4


class TestUpdate:
    @pytest.fixture(autouse=True)
    def _two_cores(self, emulated_cores):
        emulated_cores(2)

    @pytest.mark.parametrize(
        ("parameters", "row"),
        [
            (experimental.StochasticGradientDescentParameters(0.5), 0.5),
            (experimental.StochasticGradientDescentParameters(0.5, clip_weight_min=0.75), 0.75),
            (experimental.StochasticGradientDescentParameters(0.5, clip_gradient_max=0.5), 0.75),
            (Adagrad(0.5, initial_accumulator=3.0), 0.75),  # 1 - 0.5 * 1 / sqrt(3 + 1)
            # m = 0.5, v = 0.75: 1 - 0.5 * 0.5 / sqrt(0.75 + 0.25), and / (sqrt(0.75) + 0.5)
            (experimental.AdamParameters(0.5, beta1=0.5, beta2=0.25, epsilon=0.5), 0.75),
            (
                experimental.AdamParameters(
                    0.5, beta1=0.5, beta2=0.25, epsilon=0.5, sum_inside_sqrt=False
                ),
                1 - 0.25 / (0.75**0.5 + 0.5),
            ),
        ],
    )
    def test_of_each_optimizer(self, model_dir, parameters, row):
        table = one_row(model_dir, parameters).get_variable_value("table")
        close(table, [[row], [1.0]])

    @pytest.mark.parametrize(
        "kwargs",
        [
            {"table": {"learning_rate": 0.25}},
            {"table": {"learning_rate_fn": lambda step: 0.25 + tf.cast(step, tf.float32)}},
            {"table": {"learning_rate_fn": lambda step: tf.constant(1)}, "step_loss": quarter},
            {"experimental_gradient_multiplier_fn": lambda step: 0.5},
            {
                "table": {
                    "optimization_parameters": experimental.StochasticGradientDescentParameters(
                        0.25
                    )
                }
            },
        ],
    )
    def test_learns_at_the_rate_of_the_table(self, model_dir, kwargs):
        parameters = experimental.StochasticGradientDescentParameters(0.5)
        close(one_row(model_dir, parameters, **kwargs).get_variable_value("table")[0], [0.75])

    def test_leaves_slots_under_the_names_of_the_host(self, model_dir):
        model = one_row(model_dir, experimental.AdamParameters(0.5))
        slots = ["table/Adam/m", "table/Adam/v"]
        assert model.get_variable_names() == ["global_step", "table", *slots]

    def test_is_none_where_no_gradient_flows(self, model_dir):
        def stopped(rows):
            return tf.reduce_sum(tf.stop_gradient(rows)) + tf1.get_variable("w", [])

        model = one_row(model_dir, Adagrad(0.5), step_loss=stopped)
        close(model.get_variable_value("table"), [[1.0], [1.0]])


def test_sequences_are_cut_and_filled_up(model_dir, emulated_cores):
    emulated_cores(2)
    seen = []

    def input_fn(params):
        ids = tf.constant([[2, 1, 0], [1, -1, -1]], tf.int64)
        examples = tf.data.Dataset.from_tensor_slices(ids).repeat()
        examples = examples.map(lambda x: tf.boolean_mask(x, x >= 0)).map(sparse)
        return examples.batch(params["batch_size"], drop_remainder=True)

    def sparse(x):
        indices = tf.expand_dims(tf.range(tf.size(x, tf.int64)), 1)
        return {"ids": tf.SparseTensor(indices, x, [3])}

    def model_fn(features, labels, mode, params):
        tensors = [features["ids"], features["ids_seq_length_"]]
        loss = tf.reduce_sum(features["ids"])

        def host_fn(rows, lengths):
            def note(*values):
                seen.append(values)
                return np.int64(0)

            return tf1.py_func(note, [rows, lengths], tf.int64)

        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.0))
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        host_call = (host_fn, tensors)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)

    table = TableConfig(3, 1, tf1.constant_initializer([[1.0], [2.0], [3.0]]))
    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=model_dir),
        train_batch_size=2,
        embedding_config_spec=experimental.EmbeddingConfigSpec(
            optimization_parameters=Adagrad(0.1),
            feature_to_config_dict={"ids": FeatureConfig("table", max_sequence_length=2)},
            table_to_config_dict={"table": table},
        ),
    )
    model.train(input_fn, steps=1)
    ((rows, lengths),) = seen
    assert rows[..., 0].tolist() == [[3.0, 2.0], [2.0, 0.0]]
    assert lengths.tolist() == [2, 1]


class TestRefusals:
    def test_of_tables_on_a_real_tpu(self, model_dir):
        model = make(model_dir, strategy=tpu_strategy(1, 2))
        with pytest.raises(UnsupportedError, match="embedding hardware are not supported yet"):
            model.train(embeddings.input_fn, steps=1)

    def test_of_prediction_on_cores(self, model_dir, emulated_cores):
        emulated_cores(2)
        with pytest.raises(UnsupportedError, match="predict never looked tables up on cores"):
            next(make(model_dir).predict(embeddings.input_fn))

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            (MomentumParameters(0.1, 0.9), "MomentumParameters is not supported on emulated cores"),
            (Adagrad(0.1, weight_decay_factor=0.1), "weight_decay_factor is not supported"),
        ],
    )
    def test_of_other_optimizers(self, model_dir, emulated_cores, parameters, words):
        emulated_cores(2)
        with pytest.raises(UnsupportedError, match=words):
            make(model_dir, parameters=parameters).train(embeddings.input_fn, steps=1)

    def test_of_weights_that_two_features_share(self, model_dir, emulated_cores):
        emulated_cores(2)
        identity = tf.feature_column.categorical_column_with_identity
        columns = [
            tf1.tpu.experimental.embedding_column(
                tf.feature_column.weighted_categorical_column(identity(name, 8), "weights"), 2
            )
            for name in ("left", "right")
        ]
        with pytest.raises(ValueError, match="weight-sharing among weighted_categorical_column"):
            make(model_dir, feature_columns=columns).train(embeddings.input_fn, steps=1)

    def test_of_input_for_each_core(self, model_dir):
        with pytest.raises(ValueError, match="Only PER_HOST_V1 and PER_HOST_V2 is supported"):
            make(model_dir, pipeline=tpu.InputPipelineConfig.BROADCAST)

    def test_of_rows_dealt_out_on_the_host(self, model_dir):
        with pytest.raises(ValueError, match="Mod sharding of embedding tables not supported"):
            make(model_dir, use_tpu=False, partition_strategy="mod")

    def test_of_columns_that_model_fn_does_not_use(self, model_dir, emulated_cores):
        emulated_cores(2)

        def model_fn(features, labels, mode, params):
            loss = tf.reduce_mean(labels) * tf1.get_variable("w", [])
            optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
            train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

        with pytest.raises(RuntimeError, match="feature column did not capture any thing"):
            make(model_dir, model_fn=model_fn).train(embeddings.input_fn, steps=1)

    @pytest.mark.parametrize(
        ("kwargs", "error", "words"),
        [
            ({}, ValueError, "Exactly one of `feature_columns` and the pair"),
            ({"feature_columns": ["ids"]}, TypeError, "must be supported types in"),
            (
                {"feature_columns": embeddings.columns(), "optimization_parameters": 0.1},
                ValueError,
                "optimization_parameters must be an instance of type",
            ),
            (
                {
                    "feature_to_config_dict": {"ids": FeatureConfig("other")},
                    "table_to_config_dict": {"table": TableConfig(1, 1)},
                },
                ValueError,
                "Feature ids refers to table other which is not in",
            ),
        ],
    )
    def test_of_incomplete_specs(self, kwargs, error, words):
        with pytest.raises(error, match=words):
            experimental.EmbeddingConfigSpec(**kwargs)

    @pytest.mark.parametrize(
        ("kwargs", "words"),
        [
            ({"initial_accumulator": 0.0}, "initial_accumulator must be greater than zero"),
            (
                {"use_gradient_accumulation": False, "clip_gradient_min": 0.0},
                "gradient accumulation must be enabled",
            ),
        ],
    )
    def test_of_parameters_out_of_range(self, kwargs, words):
        with pytest.raises(ValueError, match=words):
            Adagrad(0.1, **kwargs)
