"""Tries parts of a library that the programs here do not use; prints how each ends.

python parts.py NAME
"""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

rows = np.linspace(-1, 1, 16).astype(np.float32).reshape(8, 2)
labels = (rows.sum(1) > 0).astype(np.float32)


def keras_layer_of_hub():
    import tensorflow_hub as hub

    module, path = tf.Module(), tempfile.mkdtemp()
    module.double = tf.Variable(2.0)
    spec = tf.TensorSpec([None, 2], tf.float32)
    module.__call__ = tf.function(lambda x: module.double * x, [spec])
    tf.saved_model.save(module, path)
    _fit(tf.keras.Sequential([hub.KerasLayer(path), tf.keras.layers.Dense(1)]))


def load_of_hub():
    import tensorflow_hub as hub

    module, path = tf.Module(), tempfile.mkdtemp()
    module.double = tf.Variable(2.0)
    tf.saved_model.save(module, path)
    assert hub.load(path).double.numpy() == 2


def keras_losses_of_ranking():
    import tensorflow_ranking as tfr

    tfr.keras.losses.SoftmaxLoss()([[1.0, 0.0]], [[0.6, 0.8]])


def keras_network_of_ranking():
    import tensorflow_ranking as tfr

    columns = {"x": tf.feature_column.numeric_column("x", (1,))}
    network = tfr.keras.canned.DNNRankingNetwork(None, columns, hidden_layer_dims=[4])
    model = tfr.keras.model.create_keras_model(
        network,
        tfr.keras.losses.get("softmax_loss"),
        {},
        tf.keras.optimizers.legacy.Adagrad(0.1),
        4,
    )
    model.fit({"x": np.ones((2, 4, 1), np.float32)}, np.eye(2, 4, dtype=np.float32), verbose=0)


def keras_model_of_deepctr():
    from deepctr.feature_column import DenseFeat, SparseFeat
    from deepctr.models import DeepFM

    columns = [SparseFeat("word", 4, 4), DenseFeat("price", 1)]
    model = DeepFM(columns, columns, dnn_hidden_units=(4,))
    model.compile("adam", "binary_crossentropy")
    model.fit({"word": np.arange(8) % 4, "price": rows[:, :1]}, labels, verbose=0)


def keras_model_of_nsl():
    import neural_structured_learning as nsl

    model = tf.keras.Sequential([tf.keras.Input((2,), name="x"), tf.keras.layers.Dense(1)])
    config = nsl.configs.make_adv_reg_config(multiplier=0.2, adv_step_size=0.05)
    model = nsl.keras.AdversarialRegularization(model, ["label"], adv_config=config)
    model.compile("sgd", "mse")
    model.fit({"x": rows, "label": labels}, verbose=0)


def keras_optimizer_of_privacy():
    import tensorflow_privacy as tfp

    optimizer = tfp.DPKerasSGDOptimizer(l2_norm_clip=1.0, noise_multiplier=0.0, learning_rate=0.1)
    reduction = tf.keras.losses.Reduction.NONE
    _fit(_dense(), optimizer, tf.keras.losses.MeanSquaredError(reduction=reduction))


def keras_layers_of_lattice():
    import tensorflow_lattice as tfl

    keypoints = [-1.0, 0.0, 1.0]
    layers = [tfl.layers.PWLCalibration(keypoints, units=2), tfl.layers.Lattice([2, 2])]
    _fit(tf.keras.Sequential(layers))


def keras_layers_of_probability():
    import tensorflow_probability as tfp

    _fit(tf.keras.Sequential([tfp.layers.DenseFlipout(1)]))


def tpu_estimator_of_adanet():
    import adanet

    adanet.TPUEstimator(
        head=tf.estimator.BinaryClassHead(),
        subnetwork_generator=adanet.subnetwork.SimpleGenerator([]),
        max_iteration_steps=1,
        config=tf.compat.v1.estimator.tpu.RunConfig(model_dir=tempfile.mkdtemp()),
        use_tpu=False,
    )


def _dense():
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])


def _fit(model, optimizer="sgd", loss="mse"):
    model.compile(optimizer, loss)
    model.fit(rows, labels, batch_size=4, verbose=0)


PARTS = {
    "adanet": {"`adanet.TPUEstimator`": tpu_estimator_of_adanet},
    "deepctr": {"`deepctr.models.DeepFM`": keras_model_of_deepctr},
    "hub": {"`hub.KerasLayer`": keras_layer_of_hub, "`hub.load`": load_of_hub},
    "lattice": {"`tfl.layers`": keras_layers_of_lattice},
    "nsl": {"`nsl.keras.AdversarialRegularization`": keras_model_of_nsl},
    "privacy": {"`DPKerasSGDOptimizer` in Keras": keras_optimizer_of_privacy},
    "probability": {"`tfp.layers`": keras_layers_of_probability},
    "ranking": {
        "`tfr.keras.losses`": keras_losses_of_ranking,
        "`tfr.keras.canned`": keras_network_of_ranking,
    },
}


def ended(part):
    """No metrics if the part works, and else its error."""
    try:
        part()
    except Exception as error:
        lines = str(error).strip().split("\n")
        said = lines[-1] if lines[0] == "in user code:" else lines[0]
        return f"{type(error).__name__}: {said.strip()}"
    return {}


print("RESULT", json.dumps({name: ended(part) for name, part in PARTS[sys.argv[1]].items()}))
