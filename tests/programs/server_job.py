"""A program of TF 1.15 for a job with parameter servers: a table that is cut up among them.

    python server_job.py MODEL_DIR [--steps=N] [--sync] [--queue] [--slow=SECONDS]

Prints a line of JSON for each of its steps, and for where its variables are.
"""

import argparse
import json
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("model_dir")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--sync", type=int, default=0, help="workers that take each step together")
parser.add_argument("--queue", action="store_true", help="read the input from queues")
parser.add_argument("--slow", type=float, default=0, help="seconds between two steps")
parser.add_argument("--patience", type=int, default=60, help="session_creation_timeout_secs")
parser.add_argument("--width", type=int, default=8, help="of the table")
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--after", action="store_true", help="evaluate and predict after training")
flags = parser.parse_args()


def tell(**what):
    print(json.dumps(what), flush=True)


def examples():
    ids = np.random.RandomState(0).randint(0, 1000, [512, 4])
    return ids, (ids.sum(axis=1) % 7).astype(np.float32)


def input_fn():
    if flags.queue:
        ids, labels = tf.train.slice_input_producer(list(map(tf.constant, examples())), seed=1)
        return tf.train.batch([ids, labels], 32)
    return tf.data.Dataset.from_tensor_slices(examples()).repeat().batch(32)


def model_fn(features, labels, mode):
    table = tf.get_variable(
        "table",
        [1000, flags.width],
        initializer=tf.random_normal_initializer(stddev=0.1, seed=1),
        partitioner=tf.fixed_size_partitioner(2),
    )
    mean = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
    output = tf.layers.dense(mean, 1, kernel_initializer=tf.ones_initializer(), name="output")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"output": output[:, 0]})
    loss = tf.losses.mean_squared_error(labels, output[:, 0])
    optimizer, hooks = tf.train.AdagradOptimizer(flags.rate), [Tells()]
    if flags.sync:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, flags.sync)
        hooks.append(optimizer.make_session_run_hook(config.is_chief))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    tf.summary.scalar("mean_output", tf.reduce_mean(output))
    if mode == tf.estimator.ModeKeys.TRAIN:
        variables = tf.global_variables()
        tell(devices={v.op.name: [v.device, v.op.type] for v in variables})
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        training_hooks=hooks,
        eval_metric_ops={"mae": tf.metrics.mean_absolute_error(labels, output[:, 0])},
    )


class Tells(tf.train.SessionRunHook):
    def before_run(self, run_context):
        time.sleep(flags.slow)
        loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]
        return tf.train.SessionRunArgs([tf.train.get_global_step(), loss])

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        tell(step=int(step), loss=float(loss))


tf.logging.set_verbosity(tf.logging.INFO)
config = tf.estimator.RunConfig(
    model_dir=flags.model_dir,
    save_checkpoints_steps=10,
    save_summary_steps=5,
    log_step_count_steps=5,
    experimental_max_worker_delay_secs=0,
    session_creation_timeout_secs=flags.patience,
)
model = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(
    model,
    tf.estimator.TrainSpec(input_fn, max_steps=flags.steps),
    tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=1),
)
if flags.after:
    tell(mae=float(model.evaluate(input_fn, steps=2)["mae"]))
    predictions = model.predict(lambda: input_fn().take(2))
    tell(predictions=[float(each["output"]) for each in predictions])
tell(done=config.task_type)
