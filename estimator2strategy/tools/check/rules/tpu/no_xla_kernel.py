"""Ops that no TPU compiler knows."""

from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if not recorded.on_cores or recorded.recording is None:
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.tools.xla.core_program import core_program
    from estimator2strategy.tools.xla.kernels import described, unsupported

    for found in unsupported(core_program(recorded.recording)):
        if found.op not in HOST_OPS:  # E2S606
            message, fix = described(found)
            op = recorded.graph.get_operation_by_name(found.node)
            yield Hit(op, message, fix=fix)
