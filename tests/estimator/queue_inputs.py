"""Estimators that read from queues; under TF 1.15 it writes tests/goldens/queues.json.

python3.7 tests/estimator/queue_inputs.py
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[1] / "goldens" / "queues.json"
FILES, ROWS = 3, 7


def write_files(tf, folder):
    """Files of numbers from 0 on: lines, records, bytes, and a file for each number."""
    for file in range(FILES):
        numbers = range(file * ROWS, (file + 1) * ROWS)
        with open(os.path.join(folder, f"{file}.csv"), "w") as lines:
            lines.writelines(f"{n},{2 * n}\n" for n in numbers)
        with open(os.path.join(folder, f"{file}.bin"), "wb") as binary:
            binary.write(np.array(list(numbers), np.uint8).tobytes())
        with tf.python_io.TFRecordWriter(os.path.join(folder, f"{file}.records")) as writer:
            for n in numbers:
                example = tf.train.Example()
                example.features.feature["n"].int64_list.value.append(n)
                example.features.feature["list"].int64_list.value.extend(range(n % 4))
                writer.write(example.SerializeToString())
        with open(os.path.join(folder, f"{file}.one"), "w") as one:
            one.write(str(file))


def _names(folder, ending):
    return [os.path.join(folder, f"{file}.{ending}") for file in range(FILES)]


def _line(tf, folder, **producing):
    names = tf.train.string_input_producer(_names(folder, "csv"), **producing)
    _, line = tf.TextLineReader().read(names)
    return tf.decode_csv(line, [[0], [0.0]])


def _record(tf, folder, **producing):
    names = tf.train.string_input_producer(_names(folder, "records"), **producing)
    return tf.TFRecordReader().read(names)[1]


def _parse(tf, records):
    features = {"n": tf.FixedLenFeature([], tf.int64), "list": tf.VarLenFeature(tf.int64)}
    return tf.parse_example(records, features)


def lines(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, seed=3)
    return tf.train.batch([number, label], 4)


def lines_to_the_last(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    return tf.train.batch([number, label], 4, allow_smaller_final_batch=True)


def records(tf, folder, epochs):
    record = _record(tf, folder, num_epochs=epochs, shuffle=False)
    parsed = _parse(tf, tf.train.batch([record], 5, enqueue_many=False))
    total = tf.sparse_reduce_sum(parsed["list"], 1)
    return parsed["n"], tf.cast(total, tf.float32)


def records_in_threads(tf, folder, epochs):
    record = _record(tf, folder, num_epochs=epochs, seed=1)
    record = tf.train.shuffle_batch(
        [record], 3, capacity=12, min_after_dequeue=6, num_threads=2, seed=4
    )
    return _parse(tf, record)["n"], None


def slices(tf, folder, epochs):
    del folder
    arrays = [np.arange(10), np.arange(10, dtype=np.float32) ** 2]
    number, label = tf.train.slice_input_producer(arrays, num_epochs=epochs, seed=5)
    return tf.train.batch([number, label], 4, allow_smaller_final_batch=True)


def shuffled(tf, folder, epochs):
    """The order depends on how full the queue is, and so on threads, also with a seed."""
    del folder
    number = tf.train.range_input_producer(12, num_epochs=epochs, shuffle=False).dequeue()
    return tf.train.shuffle_batch([number], 3, 9, 6, seed=2), None


def whole_tensors(tf, folder, epochs):
    del folder
    rows = tf.constant([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    queue = tf.train.input_producer(rows, num_epochs=epochs, shuffle=False)
    batch = queue.dequeue_many(2)
    return tf.cast(batch[:, 0], tf.int32), batch[:, 1]


def bytes_of_files(tf, folder, epochs):
    names = tf.train.string_input_producer(_names(folder, "bin"), num_epochs=epochs, shuffle=False)
    _, one = tf.FixedLengthRecordReader(1).read(names)
    number = tf.cast(tf.decode_raw(one, tf.uint8)[0], tf.int32)
    return tf.train.batch([number], 5), None


def files(tf, folder, epochs):
    names = tf.train.string_input_producer(_names(folder, "one"), num_epochs=epochs, seed=9)
    _, text = tf.WholeFileReader().read(names)
    return tf.train.batch([tf.string_to_number(text, tf.int32)], 2), None


def some_lines_at_once(tf, folder, epochs):
    names = tf.train.string_input_producer(_names(folder, "csv"), num_epochs=epochs, shuffle=False)
    _, text = tf.TextLineReader().read_up_to(names, 3)
    number, label = tf.decode_csv(text, [[0], [0.0]])
    return tf.train.batch([number, label], 4, enqueue_many=True)


def one_reader_without_batches(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    return number[tf.newaxis], label[tf.newaxis]


def two_readers(tf, folder, epochs):
    names = tf.train.string_input_producer(_names(folder, "csv"), num_epochs=epochs, seed=3)
    parts = [tf.decode_csv(tf.TextLineReader().read(names)[1], [[0], [0.0]]) for _ in range(2)]
    return tf.train.batch_join(parts, 4, allow_smaller_final_batch=True)


def two_shuffled_readers(tf, folder, epochs):
    names = tf.train.string_input_producer(_names(folder, "csv"), num_epochs=epochs, seed=3)
    parts = [tf.decode_csv(tf.TextLineReader().read(names)[1], [[0], [0.0]]) for _ in range(2)]
    return tf.train.shuffle_batch_join(parts, 4, 20, 4, seed=1, allow_smaller_final_batch=True)


def some_of_them(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    return tf.train.maybe_batch([number, label], tf.equal(number % 3, 0), 3)


def some_of_them_shuffled(tf, folder, epochs):
    number, _ = _line(tf, folder, num_epochs=epochs, shuffle=False)
    keep = tf.equal(number % 3, 0)
    return tf.train.maybe_shuffle_batch([number], 2, 6, 4, keep, seed=8), None


def padded(tf, folder, epochs):
    number, _ = _line(tf, folder, num_epochs=epochs, shuffle=False)
    number, row = tf.train.batch([number, tf.range(number % 5)], 4, dynamic_pad=True)
    return number, tf.cast(tf.reduce_sum(row, 1), tf.float32)


def sparse(tf, folder, epochs):
    record = _record(tf, folder, num_epochs=epochs, shuffle=False)
    features = {"n": tf.FixedLenFeature([], tf.int64), "list": tf.VarLenFeature(tf.int64)}
    example = tf.parse_single_example(record, features)
    number, values = tf.train.batch([example["n"], example["list"]], 4)
    return number, tf.cast(tf.sparse_reduce_sum(values, 1), tf.float32)


def looked_up(tf, folder, epochs):
    """A table before the queue, and another one after it."""
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    table = tf.contrib.lookup.index_table_from_tensor([str(n) for n in range(20, -1, -1)])
    number, label = tf.train.batch([table.lookup(tf.as_string(number)), label], 4)
    names = tf.contrib.lookup.index_to_string_table_from_tensor(["0", "1", "2"], "7")
    return number, label + tf.string_to_number(names.lookup(number))


def limited(tf, folder, epochs):
    del folder
    number = tf.train.limit_epochs(tf.constant([4, 5, 6]), 3 * epochs if epochs else None)
    return tf.train.batch([number], 4, enqueue_many=True), None


def own_runner(tf, folder, epochs):
    del folder
    counted = iter(range(10 * epochs) if epochs else iter(int, 1))

    def next_number():
        return np.int64(next(counted))

    queue = tf.FIFOQueue(20, [tf.int64, tf.float32], [[], []])
    number = tf.py_func(next_number, [], tf.int64)
    enqueue = queue.enqueue([number, tf.cast(number, tf.float32) * 3])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
    return tuple(queue.dequeue_up_to(4))


def a_random_queue_of_ones_own(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    queue = tf.RandomShuffleQueue(9, 6, [tf.int32, tf.float32], [[], []], seed=6)
    runner = tf.train.QueueRunner(queue, [queue.enqueue([number, label])])
    tf.train.add_queue_runner(runner)
    return tuple(queue.dequeue_many(3))


def drawn_before_and_after(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    label += tf.random_uniform([], seed=3)
    number, label = tf.train.batch([number, label], 4)
    return number, label + tf.random_uniform([], seed=4)


def two_queues(tf, folder, epochs):
    """Features and labels of queues of their own; the labels end first."""
    number, _ = _line(tf, folder, num_epochs=epochs, shuffle=False)
    _, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    return tf.train.batch([number], 4), tf.train.batch([label], 5)[:4]


def summarized(tf, folder, epochs):
    number, label = _line(tf, folder, num_epochs=epochs, shuffle=False)
    number, label = tf.train.batch([number, label], 4, name="mine")
    tf.summary.scalar("first", number[0])
    return number, label


def _provided(tf, folder, epochs, **reading):
    slim = tf.contrib.slim
    keys = {"n": tf.FixedLenFeature([], tf.int64)}
    dataset = slim.dataset.Dataset(
        _names(folder, "records"),
        tf.TFRecordReader,
        slim.tfexample_decoder.TFExampleDecoder(keys, {"n": slim.tfexample_decoder.Tensor("n")}),
        FILES * ROWS,
        {},
    )
    provider = slim.dataset_data_provider.DatasetDataProvider(
        dataset, num_epochs=epochs, common_queue_capacity=20, common_queue_min=2, **reading
    )
    (number,) = provider.get(["n"])
    return tf.train.batch([number], 3), None


def provider(tf, folder, epochs):
    return _provided(tf, folder, epochs, shuffle=False)


def provider_of_two_readers(tf, folder, epochs):
    return _provided(tf, folder, epochs, shuffle=True, num_readers=2, seed=5)


# One reader and one thread give one order.
ORDERED = {
    function.__name__: function
    for function in (
        *(lines, lines_to_the_last, records, slices, whole_tensors, bytes_of_files, files),
        *(some_lines_at_once, one_reader_without_batches, some_of_them, padded, sparse),
        *(looked_up, limited, own_runner, drawn_before_and_after, two_queues, summarized),
        provider,
    )
}
# In two epochs of these each number is in a batch twice, whatever the order.
UNORDERED = {
    function.__name__: function
    for function in (
        *(records_in_threads, shuffled, some_of_them_shuffled, a_random_queue_of_ones_own),
        *(two_readers, two_shuffled_readers, provider_of_two_readers),
    )
}
# Their trainings of two epochs are recorded, too.
ENDING = ("lines", "lines_to_the_last", "slices", "two_queues")
CASES = dict(ORDERED, **UNORDERED)


class Seen:
    """The numbers of each batch, and its loss."""

    def __init__(self, tf):
        self.batches, self.losses, self.fetches = [], [], None
        seen = self

        class Hook(tf.train.SessionRunHook):
            def before_run(self, context):
                return tf.train.SessionRunArgs(seen.fetches)

            def after_run(self, context, values):
                seen.batches.append(values.results[0].tolist())
                seen.losses.append(float(values.results[1]))

        self.hook = Hook()


def model(tf, folder, seen):
    def model_fn(features, labels, mode):
        x = tf.cast(features, tf.float32) / 20.0
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(0.1))
        predicted = w * x
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions={"n": features, "y": predicted})
        labels = x * x if labels is None else labels / 20.0
        loss = tf.reduce_mean(tf.square(labels - predicted))
        seen.fetches = [features, loss]
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        count = {"mean": tf.metrics.mean(x + 0.0 * labels)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=count)

    return tf.estimator.Estimator(model_fn, folder)


def made(tf, name, data):
    """Batches and losses of 20 steps, an evaluation, predictions; the ends of some trainings."""

    def input_fn(epochs):
        return lambda: CASES[name](tf, data, epochs)

    with tempfile.TemporaryDirectory() as folder:
        seen = Seen(tf)
        estimator = model(tf, folder, seen)
        if name in UNORDERED:
            estimator.train(input_fn(2), hooks=[seen.hook])
            numbers = sorted(n for batch in seen.batches for n in batch)
            return {"numbers": numbers, "steps": len(seen.batches)}
        estimator.train(input_fn(None), steps=20, hooks=[seen.hook])
        steps, losses = seen.batches, seen.losses
        evaluated = estimator.evaluate(input_fn(1))
        predicted = [int(p["n"]) for p in estimator.predict(input_fn(1))]
        if name in ENDING:
            seen.batches = []
            estimator.train(input_fn(2), hooks=[seen.hook])
    return {
        "steps": steps,
        "losses": losses,
        "evaluated": {key: float(value) for key, value in evaluated.items()},
        "predicted": predicted,
        "two epochs": seen.batches if name in ENDING else None,
    }


def _main():
    import tensorflow as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    chosen = sys.argv[1:] or CASES
    with tempfile.TemporaryDirectory() as folder:
        write_files(tf, folder)
        found = {name: made(tf, name, folder) for name in chosen}
        again = {name: made(tf, name, folder) for name in chosen}
    for name in chosen:
        if found[name] != again[name]:
            print(name, "differs from run to run", found[name], again[name])
    if not sys.argv[1:]:
        rows = [f'"{name}": {json.dumps(found[name], sort_keys=True)}' for name in found]
        GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    _main()
