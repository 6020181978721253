"""The batches of `generator_input_fn`; under TF 1.15 it writes tests/goldens/generated.json.

python3.7 tests/tf1/contrib/generated.py
"""

import json
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[2] / "goldens" / "generated.json"


def examples():
    for i in range(7):
        yield {"a": np.array([i, 10 * i]), "b": np.float32(i / 2), "label": np.array([i % 2])}


def sequences():
    for i in range(5):
        yield {"words": np.arange(1, i + 2), "length": np.array(i + 1)}


CASES = {
    "one_epoch": (examples, {"batch_size": 4, "target_key": "label"}),
    "fitting": (examples, {"batch_size": 7, "target_key": ["label"]}),
    "two_epochs": (examples, {"batch_size": 3, "num_epochs": 2, "target_key": ["b", "label"]}),
    "small_feeds": (examples, {"batch_size": 2}),
    "without_end": (examples, {"batch_size": 5, "num_epochs": None}),
    "padded": (sequences, {"batch_size": 4, "pad_value": -1}),
}


def batches(tf, generator_input_fn, name):
    """The first six batches of a case, and how many there are up to twenty."""
    function, arguments = CASES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        taken = generator_input_fn(function, shuffle=False, **arguments)()
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = []
        try:
            while len(found) < 20:
                found.append(_plain(session.run(taken)))
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
    return {"count": len(found), "first": found[:6], "last": found[-1]}


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value.tolist()


def _main():
    import tensorflow as tf
    from tensorflow.contrib.learn.python.learn.learn_io import generator_io

    made = {name: batches(tf, generator_io.generator_input_fn, name) for name in CASES}
    lines = ",\n".join(json.dumps(n) + ": " + json.dumps(m) for n, m in made.items())
    GOLDEN.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    _main()
