"""The WandbHook of wandb, offline; the run's file is read back."""

import glob
import json
import os
import struct
import tempfile

import numpy as np
import tensorflow as tf

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=tempfile.mkdtemp())
import wandb
from wandb.integration.tensorflow import WandbHook
from wandb.proto import wandb_internal_pb2

v1 = tf.compat.v1
random = np.random.RandomState(0)
rows = random.rand(64, 4).astype(np.float32)
labels = (rows.sum(1) > 2).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).batch(16).repeat(4)


def once():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).batch(16)


def model_fn(features, labels, mode):
    start = v1.constant_initializer(np.linspace(-1, 1, 4).reshape(4, 1))
    logits = v1.layers.dense(features["x"], 1, kernel_initializer=start)
    loss = v1.losses.sigmoid_cross_entropy(labels[:, None], logits)
    v1.summary.scalar("error", loss)
    v1.summary.histogram("logits", logits)
    optimizer = v1.train.AdamOptimizer(0.1)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    accuracy = v1.metrics.accuracy(labels, tf.cast(logits[:, 0] > 0, tf.int32))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy}
    )


def records(path):
    """The records of a file in LevelDB's log format, after a header of seven bytes."""
    with open(path, "rb") as file:
        content = file.read()
    offset, record = 7, b""
    while offset + 7 <= len(content):
        if (left := -offset % 32768) and left < 7:
            offset += left
        length, kind = struct.unpack("<HB", content[offset + 4 : offset + 7])
        record += content[offset + 7 : offset + 7 + length]
        offset += 7 + length
        if kind in (1, 4):  # all of a record, or its last chunk
            yield record
            record = b""


def history():
    """The numbers of each step that a run has logged, from its file."""
    (path,) = glob.glob(os.path.join(os.environ["WANDB_DIR"], "wandb", "offline*", "run-*.wandb"))
    for data in records(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        items = {i.key or "/".join(i.nested_key): i.value_json for i in record.history.item}
        values = {key: json.loads(value) for key, value in items.items() if key[0] != "_"}
        if values:
            yield {key: value for key, value in values.items() if isinstance(value, (int, float))}


def trained(hooks):
    config = tf.estimator.RunConfig(
        tf_random_seed=1,
        model_dir=tempfile.mkdtemp(),
        save_summary_steps=4,
        log_step_count_steps=99,
    )
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(input_fn, hooks=hooks)
    return estimator.evaluate(once)


wandb.init(project="hooked")
results = {f"eval/{key}": value for key, value in trained([WandbHook(steps_per_log=4)]).items()}
wandb.finish()
for index, values in enumerate(history()):
    results |= {f"hook/{index}/{key}": value for key, value in values.items()}
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
