"""Runs on a TPU without a number of steps."""

from estimator2strategy.tools.check import branches
from estimator2strategy.tools.check.estimator_programs import runs
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call, made in runs(source):
        if call.last == "predict" or call.is_open or not is_tf(made.name, "TPUEstimator"):
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate":
            if made.value("eval_on_tpu") is False:
                continue
            given = [call.argument("steps", 1)]
        else:
            given = [call.argument("steps", 2), call.argument("max_steps", 3)]
        if all(steps is None or source.constant(steps, call.scope) is None for steps in given):
            yield Hit(call.node, f"{call.last} on a TPU needs a number of steps")
