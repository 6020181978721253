"""Summaries that a TPU drops."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.operations:
        if op.type in recorded.SUMMARIES and op.type != "MergeSummary" and recorded.in_model(op):
            yield Hit(op, f"{recorded.mode}: the summary {op.name!r} is not written on a TPU")
