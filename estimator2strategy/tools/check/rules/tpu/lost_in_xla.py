"""Checks that a compiled step leaves out."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit

_CHECKS = {"Assert", "CheckNumerics", "If", "StatelessIf"}


def find(recorded, subject):
    if not recorded.on_cores:
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.replay.swallowed import swallowed
    from estimator2strategy.engine.user_code import user_line

    inside = [op for op in recorded.operations if recorded.in_model(op)]
    behind = recorded.behind(recorded.root_ops)
    seen = set()
    for name, why in swallowed(recorded.nodes, [op.name for op in inside if op.name in behind]):
        op = recorded.graph.get_operation_by_name(name)
        place = why, user_line(op.traceback)
        if place not in seen and not name.startswith("gradients"):
            seen.add(place)
            severity = Severity.WARNING if op.type in _CHECKS else Severity.INFO
            yield Hit(op, f"nobody is told on a core if {why} ({op.type})", severity=severity)
