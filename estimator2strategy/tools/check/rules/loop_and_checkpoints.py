"""Intervals that end inside of a loop on the TPU."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_INTERVALS = {
    "save_checkpoints_steps": "checkpoints are saved",
    "save_summary_steps": "summaries are written",
    "log_step_count_steps": "the loss is logged",
}


@rule(
    "E2S215",
    "interval-within-loop",
    Severity.WARNING,
    title="A save, summary or log interval that iterations_per_loop does not divide",
    why="Hooks act between the loops of the TPU only, at multiples of iterations_per_loop. An "
    "interval in between takes effect at the end of the loop that it falls into, so later "
    "than asked for.",
    fix="Make the interval a multiple of iterations_per_loop.",
    bad="""\
import tensorflow as tf

config = tf.estimator.tpu.RunConfig(
    save_checkpoints_steps=150, tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100))
""",
    good="""\
import tensorflow as tf

config = tf.estimator.tpu.RunConfig(
    save_checkpoints_steps=200, tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100))
""",
)
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
