"""Random numbers that are others in each run."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
def model_fn(features, labels, mode):
    noise = {noise}
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"] + noise, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S607",
    "draws-without-seed",
    Severity.INFO,
    title="A random op that draws other numbers in each run",
    why="Uniform, normal and truncated normal numbers that have a seed are TF 1.15's, also after "
    "an interruption. Without a seed they are others in each run, as they always were; and those "
    "of any other kind (gamma, poisson, shuffle, multinomial) are not TF 1.15's even with one. "
    "Runs can then be compared by their distribution, not number by number.",
    fix="Set RunConfig(tf_random_seed=...), or the seed of the op, where runs are to be compared.",
    bad=HOST_INPUT + _MODEL.format(noise="tf.random.normal([8, 1])"),
    good=HOST_INPUT + _MODEL.format(noise="tf.random.normal([8, 1], seed=1)"),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    for op in recorded.random_ops:
        if op.name in recorded.step_ops and not recorded.has_stream(op):
            yield Hit(op, f"{recorded.mode}: {op.type} draws other numbers in each run")
