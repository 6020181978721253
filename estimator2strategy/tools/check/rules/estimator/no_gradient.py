"""Variables that training cannot change."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if recorded.mode != Mode.TRAIN:
        return
    written = set(recorded.nodes.variables_written(recorded.root_ops))
    matters = recorded.behind([recorded.spec.loss.op.name], stop_at={"StopGradient"})
    for variable in recorded.graph.get_collection("trainable_variables"):
        name = variable.op.name
        if name in written:
            continue
        if name in matters:
            yield Hit(
                variable.op,
                f"the loss depends on {name!r}, and train_op leaves it as it is (var_list?)",
                severity=Severity.INFO,
            )
        else:
            yield Hit(variable.op, f"no gradient reaches {name!r}")
