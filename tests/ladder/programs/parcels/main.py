"""Trains the model of parcels, evaluates it, and exports it for serving."""
import tensorflow as tf

import inputs
from model import delivery_model_fn

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "parcels_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("batch_size", 30, "Examples in a batch.")


def main(_):
    config = tf.estimator.RunConfig(tf_random_seed=3, save_checkpoints_steps=100)
    params = {"batch_size": FLAGS.batch_size, "depots": 12, "units": 16, "learning_rate": 0.02}
    estimator = tf.estimator.Estimator(
        delivery_model_fn, FLAGS.model_dir, config, params)
    train_spec = tf.estimator.TrainSpec(inputs.train_input_fn, max_steps=FLAGS.train_steps)
    latest = tf.estimator.LatestExporter("latest", inputs.serving_fn)
    exporters = [latest, tf.estimator.FinalExporter("final", inputs.serving_fn),
                 tf.estimator.BestExporter("best", inputs.serving_fn, event_file_pattern=None)]
    eval_spec = tf.estimator.EvalSpec(inputs.eval_input_fn, steps=None, exporters=exporters)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


if __name__ == "__main__":
    tf.app.run()
