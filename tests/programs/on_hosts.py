"""A TPUEstimator whose cores belong to several hosts; each host reads files of its own.

    python on_hosts.py MODEL_DIR OUTPUT STEPS [name=value ...]

Writes what it has seen to the file OUTPUT, as JSON, and the loss of each execution, at once, to
OUTPUT.losses. Options: `cores` (JAX devices of this process), `dies_at` (a step after which it
kills itself), `stops_at` (one after which its training ends), `batches` (of each core, in training;
the second host has one more; 0: no end), `evaluate` and `predict` (0: not), `together` (1: calls
`train_and_evaluate`).
"""

import json
import os
import signal
import sys

import numpy as np
import tensorflow as tf

from estimator2strategy import estimator

tf1 = tf.compat.v1
tpu = estimator.tpu

OPTIONS = {
    "cores": 2,
    "dies_at": 0,
    "stops_at": 0,
    "batches": 0,
    "evaluate": 1,
    "predict": 1,
    "together": 0,
}
SEEN = {}
ITERATIONS = 2


def input_fn(params):
    context, size = params["context"], params["batch_size"]
    _, call, calls, _ = context.current_input_fn_deployment()
    SEEN["contexts"].append([context.current_host, context.num_hosts, context.num_replicas, call])
    x = np.random.RandomState(3).randn(40, 6).astype("float32")
    x, y = x[call::calls], x[call::calls].sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat()
    if OPTIONS["batches"]:
        dataset = dataset.take(size * OPTIONS["cores"] * (OPTIONS["batches"] + call))
    return dataset.batch(size, drop_remainder=True)


TO_PREDICT = np.arange(60, dtype="float32").reshape(10, 6) / 60


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(TO_PREDICT).batch(params["batch_size"])


def model_fn(features, labels, mode, params):
    x = tf.nn.relu(tf.matmul(features, tf1.get_variable("kernel", [6, 16])))
    if mode == "train":
        x = tf1.nn.dropout(x, rate=0.3)
    out = tf.matmul(x, tf1.get_variable("out", [16, 1]))
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"out": out})
    loss = tf.reduce_mean(tf.square(out - labels))
    if mode == "eval":

        def metric_fn(out, labels):
            return {"error": tf1.metrics.mean_absolute_error(labels, out)}

        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [out, labels]))
    step = tf1.train.get_global_step()

    def host_call(step, loss):
        writer = tf.summary.create_file_writer(params["folder"])
        with writer.as_default(), tf.summary.record_if(True):
            tf.summary.write("told", loss[0], step=step[0])
        return tf1.summary.all_v2_summary_ops()

    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.05))
    train_op = optimizer.minimize(loss, step)
    told = (host_call, [tf.reshape(step, [1]), tf.reshape(loss, [1])])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=told)


class Losses(tf1.train.SessionRunHook):
    def __init__(self, output):
        self._output = output

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.get_collection(tf1.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        SEEN["losses"].append(float(run_values.results))
        step = int(run_context.session.run(tf1.train.get_global_step()))
        with open(f"{self._output}.losses", "a") as file:
            file.write(f"{step} {float(run_values.results)!r}\n")
        if OPTIONS["stops_at"] == step:
            run_context.request_stop()
        if OPTIONS["dies_at"] == step:
            os.kill(os.getpid(), signal.SIGKILL)


def main(model_dir, output, steps, *options):
    SEEN.update(contexts=[], losses=[])
    open(f"{output}.losses", "a").close()
    for option in options:
        name, value = option.split("=")
        OPTIONS[name] = float(value) if "." in value else int(value)
    if os.environ.get("E2S_RUNTIME") == "jax":
        import jax

        jax.config.update("jax_num_cpu_devices", OPTIONS["cores"])
    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=11,
        save_checkpoints_steps=4,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=ITERATIONS,
            per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    model = tpu.TPUEstimator(
        model_fn,
        config=config,
        params={"folder": model_dir},
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=4,
    )
    if OPTIONS["together"]:
        train = estimator.TrainSpec(input_fn, int(steps), [Losses(output)])
        evaluate = estimator.EvalSpec(input_fn, steps=3, start_delay_secs=0, throttle_secs=1)
        estimator.train_and_evaluate(model, train, evaluate)
    else:
        model.train(input_fn, max_steps=int(steps), hooks=[Losses(output)])
    SEEN["chief"] = config.is_chief
    if OPTIONS["evaluate"]:
        metrics = model.evaluate(input_fn, steps=3)
        SEEN["metrics"] = {name: float(value) for name, value in metrics.items()}
    if OPTIONS["predict"]:
        predictions = model.predict(predict_input_fn)
        SEEN["predictions"] = [float(row["out"][0]) for row in predictions]
    with open(output, "w") as file:
        json.dump(SEEN, file)


if __name__ == "__main__":
    tf1.logging.set_verbosity(tf1.logging.INFO)
    main(*sys.argv[1:])
