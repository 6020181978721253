"""Options for Sessions."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S225",
    "session-options",
    Severity.INFO,
    title="A session_config, of which only some fields have a meaning",
    why="There is no tf.Session behind the hooks, and one runtime serves the whole process. XLA, "
    "log_device_placement, threads and allow_growth are taken from it; a warning names the other "
    "fields that are set.",
    fix="contract.md says what becomes of each field; tf.config says the same on TF2.",
    guide="contract.md",
    bad="""\
import tensorflow as tf

config = tf.estimator.RunConfig(session_config=tf.ConfigProto(allow_soft_placement=True))
""",
    good="""\
import tensorflow as tf

config = tf.estimator.RunConfig(save_checkpoints_steps=100)
""",
)
def find(source, context):
    for call in source.calls:
        if is_tf(call.name, "RunConfig") and ".learn." not in call.name:
            given = call.argument("session_config")
            if given is not None and source.constant(given, call.scope) is not None:
                yield Hit(
                    given,
                    "only some fields of a session_config have a meaning: there is no Session",
                )
