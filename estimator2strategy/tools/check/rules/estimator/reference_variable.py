"""Variables without a handle."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    for op in recorded.operations:
        if op.type in ("Variable", "VariableV2", "TemporaryVariable"):
            yield Hit(op, f"{recorded.mode}: {op.name!r} is a reference variable ({op.type})")
