"""Runs a program of a stage from recorded first weights, and prints what it did as JSON.

python run_program.py PROGRAM GOLDEN MODEL_DIR [CORES]
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

FOUND: dict[str, Any] = {"losses": []}


class Losses(keras.callbacks.Callback):
    """Keeps the loss of each step."""

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        FOUND["losses"].append(float(logs["loss"]))


def first_weights(golden: str) -> dict[str, np.ndarray]:
    """Name -> value, of the variables before the first step; "/" is "_"."""
    with np.load(golden) as values:
        return {
            name.removeprefix("first/").replace("/", "_"): values[name]
            for name in values.files
            if name.startswith("first/")
        }


def give(model: keras.Model, values: dict[str, np.ndarray]) -> None:
    """Gives a Keras model its first weights."""
    cells = {
        id(weight)
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.LSTM)
        for weight in layer.weights
    }
    for weight in model.weights:
        *scopes, last = weight.path.removeprefix(f"{model.name}/").split("/")
        if id(weight) in cells:
            weight.assign(of_lstm("_".join(scopes), last, values))
        else:
            weight.assign(values[name_of(scopes, last, values)])


def name_of(scopes: list[str], last: str, values: dict[str, np.ndarray]) -> str:
    """The name of a variable of TensorFlow 1, which may lack the scope of a layer in a layer."""
    fewer = [[*scopes[:i], *scopes[i + 1 :]] for i in range(len(scopes))]
    for path in (scopes, *fewer):
        for ends in ([last], [], ["weights"], ["embedding_weights"]):
            if "_".join([*path, *ends]) in values:
                return "_".join([*path, *ends])
    raise KeyError("/".join([*scopes, last]))


def of_lstm(scope: str, last: str, values: dict[str, np.ndarray]) -> np.ndarray:
    """A weight of Keras's LSTM: its gates in another order, its forget bias in the bias."""
    kernel = values[f"{scope}_kernel"]
    units = kernel.shape[1] // 4
    if last == "bias":
        kernel = values[f"{scope}_bias"] + np.repeat([0, 0, 1, 0], units)
    inputs, new, forget, outputs = np.split(kernel, 4, axis=-1)
    ordered = np.concatenate([inputs, forget, new, outputs], axis=-1)
    rows = {"kernel": slice(None, -units), "recurrent_kernel": slice(-units, None)}
    return ordered[rows[last]] if last in rows else ordered


def watch(module: Any, values: dict[str, np.ndarray]) -> None:
    """Has the losses and the evaluation kept, and training begin with the values."""
    fit, evaluate = keras.Model.fit, keras.Model.evaluate

    def watched_fit(self, *args, **kwargs):
        kwargs["callbacks"] = [Losses(), *kwargs["callbacks"]]
        return fit(self, *args, **kwargs)

    def watched_evaluate(self, *args, **kwargs):
        FOUND["evaluation"] = evaluate(self, *args, **kwargs)
        return FOUND["evaluation"]

    keras.Model.fit, keras.Model.evaluate = watched_fit, watched_evaluate
    if hasattr(module, "train"):
        train = module.train

        def train_from_values(model, data, *args, **kwargs):
            with model.distribute_strategy.scope():
                model(next(iter(data))[0])
            give(model, values)
            return train(model, data, *args, **kwargs)

        module.train = train_from_values
    else:
        from estimator2strategy import LegacyModel

        build = LegacyModel.build

        def build_from_values(self, batch):
            build(self, batch)
            for name, variable in self.legacy_variables.items():
                if name.replace("/", "_") in values:
                    variable.assign(values[name.replace("/", "_")])

        LegacyModel.build = build_from_values
        watch_estimators(values)


class Start(tf.compat.v1.train.SessionRunHook):
    """Gives an Estimator's variables their first values, and keeps the loss of each step."""

    def __init__(self, values):
        self.values = values

    def after_create_session(self, session, coord):
        for variable in tf.compat.v1.global_variables():
            name = variable.op.name.replace("/", "_")
            if name in self.values:
                variable.load(self.values[name], session)

    def before_run(self, run_context):
        loss = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)[-1]
        return tf.compat.v1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        FOUND["losses"].append(float(run_values.results))


def watch_estimators(values: dict[str, np.ndarray]) -> None:
    """The same for a program that still has an Estimator."""
    from estimator2strategy.estimator.estimator import Estimator

    train, evaluate = Estimator.train, Estimator.evaluate

    def watched_train(self, *args, **kwargs):
        kwargs["hooks"] = [*(kwargs.get("hooks") or ()), Start(values)]
        return train(self, *args, **kwargs)

    def watched_evaluate(self, *args, **kwargs):
        FOUND["evaluation"] = evaluate(self, *args, **kwargs)
        return FOUND["evaluation"]

    Estimator.train, Estimator.evaluate = watched_train, watched_evaluate


def deal_out(module: Any, cores: int) -> None:
    """Has the program train on so many CPUs, in the place of a TPU's cores."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    each = [tf.config.LogicalDeviceConfiguration()] * cores
    tf.config.set_logical_device_configuration(cpu, each)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(cores)])
    module.make_strategy = lambda use_tpu, resolver: strategy


def main(program: str, golden: str, model_dir: str, cores: str = "") -> None:
    sys.path.insert(0, os.path.dirname(program))
    spec = importlib.util.spec_from_file_location("program", program)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["program"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    if cores:
        deal_out(module, int(cores))
    watch(module, first_weights(golden))
    module.FLAGS(["program", f"--model_dir={model_dir}"])
    module.main(None)
    print(json.dumps(FOUND, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])
