"""Does each program's SavedModel predict what the program predicts?"""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf

from tests.conformance.programs import estimator, estimator_of, every_program, program

tf1 = tf.compat.v1


@every_program
def test_the_served_predictions_are_the_estimators(name, tmp_path):
    legacy = program(name, tmp_path)
    model = estimator_of(legacy, tmp_path / "model").train(legacy.input_fn, steps=1)
    (batch,) = legacy.input_fn({"batch_size": 16}).take(1).as_numpy_iterator()
    features = batch[0]

    def receiver():
        placeholders = {
            key: tf1.placeholder(value.dtype, [None, *value.shape[1:]])
            for key, value in features.items()
        }
        return estimator.export.ServingInputReceiver(placeholders, placeholders)

    exported = tf.saved_model.load(model.export_saved_model(str(tmp_path / "export"), receiver))
    served = exported.signatures["serving_default"](
        **{key: tf.constant(value) for key, value in features.items()}
    )
    predicted = itertools.islice(model.predict(legacy.input_fn), 16)
    ((output, values),) = served.items()
    expected = [example[output] for example in predicted]
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)
