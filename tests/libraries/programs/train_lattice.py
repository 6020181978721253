"""A calibrated lattice of tensorflow-lattice."""

import json
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_lattice as tfl

random = np.random.RandomState(0)
features = {name: random.rand(64).astype(np.float32) for name in ("x", "y")}
labels = (features["x"] + features["y"] > 1).astype(np.int32)
dataset = tf.data.Dataset.from_tensor_slices


def input_fn():
    return dataset((features, labels)).batch(16).repeat()


def once():
    return dataset((features, labels)).batch(64)


calibrated = [
    tfl.configs.FeatureConfig(
        name=name,
        lattice_size=2,
        monotonicity="increasing",
        pwl_calibration_num_keypoints=4,
        pwl_calibration_input_keypoints=[0.0, 0.3, 0.6, 1.0],
    )
    for name in features
]
estimator = tfl.estimators.CannedClassifier(
    feature_columns=[tf.feature_column.numeric_column(name) for name in features],
    model_config=tfl.configs.CalibratedLatticeConfig(
        feature_configs=calibrated, output_initialization=[-1.0, 1.0]
    ),
    feature_analysis_input_fn=once,
    optimizer=tf.keras.optimizers.legacy.Adam(0.05),
    config=tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp()),
)
estimator.train(input_fn, max_steps=20)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(once).items())}))
