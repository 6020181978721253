"""Random numbers that are others in each run."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    for op in recorded.random_ops:
        if op.name in recorded.step_ops and not recorded.has_stream(op):
            yield Hit(op, f"{recorded.mode}: {op.type} draws other numbers in each run")
