"""Batches of buckets and of samples; under TF 1.15 it writes tests/goldens/bucketed.json.

python3.7 tests/tf1/contrib/bucketed.py
"""

import json
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[2] / "goldens" / "bucketed.json"
COUNT = 23


def _example(tf):
    """A number, its length (1 to 9) and a sequence that long, of COUNT in their order."""
    (number,) = tf.train.slice_input_producer([np.arange(COUNT)], 1, shuffle=False)
    length = tf.cast(number * 7 % 9, tf.int32) + 1
    return number, length, tf.range(length) + 1


def _bucket(tf, tensors, which, *args, **kwargs):
    taken = tf.contrib.training.bucket(tensors, which, *args, **kwargs)
    return {"bucket": taken[0], "batch": taken[1]}


def _by_length(tf, length, tensors, *args, **kwargs):
    taken = tf.contrib.training.bucket_by_sequence_length(length, tensors, *args, **kwargs)
    return {"lengths": taken[0], "batch": taken[1]}


def whole_batches(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, [number, length], length % 3, 3, 3)


def last_batches(tf):
    number, length, _ = _example(tf)
    return _bucket(
        tf, [number, length], length % 3, 4, 3, capacity=5, allow_smaller_final_batch=True
    )


def padded(tf):
    number, length, sequence = _example(tf)
    tensors = {"number": number, "sequence": sequence, "text": tf.as_string(sequence)}
    return _bucket(tf, tensors, tf.cast(length > 4, tf.int32), 4, 2, dynamic_pad=True, name="mine")


def one_tensor(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, [number], length % 2, 5, 2, bucket_capacities=[5, 8])


def one_in_a_dict(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, {"n": number}, length % 2, tf.constant(5), 2)


def sizes_of_buckets(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, (number, [length, 0]), length % 2, [2, 7], 2, shapes=[[], [2]])


def size_of_a_placeholder(tf):
    number, length, _ = _example(tf)
    size = tf.placeholder_with_default(6, [])
    return _bucket(tf, [number, length], length % 2, size, 2)


def kept_by_number(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, [number, length], length % 2, 2, 2, keep_input=number % 3 > 0)


def _sparse(tf, number, length):
    indices = tf.cast(tf.range(length)[:, None], tf.int64)
    return tf.SparseTensor(indices, tf.fill([length], number), [9])


def sparse(tf):
    number, length, _ = _example(tf)
    return _bucket(tf, [_sparse(tf, number, length), length], length % 2, 3, 2)


def sparse_kept_by_number(tf):
    number, length, _ = _example(tf)
    tensors = {"x": _sparse(tf, number, length)}
    return _bucket(tf, tensors, length % 2, 3, 2, keep_input=number < 15, shared_name="s")


def by_length(tf):
    number, length, sequence = _example(tf)
    return _by_length(tf, length, [number, sequence], 3, [3, 6], dynamic_pad=True)


def by_length_in_a_dict(tf):
    number, length, sequence = _example(tf)
    tensors = {"n": number, "s": sequence}
    return _by_length(
        tf,
        length,
        tensors,
        [4, 2, 3],
        (3, 6),
        shapes=[[], [None]],
        dynamic_pad=True,
        bucket_capacities=[4, 6, 8],
        allow_smaller_final_batch=True,
    )


def by_length_one(tf):
    number, length, _ = _example(tf)
    return _by_length(tf, length, [number], 3, [5], capacity=7)


def by_length_one_in_a_dict(tf):
    number, length, _ = _example(tf)
    return _by_length(tf, length, {"n": number}, 3, [5], num_threads=1, name="mine")


def _class(tf):
    number, _, _ = _example(tf)
    return number, tf.cast(number % 3, tf.int32)


def rejected(tf):
    number, kind = _class(tf)
    accept = lambda example: tf.cast(tf.equal(example[1], 1), tf.float32)  # noqa: E731
    return tf.contrib.training.rejection_sample([number, kind], accept, 2, runtime_checks=True)


def rejected_one_by_one(tf):
    _, _, sequence = _example(tf)
    accept = lambda example: tf.cast(example[0] > 4, tf.float32)  # noqa: E731
    tensors = [sequence, 2 * sequence]
    return tf.contrib.training.rejection_sample(tensors, accept, 3, enqueue_many=True)


def stratified(tf):
    number, kind = _class(tf)
    sample = tf.contrib.training.stratified_sample
    return sample([number], kind, [0.0, 1.0, 0.0], 2, init_probs=[0.5, 0.5, 0.0])


def stratified_of_batches(tf):
    number, kind = _class(tf)
    sample = tf.contrib.training.stratified_sample
    return sample([[number, number + 100]], [kind % 2, 1], [0.0, 1.0], 2, [0.5, 0.5], True)


_CASES = (
    rejected,
    rejected_one_by_one,
    stratified,
    stratified_of_batches,
    whole_batches,
    last_batches,
    padded,
    one_tensor,
    one_in_a_dict,
    sizes_of_buckets,
    size_of_a_placeholder,
    kept_by_number,
    sparse,
    sparse_kept_by_number,
    by_length,
    by_length_in_a_dict,
    by_length_one,
    by_length_one_in_a_dict,
)


def _messages(tf):
    x = tf.constant(1)
    unknown = tf.placeholder(tf.float32)
    vector = tf.placeholder(tf.float32, [None])
    calls = {
        "sizes": lambda: _bucket(tf, [x], 0, [1, 2, 3], 2),
        "capacities": lambda: _bucket(tf, [x], 0, 4, 2, bucket_capacities=[3]),
        "nothing": lambda: _bucket(tf, [], 0, 4, 2),
        "rank": lambda: _bucket(tf, [unknown], 0, 4, 2, dynamic_pad=True),
        "keep_vector": lambda: _bucket(tf, [x], 0, 4, 2, keep_input=[True]),
        "keep_matrix": lambda: _bucket(tf, [x], 0, 4, 2, keep_input=[[True]]),
        "keep_unknown": lambda: _bucket(tf, [x], 0, 4, 2, keep_input=tf.placeholder(tf.bool)),
        "not_a_list": lambda: _by_length(tf, 1, [x], 4, 3),
        "empty": lambda: _by_length(tf, 1, [x], 4, []),
        "floats": lambda: _by_length(tf, 1, [x], 4, [1, 2.5]),
        "decreasing": lambda: _by_length(tf, 1, [x], 4, [1, 3, 3]),
        "lengths_of_shares": lambda: tf.contrib.training.stratified_sample(
            [x], 1, [1.0, 0.0], 3, [0.5, 0.2, 0.3]
        ),
        "sizes_by_length": lambda: _by_length(tf, 1, [x], [1, 2], [1, 3]),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = repr(call())
        except Exception as error:
            found[name] = "%s: %s" % (type(error).__name__, error)  # noqa: UP031
    # The texts are TensorFlow's own, and have changed.
    sample, reject = tf.contrib.training.stratified_sample, tf.contrib.training.rejection_sample
    calls = {
        "no_examples": lambda: reject([x], lambda example: 1.0, 3, enqueue_many=True),
        "other_number": lambda: sample([[x, x]], [x], [0.5, 0.5], 3, [0.5, 0.5], True),
        "vector_labels": lambda: sample([x], [[x]], [0.5, 0.5], 3, [0.5, 0.5]),
        "no_share": lambda: sample([x], x, [0.5, 0.4], 3, [0.5, 0.5]),
        "not_padded": lambda: _bucket(tf, [vector], 0, 4, 2),
        "int64": lambda: _by_length(tf, tf.constant(1, tf.int64), [x], 3, [5]),
        "no_number": lambda: _bucket(tf, [x], 0, "four", 2),
    }
    for name, call in calls.items():
        try:
            found[name] = repr(call())
        except (TypeError, ValueError) as error:
            found[name] = type(error).__name__
    return found


def cases():
    """The cases that make batches, by name."""
    return {function.__name__: function for function in _CASES}


def made(tf, name, graph=None):
    """The batches of a case, ordered, and what its graph shows: shapes, summaries, runners."""
    with (graph or tf.Graph()).as_default() as graph, tf.Session() as session:
        taken = cases()[name](tf)
        shown = {
            "shapes": _shapes(tf, taken),
            "runners": [r.name for r in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)],
        }
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        batches = []
        try:
            while True:
                batches.append(_plain(session.run(taken)))
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=5)
        merged = tf.Summary.FromString(session.run(tf.summary.merge_all()))
        shown["summaries"] = sorted(value.tag for value in merged.value)
        known = [op.name for op in graph.get_operations() if op.type.endswith("QueueV2")]
        shown["queues"] = [n for n in known if "bucket" in n or "mine" in n]
    # Which bucket is full first depends on threads; the order inside of a bucket does not.
    return dict(shown, batches=sorted(batches, key=json.dumps))


def refused(tf):
    """The messages about wrong arguments, by name."""
    with tf.Graph().as_default():
        return _messages(tf)


def _shapes(tf, value):
    if isinstance(value, dict):
        return {key: _shapes(tf, v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shapes(tf, v) for v in value]
    return value.shape.as_list()


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode()
    return _plain(value.tolist()) if hasattr(value, "tolist") else value


def _main():
    import tensorflow as tf

    found = {name: made(tf, name) for name in cases()}
    found["refused"] = refused(tf)
    lines = ",\n".join(json.dumps(n) + ": " + json.dumps(m) for n, m in found.items())
    GOLDEN.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    _main()
