"""Summaries that a TPU drops."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S605",
    "dropped-summary",
    Severity.WARNING,
    title="A summary that model_fn makes on a core, where nobody writes it",
    why="Summaries are strings, which cores do not have. TPUEstimator leaves those out that "
    "model_fn makes in training, without an error: the curve is just not there.",
    fix="Hand the tensor to a host_call, and write the summary there with tf.contrib.summary.",
    bad=tpu_model('tf.summary.histogram("hidden", hidden)'),
    good=tpu_model(),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.operations:
        if op.type in recorded.SUMMARIES and op.type != "MergeSummary" and recorded.in_model(op):
            yield Hit(op, f"{recorded.mode}: the summary {op.name!r} is not written on a TPU")
