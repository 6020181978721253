"""Queues as input."""

import functools

from estimator2strategy.tools.check import tables
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import in_input_functions, input_functions
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import arguments_of

_QUEUES = {
    f"tf.train.{name}"
    for name in (
        "batch",
        "batch_join",
        "input_producer",
        "limit_epochs",
        "maybe_batch",
        "maybe_shuffle_batch",
        "range_input_producer",
        "shuffle_batch",
        "shuffle_batch_join",
        "slice_input_producer",
        "string_input_producer",
        "add_queue_runner",
    )
} | {
    "tf.contrib.training.bucket",
    "tf.contrib.training.bucket_by_sequence_length",
    "tf.contrib.training.rejection_sample",
    "tf.contrib.training.stratified_sample",
    "tf.TFRecordReader",
    "tf.TextLineReader",
    "tf.WholeFileReader",
    "tf.FixedLengthRecordReader",
    "tf.IdentityReader",
    "tf.train.QueueRunner",
}


@rule(
    "E2S301",
    "queue-runner",
    Severity.ERROR,
    title="An input_fn that reads from a queue runner",
    why="Queues need threads that feed a live Session, and there is none. This package refuses it "
    "with the line; where it is not "
    "certain that an Estimator calls the function, it is a warning or a note.",
    fix="Return a tf.data.Dataset; the table in inputs.md has a line for each queue.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def input_fn():
    names = tf.train.string_input_producer(["train.tfrecord"])
    _, record = tf.TFRecordReader().read(names)
    return tf.train.batch([record], 8)
""",
    good="""\
import tensorflow as tf

def input_fn():
    return tf.data.TFRecordDataset("train.tfrecord").batch(8)
""",
)
def find(source, context):
    project = context.project
    for_estimators = source in project.estimator_sources
    starts = input_functions(source, project)
    if not for_estimators:
        alone = starts and not _starts_queues(project)
        starts = [f for f in starts if not _is_called(f, project)] if alone else []
    inside = {d.node for d in project.reachable(starts)}
    if for_estimators:
        inside |= in_input_functions(project)
    for call in source.calls:
        if _public(call.name) in _QUEUES:
            function = call.scope.function
            takes_params = function is not None and "params" in arguments_of(function)
            outside = Severity.WARNING if takes_params and for_estimators else Severity.INFO
            severity = None if function in inside else outside
            yield Hit(call.node, f"{call.name} feeds from a queue", severity=severity)


def _public(name):
    """The public name behind one of a deep file of tf.contrib; any other name as it is."""
    row = tables.contrib().find(name) if name and name.startswith("tf.contrib.") else None
    return row.name if row else name


@functools.lru_cache(maxsize=1)
def _starts_queues(project):
    """True if the program feeds its queues itself, for a Session of its own."""
    names = ("tf.train.start_queue_runners", "tf.train.Supervisor")
    return any(call.name in names for source in project.sources for call in source.calls)


def _is_called(function, project):
    """True if the program calls a function itself, as one with a Session does."""
    return any(
        call.last == function.node.name
        and (called := project.definition(source.resolve(call.node.func, call.scope)))
        and called.node is function.node
        for source in project.sources
        for call in source.calls
    )
