"""Stage 8: the package is gone; the weights come from a file of Keras's.

python stage_8.py --data_dir=/tmp/digits --model_dir=/tmp/stage_8 --init_weights=w.weights.h5
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf


def dataset(data_dir, split):
    data = np.load(os.path.join(data_dir, "digits.npz"))
    return tf.data.Dataset.from_tensor_slices((data[f"{split}_images"], data[f"{split}_labels"]))


def digit_model():
    return keras.Sequential(
        [
            keras.Input([8, 8, 1]),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu", name="conv1"),
            keras.layers.MaxPooling2D(2, 2),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu", name="hidden"),
            keras.layers.Dense(10, name="logits"),
        ]
    )


def compiled(model):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.005, 20, 0.9)
    model.compile(
        optimizer=keras.optimizers.Adam(schedule, epsilon=1e-8),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        steps_per_execution=10,
    )
    return model


def train(model, args):
    data = dataset(args.data_dir, "train").repeat().batch(64, drop_remainder=True)
    log = keras.callbacks.CSVLogger(os.path.join(args.model_dir, "losses.csv"))
    epochs = args.train_steps // 10
    model.fit(data, epochs=epochs, steps_per_epoch=10, callbacks=[log], verbose=0)
    held_out = dataset(args.data_dir, "test").batch(64)
    results = model.evaluate(held_out, return_dict=True, verbose=0)
    print("Held-out digits:", results)
    with open(os.path.join(args.model_dir, "results.json"), "w") as f:
        json.dump({"accuracy": results["accuracy"]}, f)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="where digits.npz is")
    parser.add_argument("--model_dir", required=True, help="where weights and losses go")
    parser.add_argument("--train_steps", type=int, default=100, help="number of steps")
    parser.add_argument("--init_weights", help="weights that stage 7 wrote")
    args = parser.parse_args()
    os.makedirs(args.model_dir, exist_ok=True)
    model = compiled(digit_model())
    if args.init_weights:
        model.load_weights(args.init_weights)
    train(model, args)
    model.save(os.path.join(args.model_dir, "model.keras"))


if __name__ == "__main__":
    main()
