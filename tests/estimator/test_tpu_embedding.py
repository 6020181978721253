"""embedding_config_spec: on the host as the real one, and on cores as on the host."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tf_keras.api._v1.keras.layers import DenseFeatures

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.xla.core_program import core_program, unsupported
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.embedding_spec import (
    FeatureConfig,
    MomentumParameters,
    TableConfig,
)
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from tests.programs import embeddings
from tests.rehearsal import rehearsal

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
@pytest.mark.evidence("embeddings", "cpu")
def test_cores_train_as_the_host_does(model_dir, emulated_cores, pipeline):
    emulated_cores(2)
    model = make(model_dir, pipeline=pipeline)
    model.train(embeddings.input_fn, steps=embeddings.STEPS)
    trained = embeddings.variables_of(model)
    for name, values in golden().items():
        close(trained[name], values)
    # Beside those of the host there are the slots of what gradients come by, as there were.
    assert all(name.startswith(DUMMY) for name in trained.keys() - golden().keys())


@pytest.mark.evidence("embeddings", "cpu")
@pytest.mark.parametrize("accumulates", [True, False])
@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(tpu.InputPipelineConfig.PER_HOST_V1, marks=pytest.mark.slow),
        tpu.InputPipelineConfig.PER_HOST_V2,
    ],
)
@pytest.mark.evidence("embeddings", "rehearsed")
def test_a_tpu_trains_as_emulated_cores_do(
    model_dir, emulated_cores, monkeypatch, pipeline, accumulates, caplog
):
    parameters = Adagrad(0.1, use_gradient_accumulation=accumulates)
    settings = {"parameters": parameters, "pipeline": pipeline}
    emulated_cores(2)
    emulated = make(f"{model_dir}/emulated", **settings)
    emulated.train(embeddings.input_fn, steps=embeddings.STEPS)
    monkeypatch.setattr(devices, "_emulated_cores", 0)
    with rehearsal(cores_per_host=2):
        model = make(model_dir, **settings)
        model.train(embeddings.input_fn, steps=embeddings.STEPS)
    assert "its embedding hardware is not used" in caplog.text
    expected, trained = map(embeddings.variables_of, (emulated, model))
    assert trained.keys() == expected.keys()
    for name, values in expected.items():
        close(trained[name], values)


@pytest.mark.evidence("embeddings", "traced")
def test_a_tpu_has_kernels_for_lookups_and_updates(model_dir):
    model = make(model_dir, strategy=tpu_strategy(1, 2))
    with recording_graph(model):
        program = core_program(record_for(model, estimator.ModeKeys.TRAIN, embeddings.input_fn))
    assert unsupported(program) == []
    assert {"GatherV2", "UnsortedSegmentSum"} <= {program.recorded[n].op for n in program.nodes}


def test_a_checkpoint_of_cores_is_one_of_the_host(model_dir, emulated_cores):
    emulated_cores(2)
    on_cores = make(model_dir)
    on_cores.train(embeddings.input_fn, steps=2)
    losses = [
        model.evaluate(embeddings.input_fn, steps=3)["loss"]
        for model in (on_cores, make(model_dir, use_tpu=False))
    ]
    close(losses[0], losses[1])


def row_zero(params):
    """input_fn: each example looks up row 0."""
    examples = tf.data.Dataset.from_tensors({"ids": tf.constant([0], tf.int64)}).repeat()
    return examples.batch(params["batch_size"], drop_remainder=True)


def one_row(
    model_dir,
    parameters,
    table=None,
    step_loss=lambda features: tf.reduce_sum(features["ids"]),
    input_fn=row_zero,
    batch_size=2,
    **kwargs,
):
    """Trains one step on a table of two rows of 1.0, of which each core looks up row 0 once.

    With two cores, which CrossShardOptimizer weighs with 1/2, the row's gradient is that of
    `step_loss`.
    """

    def model_fn(features, labels, mode, params):
        loss = step_loss(features)
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    table = TableConfig(2, 1, tf1.ones_initializer(), combiner=None, **(table or {}))
    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=model_dir),
        train_batch_size=batch_size,
        embedding_config_spec=experimental.EmbeddingConfigSpec(
            optimization_parameters=parameters,
            feature_to_config_dict={"ids": FeatureConfig("table")},
            table_to_config_dict={"table": table},
            **kwargs,
        ),
    )
    model.train(input_fn, steps=1)
    return model


def quarter(features):
    return tf.reduce_sum(features["ids"]) / 4


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

    def test_without_accumulation_applies_one_core_after_the_other(self, model_dir):
        def input_fn(params):
            # Core 0 looks up row 0 with gradient 1 and row 1 with 1, core 1 looks both up with 2.
            ids = tf.data.Dataset.from_tensor_slices(tf.constant([[0], [1], [0], [1]], tf.int64))
            scales = tf.data.Dataset.from_tensor_slices(tf.constant([1.0, 1.0, 2.0, 2.0]))
            examples = tf.data.Dataset.zip(({"ids": ids, "scale": scales},)).repeat()
            return examples.batch(params["batch_size"], drop_remainder=True)

        def step_loss(features):
            return tf.reduce_sum(features["ids"][:, 0] * features["scale"]) * 2

        parameters = Adagrad(1.0, initial_accumulator=1.0, use_gradient_accumulation=False)
        model = one_row(model_dir, parameters, input_fn=input_fn, step_loss=step_loss, batch_size=4)
        close(model.get_variable_value("table/Adagrad"), [[6.0], [6.0]])
        # The first gradient of each row is that of the core which has the row: 0 and 1.
        first_0, first_1 = 1 / 2**0.5 + 2 / 6**0.5, 2 / 5**0.5 + 1 / 6**0.5
        close(model.get_variable_value("table"), [[1 - first_0], [1 - first_1]])

    def test_leaves_slots_under_the_names_of_the_host(self, model_dir):
        model = one_row(model_dir, experimental.AdamParameters(0.5))
        slots = ["table/Adam/m", "table/Adam/v"]
        assert model.get_variable_names() == ["global_step", "table", *slots]

    def test_is_none_where_no_gradient_flows(self, model_dir):
        def stopped(features):
            rows = tf.stop_gradient(features["ids"])
            return tf.reduce_sum(rows) + tf1.get_variable("w", [])

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
    def test_of_prediction_on_cores(self, model_dir, emulated_cores):
        emulated_cores(2)
        with pytest.raises(UnsupportedError, match="predict never looked tables up on cores"):
            next(make(model_dir).predict(embeddings.input_fn))

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            (MomentumParameters(0.1, 0.9), "MomentumParameters is not supported on cores"),
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


class TestTensorCoreColumns:
    """Columns with embedding_lookup_device='tpu_tensor_core': rows by model_fn's own program."""

    IDS = ((0, 1), (2,), (1, 2, 0), ())  # the column takes two of an example

    def columns(self, shared=False):
        settings = {
            "dimension": 2,
            "combiner": "sum",
            "initializer": tf1.constant_initializer([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]),
            "embedding_lookup_device": "tpu_tensor_core",
            "tensor_core_shape": [None, 2],
        }
        left, right = (
            tf.feature_column.categorical_column_with_identity(key, 3) for key in ("left", "right")
        )
        if shared:
            return tf1.tpu.experimental.shared_embedding_columns([left, right], **settings)
        return [tf1.tpu.experimental.embedding_column(left, **settings)]

    @staticmethod
    def input_fn_of(*features):
        def sparse(ids):
            indices = tf.expand_dims(tf.range(tf.size(ids, tf.int64)), 1)
            return dict.fromkeys(features, tf.SparseTensor(indices, ids, [3]))

        def input_fn(params):
            ids = tf.ragged.constant(TestTensorCoreColumns.IDS, dtype=tf.int64)
            examples = tf.data.Dataset.from_tensor_slices(ids).map(sparse).repeat()
            return examples.batch(params["batch_size"], drop_remainder=True)

        return input_fn

    def model(self, model_dir, columns, use_tpu=True, cluster=None):
        def model_fn(features, labels, mode, params):
            rows = DenseFeatures(columns)(features)
            if mode == estimator.ModeKeys.PREDICT:
                return tpu.TPUEstimatorSpec(mode, predictions={"rows": rows})
            optimizer = tf1.train.GradientDescentOptimizer(1.0)
            if params["use_tpu"]:
                optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
            loss = tf.reduce_mean(tf.reduce_sum(rows, 1))
            train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

        return tpu.TPUEstimator(
            model_fn,
            config=tpu.RunConfig(model_dir=model_dir, cluster=cluster),
            use_tpu=use_tpu,
            train_batch_size=4,
            predict_batch_size=4,
            embedding_config_spec=experimental.EmbeddingConfigSpec(columns, Adagrad(0.1)),
        )

    @pytest.mark.parametrize("shared", [False, True])
    def test_are_trained_by_the_optimizer_of_model_fn(self, model_dir, emulated_cores, shared):
        emulated_cores(2)
        input_fn = self.input_fn_of(*(["left", "right"] if shared else ["left"]))
        model = self.model(model_dir, self.columns(shared))
        model.train(input_fn, steps=1)
        names = [name for name in model.get_variable_names() if name != "global_step"]
        host = self.model(f"{model_dir}/host", self.columns(shared), use_tpu=False)
        host.train(input_fn, steps=1)
        assert names == [name for name in host.get_variable_names() if name != "global_step"]
        # Lookups of each row: id 0 once, 1 and 2 twice; id 0 of the third example is left out.
        start = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
        lookups = np.array([[1.0], [2.0], [2.0]]) * (2 if shared else 1)
        close(model.get_variable_value(names[0]), start - lookups / 4)

    @pytest.mark.evidence("embeddings", "rehearsed")
    def test_are_trained_on_a_tpu(self, model_dir, emulated_cores):
        emulated_cores(0)
        with rehearsal(cores_per_host=2) as runtime:
            model = self.model(model_dir, self.columns(), cluster=runtime.resolver())
            model.train(self.input_fn_of("left"), steps=1)
        (name,) = (name for name in model.get_variable_names() if name != "global_step")
        close(model.get_variable_value(name), [[0.75, 1.75], [9.5, 19.5], [99.5, 199.5]])

    def test_are_looked_up_in_predictions(self, model_dir, emulated_cores):
        emulated_cores(2)
        model = self.model(model_dir, self.columns())
        model.train(self.input_fn_of("left"), steps=1)

        def first_three(params):
            examples = self.input_fn_of("left")(params).unbatch()
            return examples.take(3).batch(params["batch_size"])

        rows = [prediction["rows"].tolist() for prediction in model.predict(first_three)]
        assert rows == [[10.25, 21.25], [99.5, 199.5], [109.0, 219.0]]

    def test_are_for_sparse_ids(self, model_dir, emulated_cores):
        emulated_cores(2)

        def input_fn(params):
            ids = tf.data.Dataset.from_tensors({"left": tf.constant([0, 1])}).repeat()
            return ids.batch(params["batch_size"], drop_remainder=True)

        with pytest.raises(ValueError, match=r"takes a SparseTensor from input_fn"):
            self.model(model_dir, self.columns()).train(input_fn, steps=1)
