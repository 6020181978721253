"""Python, files, prints and queues in the part of a model that a TPU executes."""

from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        for inner in (op.type, *recorded.called_by(op)):
            if inner in HOST_OPS:
                where = "" if inner == op.type else f", in a function that {op.type} calls"
                yield Hit(op, f"{recorded.mode}: {inner} ({HOST_OPS[inner]}){where}")
