"""Legacy models in TF2 code under a TPUStrategy, as on emulated cores; see tests/rehearsal.py."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf_2

import estimator2strategy.tf1 as tf
from estimator2strategy import Estimator, LegacyModel, adapt
from estimator2strategy.estimator import RunConfig, tpu
from tests.keras_model.programs import dataset, digits, metrics_of, train_op_of
from tests.rehearsal import rehearsal
from tests.strategies import mirrored

BATCH = 64
Pipeline = tpu.InputPipelineConfig


def network(images, training):
    # At relu's kink a difference of the last bit would turn gradients on and off.
    net = tf.layers.dense(images, 32, activation=tf.nn.tanh, name="hidden")
    net = tf.layers.batch_normalization(net, training=training, name="bn")
    return tf.layers.dense(net, 10, name="logits")


def tpu_model_fn(features, labels, mode, params):
    logits = network(features, mode == "train")
    if mode == "infer":
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op_of(loss, optimizer) if mode == "train" else None,
        eval_metrics=(metrics_of, [labels, logits]),
    )


def model_fn(features, labels, mode):
    logits = network(features, mode == "train")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return tf.estimator.EstimatorSpec(
        mode,
        predictions={"logits": logits},
        loss=loss,
        train_op=train_op_of(loss, tf.train.MomentumOptimizer(0.1, 0.9))
        if mode == "train"
        else None,
        eval_metric_ops=metrics_of(labels, logits) if mode == "eval" else None,
    )


def tpu_strategy(runtime):
    """A TPUStrategy, as a TF2 program makes one."""
    resolver = runtime.resolver()
    # By default a process that connects to a pod is on its first host from then on: so would be
    # all tests after this one.
    tf_2.config.experimental_connect_to_cluster(resolver, make_master_device_default=False)
    tf_2.tpu.experimental.initialize_tpu_system(resolver)
    return tf_2.distribute.TPUStrategy(resolver)


@pytest.fixture
def strategies():
    """Eight emulated cores, and a TPUStrategy of eight."""
    with rehearsal() as runtime:
        yield mirrored(8), tpu_strategy(runtime)


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("start"))
    config = RunConfig(folder, tf_random_seed=1)  # the same numbers in each session
    return Estimator(model_fn, config=config).train(dataset, steps=2).latest_checkpoint()


def whole(params):
    return dataset(params["batch_size"], repeat=False)


def endless(params):
    return dataset(params["batch_size"])


def looped(start, strategy, pipeline):
    """What an adapted model does; it evaluates and predicts twice, for traces are kept."""
    model = adapt(
        tpu_model_fn,
        endless,
        eval_input_fn=lambda params: dataset(params["batch_size"], take=640).take(5),
        predict_input_fn=whole,
        params={},
        config=tpu.RunConfig(tpu_config=tpu.TPUConfig(per_host_input_for_training=pipeline)),
        use_tpu=True,
        train_batch_size=BATCH,
        steps_per_execution=4,
        strategy=strategy,
    )
    model.load_checkpoint(start)
    losses = [model.train()["loss"] for _ in range(3)]
    found = [model.evaluate(), [batch["logits"] for batch in model.predict()]]
    losses += [model.train(3)["loss"], model.train_step()["loss"].numpy()]
    found += [model.evaluate(), [batch["logits"] for batch in model.predict()], losses]
    return found, {name: v.numpy() for name, v in model.legacy_variables.items()}


def assert_close(found, expected):
    """Within 1e-5 of the largest number: those near zero have fewer digits."""

    def close(one, other):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * scale)

    tf_2.nest.map_structure(close, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_hosts", "pipeline"),
    [(1, Pipeline.PER_HOST_V1), (2, Pipeline.SLICED)],
    ids=["1x8", "2x4"],
)
@pytest.mark.evidence("adapt", "rehearsed")
def test_an_adapted_model_does_what_it_does_on_emulated_cores(start, num_hosts, pipeline):
    """Several hosts evaluate and predict from one input alone."""
    with rehearsal(num_hosts, 8 // num_hosts) as runtime:
        found = looped(start, tpu_strategy(runtime), pipeline)
    assert found[0][0]["loss"] != found[0][2]["loss"]
    assert_close(found, looped(start, mirrored(8), pipeline))


def fitted(start, strategy):
    with strategy.scope():
        model = LegacyModel(tpu_model_fn, use_tpu=True)
    model.load_checkpoint(start)
    model.compile(steps_per_execution=5)
    history = model.fit(dataset(), steps_per_epoch=10, epochs=2, verbose=0).history
    data = dataset().take(5)
    results = model.evaluate(data, return_dict=True, verbose=0)
    images = tf_2.data.Dataset.from_tensor_slices(digits()[0][:128]).batch(64, drop_remainder=True)
    predictions = model.predict(images, verbose=0)
    variables = {name: v.numpy() for name, v in model.legacy_variables.items()}
    return history, results, predictions, variables


@pytest.mark.slow
@pytest.mark.evidence("legacy_model", "rehearsed")
def test_a_legacy_model_does_what_it_does_on_emulated_cores(start, strategies):
    cores, on_tpu = strategies
    assert_close(fitted(start, on_tpu), fitted(start, cores))


def test_a_legacy_model_on_a_tpu_asks_for_batches_of_one_size(strategies):
    with strategies[1].scope():
        model = LegacyModel(tpu_model_fn, use_tpu=True)
    model.compile()
    with pytest.raises(ValueError, match="batched with drop_remainder=True"):
        model.fit(dataset(64, repeat=False), verbose=0)
