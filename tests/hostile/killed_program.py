"""The trainings that are killed. Each next step depends on all steps before it.

    python killed_program.py KIND MODEL_DIR LOSSES MAX_STEPS

KIND is a key of `KINDS`: one device (`asynchronous`: saves beside training; `rewritten`: keeps one
checkpoint, and with DIES_IN_REWRITE in the environment dies while it writes it again), two emulated
cores, one of two processes (as TF_CONFIG says), one or two devices of JAX (as E2S_RUNTIME says), or
exports in the place of steps. The process writes its number to `LOSSES.pid`. It appends `step loss`
to LOSSES after each step, as tests/programs/resumable.py does, which is the training on one device.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import tensorflow as tf

from estimator2strategy import estimator
from tests.programs import resumable

tf1 = tf.compat.v1
tpu = estimator.tpu

SAVE_EVERY = 4
ITERATIONS = 2


def on_device(model_dir: str, losses: str, max_steps: int) -> None:
    resumable.main(model_dir, losses, max_steps, f"save={SAVE_EVERY}")


def asynchronous(model_dir: str, losses: str, max_steps: int) -> None:
    resumable.main(model_dir, losses, max_steps, f"save={SAVE_EVERY}", "async=1")


def rewritten(model_dir: str, losses: str, max_steps: int) -> None:
    options = [f"save={SAVE_EVERY}", "keep=1"]
    if os.environ.get("DIES_IN_REWRITE"):
        tf1.train.Saver.save = _dies_in_rewrite(tf1.train.Saver.save)
        options.append("slots=0")
    resumable.main(model_dir, losses, max_steps, *options)


def _dies_in_rewrite(save):
    """A Saver's `save` that is killed when the new data has its name, and the new index has not."""

    def dies(saver, session, path, global_step=None, **kwargs):
        index = Path(f"{path}-{global_step}.index")
        if index.exists():
            before = index.read_bytes()
            save(saver, session, path, global_step, **kwargs)
            index.write_bytes(before)
        os.kill(os.getpid(), signal.SIGKILL)

    return dies


def complete_exports(folder: Path) -> list[str]:
    """The names of the exports that a server would load."""
    return sorted(path.name for path in folder.glob("*") if path.name.isdecimal())


def _exported_model_fn(features, labels, mode):
    out = tf.matmul(features["x"], tf1.get_variable("out", [6, 100]))
    step = tf1.train.get_global_step()
    loss = tf.reduce_mean(out)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return estimator.EstimatorSpec(mode, {"out": out}, loss, train_op)


def exporting(model_dir: str, losses: str, max_steps: int) -> None:
    """The line of an export tells what is served after it: the variables of all, each once."""
    config = estimator.RunConfig(model_dir, tf_random_seed=11)
    model = estimator.Estimator(_exported_model_fn, config=config)
    model.train(lambda: tf.data.Dataset.from_tensors({"x": resumable.FEATURES}), max_steps=1)
    base = Path(model_dir, "export", "served")
    receiver = estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.zeros([1, 6])}, default_batch_size=1
    )
    while (done := len(complete_exports(base))) < max_steps:
        model.export_saved_model(str(base), receiver)
        data = {
            hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for name in complete_exports(base)
            for path in (base / name).glob("variables/variables.data-*")
        }
        with open(losses, "a") as file:
            file.write(f"{done} {'_'.join(sorted(data))}\n")


def _loss_of(features, labels):
    kernel = tf1.get_variable("kernel", [6, 16])
    hidden = tf.nn.relu(tf.matmul(features, kernel))
    out = tf.matmul(hidden, tf1.get_variable("out", [16, 1]))
    return tf.reduce_mean(tf.square(out - labels))


def _on_cores_model_fn(features, labels, mode, params):
    del params
    loss = _loss_of(features, labels)
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.01))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def _on_cores_input_fn(params):
    labels = resumable.FEATURES.sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((resumable.FEATURES, labels))
    dataset = dataset.shuffle(20, seed=3).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def on_cores(model_dir: str, losses: str, max_steps: int) -> None:
    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=11,
        save_checkpoints_steps=SAVE_EVERY,
        tpu_config=tpu.TPUConfig(iterations_per_loop=ITERATIONS, num_shards=2),
    )
    model = tpu.TPUEstimator(_on_cores_model_fn, config=config, train_batch_size=4)
    model.train(_on_cores_input_fn, max_steps=max_steps, hooks=[Executions(losses)])


def on_jax_cores(model_dir: str, losses: str, max_steps: int) -> None:
    import jax

    jax.config.update("jax_num_cpu_devices", 2)
    on_cores(model_dir, losses, max_steps)


class Executions(tf1.train.SessionRunHook):
    """Writes down the loss of the last step of each execution on cores."""

    def __init__(self, path):
        self._path = path

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.get_collection(tf1.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        step = int(run_context.session.run(tf1.train.get_global_step()))
        with open(self._path, "a") as file:
            file.write(f"{step - ITERATIONS} {float(run_values.results).hex()}\n")


def _in_processes_model_fn(features, labels, mode):
    loss = _loss_of(features, labels)
    train_op = tf1.train.AdamOptimizer(0.01).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _in_processes_input_fn(input_context):
    # Only the chief's place in its input is kept, so all batches of a process are the same.
    labels = resumable.FEATURES.sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((resumable.FEATURES, labels))
    dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return dataset.batch(20).repeat()


def in_processes(model_dir: str, losses: str, max_steps: int) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    config = estimator.RunConfig(
        model_dir=model_dir,
        tf_random_seed=11,
        train_distribute=strategy,
        save_checkpoints_steps=SAVE_EVERY,
    )
    model = estimator.Estimator(_in_processes_model_fn, config=config)
    chief = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "chief"
    hooks = [resumable.Losses(losses)] if chief else []
    model.train(_in_processes_input_fn, max_steps=max_steps, hooks=hooks)


KINDS = {
    "device": on_device,
    "asynchronous": asynchronous,
    "rewritten": rewritten,
    "cores": on_cores,
    "processes": in_processes,
    "jax": on_device,
    "jax_cores": on_jax_cores,
    "exports": exporting,
}


def main(kind: str, model_dir: str, losses: str, max_steps: str) -> None:
    with open(f"{losses}.pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{losses}.pid.new", f"{losses}.pid")
    KINDS[kind](model_dir, losses, int(max_steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
