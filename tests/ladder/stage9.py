"""The models that stage 8 makes, for `e2s checkpoint verify` on other backends.

`goldens/bikes_tf115` is what TensorFlow 1.15 did in 20 steps, where `e2s record --print` had
written record.py: `tf115/bin/python record.py --out bikes_tf115 --program programs/bikes.py
--train_steps=20`. `test_stage9.py` does with JAX and torch alone:

    e2s checkpoint verify tests/ladder/goldens/bikes_tf115 --backend torch \\
        --python torch/bin/python --model tests/ladder/stage9.py:bikes
"""

import os
import sys

import keras

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "final"))
import bikes as program


def bikes() -> keras.Model:
    """The model of bikes.py, compiled."""
    return _bikes_with(learning_rate=0.01)


def built_bikes() -> keras.Model:
    """The same with its variables, as `e2s checkpoint convert` wants it."""
    model = bikes()
    zeros = keras.ops.zeros
    model({"numbers": zeros([1, 6]), "station": zeros([1], "int64")})
    model.optimizer.build(model.trainable_variables)
    return model


def bikes_at_another_rate() -> keras.Model:
    """One that does not train as bikes.py does."""
    return _bikes_with(learning_rate=0.02)


def _bikes_with(learning_rate: float) -> keras.Model:
    params = {"batch_size": 32, "learning_rate": learning_rate}
    model = program.BikesModel(params)
    model.compile(program.make_optimizer(params))
    return model
