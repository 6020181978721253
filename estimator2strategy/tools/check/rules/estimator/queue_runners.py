"""Queues as input."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.names import tables
from estimator2strategy.tools.reader.estimator_programs import in_input_functions, input_functions
from estimator2strategy.tools.reader.source import arguments_of

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


def find(source, context):
    project = context.project
    on_cores = source in project.tpu_sources or _is_for_replicas(source, project)
    inside = set()
    if on_cores:
        reached = project.reachable(input_functions(source, project))
        inside = {d.node for d in reached} | in_input_functions(project)
    for call in source.calls:
        if _public(call.name) not in _QUEUES:
            continue
        function = call.scope.function
        if not on_cores:
            yield Hit(call.node, f"{call.name} feeds from a queue")
        elif function in inside:
            message = f"{call.name} feeds from a queue, which cores and replicas refuse"
            yield Hit(call.node, message, Severity.ERROR)
        else:
            takes_params = function is not None and "params" in arguments_of(function)
            severity = Severity.WARNING if takes_params else Severity.INFO
            yield Hit(call.node, f"{call.name} feeds from a queue", severity)


def _public(name):
    """The public name behind one of a deep file of tf.contrib; any other name as it is."""
    row = tables.contrib().find(name) if name and name.startswith("tf.contrib.") else None
    return row.name if row else name


def _is_for_replicas(source, project):
    """True if the program of a file trains or evaluates on the replicas of a strategy."""
    return any(
        keyword.arg in ("train_distribute", "eval_distribute")
        and getattr(keyword.value, "value", "?") is not None
        for other in project.imports.together(source)
        for call in other.calls
        for keyword in call.node.keywords
    )
