"""Trains the model of parcels, evaluates it, and exports it for serving."""

import os
import time

import keras
from absl import app, flags

import inputs
from model import DeliveryModel, make_optimizer

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "parcels_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("batch_size", 30, "Examples in a batch.")


def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
    model(features)  # makes the variables
    model.optimizer.build(model.trainable_variables)
    if os.path.exists(path):
        model.load_weights(path)
    steps = max_steps - int(model.optimizer.iterations)
    if steps <= 0:
        return
    os.makedirs(folder, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=100),
        keras.callbacks.TensorBoard(folder, update_freq=100),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)


def export(model, folder, inputs):
    """Writes a SavedModel into a new folder, and returns its path."""
    path = os.path.join(folder, str(int(time.time())))
    model.export(path, input_signature=[inputs], verbose=False)
    return path


def export_if_best(model, folder, inputs, loss):
    """Exports a model whose loss is below that of all that were exported before."""
    path = os.path.join(folder, "best_loss.txt")
    if os.path.exists(path):
        with open(path) as best:
            if loss >= float(best.read()):
                return
    export(model, folder, inputs)
    with open(path, "w") as best:
        best.write(str(loss))


def main(_):
    params = {"batch_size": FLAGS.batch_size, "depots": 12, "units": 16, "learning_rate": 0.02}
    keras.utils.set_random_seed(3)
    model = DeliveryModel(params)
    model.compile(make_optimizer(params))
    train(model, inputs.train_input_fn(params), FLAGS.train_steps, FLAGS.model_dir)
    # An Estimator also evaluates at its checkpoints: validation_data of fit does.
    results = model.evaluate(inputs.eval_input_fn(params), verbose=2, return_dict=True)
    export(
        model, os.path.join(FLAGS.model_dir, "export", "latest"), inputs.serving_fn()
    )
    export(model, os.path.join(FLAGS.model_dir, "export", "final"), inputs.serving_fn())
    export_if_best(
        model,
        os.path.join(FLAGS.model_dir, "export", "best"),
        inputs.serving_fn(),
        results["loss"],
    )


if __name__ == "__main__":
    app.run(main)
