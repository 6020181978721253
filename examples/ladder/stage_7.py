"""Stage 7: a keras.Model and its fit. Only the old checkpoint is read with estimator2strategy.

python stage_7.py --data_dir=/tmp/digits --model_dir=/tmp/stage_7 --init_checkpoint=/tmp/stage_1
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

import estimator2strategy as e2s


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
    parser.add_argument("--init_checkpoint", help="a checkpoint of an earlier stage")
    args = parser.parse_args()
    os.makedirs(args.model_dir, exist_ok=True)
    model = compiled(digit_model())
    if args.init_checkpoint:
        e2s.transfer_weights(args.init_checkpoint, model)
    model.save_weights(os.path.join(args.model_dir, "start.weights.h5"))
    train(model, args)
    model.save(os.path.join(args.model_dir, "model.keras"))


if __name__ == "__main__":
    main()
