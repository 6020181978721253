"""Checks that a compiled step leaves out."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.rule import Hit, rule

_CHECKS = {"Assert", "CheckNumerics", "If", "StatelessIf"}


@rule(
    "E2S616",
    "lost-in-xla",
    Severity.WARNING,
    title="A check that a core leaves out",
    why="XLA compiles an assertion, and tf.check_numerics, to nothing: a core goes on where a CPU "
    "would stop. It also takes another row for an id beyond its table, and makes a NaN of a label "
    "beyond the classes; such ops are notes.",
    fix="Check the batch in input_fn, or train some steps on the CPU first.",
    bad=tpu_model('hidden = tf.check_numerics(hidden, "hidden")'),
    good=tpu_model("hidden = tf.nn.relu(hidden)"),
    level=Evidence.RECORDED,
)
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
