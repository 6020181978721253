"""`tf.contrib.learn.read_batch_features` and the functions beside it: batches of records of files.

In TF 1.15 they read through queues, which threads of a Session fill. Here they read a Dataset, so
that an input_fn may call them. Shuffled records come in another order than there, others in the
same.

Source: `tf.contrib.learn` learn_io/graph_io.py, TF 1.15.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import UnsupportedError

_v1 = tf.compat.v1
_Records: TypeAlias = Callable[[tf.Tensor], tf.data.Dataset]  # the keys and records of a file
_Function = TypeVar("_Function", bound=Callable[..., Any])
_FRAME = 16  # bytes of a TFRecord beside its data


def _text_lines(reader: tf.Operation) -> _Records:
    skipped = reader.get_attr("skip_header_lines")

    def records(file: tf.Tensor) -> tf.data.Dataset:
        lines = tf.data.TextLineDataset(file).skip(skipped).enumerate(skipped + 1)
        return lines.map(lambda number, line: (_key(file, number), line))

    return records


def _tf_records(reader: tf.Operation) -> _Records:
    compression = reader.get_attr("compression_type").decode()

    def records(file: tf.Tensor) -> tf.data.Dataset:
        def placed(offset: tf.Tensor, record: tf.Tensor) -> Any:
            size = tf.cast(tf.strings.length(record), tf.int64) + _FRAME
            return offset + size, (_key(file, offset), record)

        return tf.data.TFRecordDataset(file, compression).scan(tf.constant(0, tf.int64), placed)

    return records


def _fixed_lengths(reader: tf.Operation) -> _Records:
    if reader.get_attr("hop_bytes") or reader.get_attr("encoding"):
        raise UnsupportedError(
            "hop_bytes and encoding of FixedLengthRecordReader are not supported here. Use "
            "tf.data.FixedLengthRecordDataset, or tf.io.decode_raw on the whole file."
        )
    sizes = [reader.get_attr(f"{part}_bytes") for part in ("record", "header", "footer")]

    def records(file: tf.Tensor) -> tf.data.Dataset:
        numbered = tf.data.FixedLengthRecordDataset(file, *sizes).enumerate()
        return numbered.map(lambda number, record: (_key(file, number), record))

    return records


def _whole_files(reader: tf.Operation) -> _Records:
    del reader
    return lambda file: tf.data.Dataset.from_tensors((file, tf.io.read_file(file)))


# The op of a reader of TF 1 -> what makes the keys and records of a file.
_READERS: Mapping[str, Callable[[tf.Operation], _Records]] = {
    "FixedLengthRecordReaderV2": _fixed_lengths,
    "TFRecordReaderV2": _tf_records,
    "TextLineReaderV2": _text_lines,
    "WholeFileReaderV2": _whole_files,
}


def _key(file: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    return tf.strings.join([file, tf.strings.as_string(place)], ":")


def _taking_the_same(read: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Makes a decorator for a function that hands its arguments on to `read`."""

    def decorator(function: _Function) -> _Function:
        function.__signature__ = inspect.signature(read)  # type: ignore[attr-defined]
        return function

    return decorator


def read_keyed_batch_examples(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[..., Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> tuple[tf.Tensor, Any]:
    """A batch of records, and the place of each: its file, and its offset, line or number.

    Args:
        file_pattern: A pattern of paths, or a list of such.
        batch_size: Number of records; the last batch of the last epoch may be smaller.
        reader: Makes a reader: `tf.TFRecordReader`, `tf.TextLineReader`,
            `tf.FixedLengthRecordReader` or `tf.WholeFileReader`.
        randomize_input: True to shuffle files and records.
        num_epochs: Number of times that all is read; None for no end.
        queue_capacity: Number of records among which is shuffled.
        num_threads: Not used.
        read_batch_size: Number of records that `parse_fn` is given; 1 for one without a dimension.
        parse_fn: Makes tensors of records.
        name: Of the ops.
        seed: Of the shuffling.

    Returns:
        Keys, string [batch], and records, string [batch], or what `parse_fn` made of them.

    Raises:
        ValueError: No file is there, or a number is not positive.
        UnsupportedError: There is no such reader.
    """
    del num_threads
    files = _files(file_pattern, randomize_input)
    _check(batch_size, queue_capacity, read_batch_size, num_epochs)
    records_of = _records_of(reader)
    with _v1.name_scope(name, "read_batch_examples"):
        names = tf.data.Dataset.from_tensor_slices(files)
        if randomize_input:
            names = names.shuffle(len(files), seed)
        records = names.repeat(num_epochs).flat_map(records_of)
        if parse_fn is not None:
            parsed = records if read_batch_size == 1 else records.batch(read_batch_size)
            parsed = parsed.map(lambda key, record: (key, parse_fn(record)))
            records = parsed if read_batch_size == 1 else parsed.unbatch()
        if randomize_input:
            records = records.shuffle(max(queue_capacity - 3 * batch_size, batch_size), seed)
        batches = records.batch(batch_size, drop_remainder=num_epochs is None)
        return cast(
            tuple[tf.Tensor, Any], _v1.data.make_one_shot_iterator(batches.prefetch(1)).get_next()
        )


@_taking_the_same(read_keyed_batch_examples)
def read_batch_examples(*args: Any, **kwargs: Any) -> Any:
    """A batch of records: those that `read_keyed_batch_examples` gives, without their keys."""
    return read_keyed_batch_examples(*args, **kwargs)[1]


@_taking_the_same(read_keyed_batch_examples)
def read_keyed_batch_examples_shared_queue(*args: Any, **kwargs: Any) -> tuple[tf.Tensor, Any]:
    """As `read_keyed_batch_examples`: one worker shares the names of files with nobody.

    Raises:
        UnsupportedError: TF_CONFIG has several workers.
    """
    _refuse_several_workers("read_keyed_batch_examples_shared_queue")
    return read_keyed_batch_examples(*args, **kwargs)


def _records_of(reader: Callable[[], Any]) -> _Records:
    with tf.Graph().as_default():
        kind = reader().reader_ref.op
        if kind.type not in _READERS:
            raise UnsupportedError(f"{kind.type} is not supported here. Use a Dataset of tf.data.")
        return _READERS[kind.type](kind)


def _files(file_pattern: Any, randomize_input: bool) -> list[str]:
    if isinstance(file_pattern, list) and not file_pattern:
        raise ValueError("No files given to dequeue_examples.")
    patterns = file_pattern if isinstance(file_pattern, list) else [file_pattern]
    files = [file for pattern in patterns for file in tf.io.gfile.glob(pattern)]
    if not files:
        raise ValueError(f"No files match {file_pattern}.")
    return files if randomize_input else sorted(files)


def _check(
    batch_size: int, queue_capacity: int, read_batch_size: int, num_epochs: int | None
) -> None:
    if not queue_capacity or queue_capacity <= 0:
        raise ValueError(f"Invalid queue_capacity {queue_capacity}.")
    if batch_size is None or not 0 < batch_size < queue_capacity:
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    if read_batch_size is None or read_batch_size <= 0:
        raise ValueError(f"Invalid read_batch_size {read_batch_size}.")
    if num_epochs is not None and num_epochs <= 0:
        raise ValueError(f"Invalid num_epochs {num_epochs}.")


def read_keyed_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[..., Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> tuple[tf.Tensor, dict[str, Any]]:
    """Parsed Examples, and their keys.

    Args:
        features: As for `tf.parse_example`.
        reader_num_threads, feature_queue_capacity, num_enqueue_threads: Not used.
        parse_fn: Makes Examples of records.
        read_batch_size: As for `read_keyed_batch_examples`; `batch_size` by default.
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, name: As of
            `read_keyed_batch_examples`.

    Returns:
        Keys, string [batch], and features by name.

    Raises:
        ValueError: No file is there, or a number is not positive.
    """
    del reader_num_threads, feature_queue_capacity, num_enqueue_threads
    with _v1.name_scope(name, "read_batch_features"):
        keys, examples = read_keyed_batch_examples(
            file_pattern,
            batch_size,
            reader,
            randomize_input,
            num_epochs,
            queue_capacity,
            read_batch_size=batch_size if read_batch_size is None else read_batch_size,
            parse_fn=parse_fn,
        )
        return keys, _v1.parse_example(examples, features)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[..., Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> dict[str, Any]:
    """Parsed Examples: those that `read_keyed_batch_features` gives, without their keys."""
    given = {**locals()}
    return read_keyed_batch_features(**given)[1]


def read_batch_record_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str | None = "dequeue_record_examples",
) -> dict[str, Any]:
    """Parsed Examples of TFRecords; arguments are those of `read_batch_features`."""
    given = {**locals()}
    return read_batch_features(reader=_v1.TFRecordReader, **given)


def read_keyed_batch_features_shared_queue(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_queue_runners: int = 2,
    parse_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, dict[str, Any]]:
    """As `read_keyed_batch_features`: one worker shares the names of files with nobody.

    Raises:
        UnsupportedError: TF_CONFIG has several workers.
    """
    given = {**locals()}
    _refuse_several_workers("read_keyed_batch_features_shared_queue")
    return read_keyed_batch_features(num_enqueue_threads=given.pop("num_queue_runners"), **given)


def _refuse_several_workers(function: str) -> None:
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec().as_dict()
    workers = sum(len(cluster.get(job, ())) for job in ("chief", "master", "worker"))
    if workers > 1:
        raise wrong_argument(
            f"tf.contrib.learn.{function} deals files out to workers by a queue on a parameter "
            "server, which is not there; each worker would read all files. Workers in TF_CONFIG",
            workers,
            "Return a Dataset: tf.data.TFRecordDataset(files[index::workers]) reads the files of "
            "one worker.",
            UnsupportedError,
        )


def queue_parsed_features(
    parsed_features: Mapping[str, Any],
    keys: tf.Tensor | None = None,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    name: str | None = None,
) -> tuple[tf.Tensor | None, dict[str, Any]]:
    """Keys and features as they are: no queue is needed for what a Dataset reads ahead."""
    del feature_queue_capacity, num_enqueue_threads, name
    return keys, dict(parsed_features)
