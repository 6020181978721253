"""A program of TF 1.15 for a job with parameter servers that says where its variables go.

    python placed_job.py MODEL_DIR [--strategy] [--train]

`device_fn` balances bytes; an exporter and a saving listener are called. Prints lines of JSON.
"""

import argparse
import json

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("model_dir")
parser.add_argument("--strategy", action="store_true", help="name the strategy, not a device_fn")
parser.add_argument("--train", action="store_true", help="call Estimator.train")
flags = parser.parse_args()


def tell(**what):
    print(json.dumps(what), flush=True)


def input_fn():
    x = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(axis=1))).repeat().batch(16)


def model_fn(features, labels, mode):
    ones = tf.ones_initializer()
    net = features["x"]
    for name, units in (("wide", 50), ("narrow", 2), ("out", 1)):
        net = tf.layers.dense(net, units, kernel_initializer=ones, name=name)
    output = net[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=output)
    loss = tf.losses.mean_squared_error(labels, output)
    optimizer = tf.train.GradientDescentOptimizer(1e-6)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    if mode == tf.estimator.ModeKeys.TRAIN:
        tell(servers={v.op.name: v.device[-1] for v in tf.global_variables()})
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[Tells()])


class Tells(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        tell(loss=float(run_values.results))


class Saved(tf.train.CheckpointSaverListener):
    def after_save(self, session, global_step_value):
        tell(saved=int(global_step_value))


def placement():
    if flags.strategy:
        return {"train_distribute": tf.distribute.experimental.ParameterServerStrategy()}
    task = tf.estimator.RunConfig()
    load = tf.contrib.training.byte_size_load_fn
    setter = tf.train.replica_device_setter(
        worker_device=f"/job:{task.task_type}/task:{task.task_id}",
        cluster=task.cluster_spec,
        ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy(task.num_ps_replicas, load),
    )
    return {"device_fn": setter}


def receiver_fn():
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


tf.logging.set_verbosity(tf.logging.INFO)
config = tf.estimator.RunConfig(flags.model_dir, save_checkpoints_steps=5, **placement())
model = tf.estimator.Estimator(model_fn, config=config)
if flags.train and config.task_type == "ps":
    tf.train.Server(config.cluster_spec, config.task_type, config.task_id).join()
elif flags.train:
    model.train(input_fn, max_steps=10)
else:
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(input_fn, max_steps=10, saving_listeners=[Saved()]),
        tf.estimator.EvalSpec(
            input_fn,
            steps=2,
            start_delay_secs=0,
            throttle_secs=1,
            exporters=tf.estimator.LatestExporter("latest", receiver_fn),
        ),
    )
