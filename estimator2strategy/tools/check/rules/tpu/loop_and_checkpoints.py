"""Intervals that end inside of a loop on the TPU."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit

_INTERVALS = {
    "save_checkpoints_steps": "checkpoints are saved",
    "save_summary_steps": "summaries are written",
    "log_step_count_steps": "the loss is logged",
}


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "RunConfig"):
            continue
        tpu_config = source.call(call.argument("tpu_config"), call.scope)
        if tpu_config is None or not is_tf(tpu_config.name, "TPUConfig"):
            continue
        loop = tpu_config.value("iterations_per_loop", 0)
        if not isinstance(loop, int) or loop < 2:
            continue
        for argument, what in _INTERVALS.items():
            value = call.value(argument)
            if isinstance(value, int) and value > 0 and value % loop:
                yield Hit(
                    call.argument(argument),
                    f"{what} at ends of loops of {loop} steps, not every {value} steps",
                )
