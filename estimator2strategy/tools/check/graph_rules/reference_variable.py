"""Variables without a handle."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
def model_fn(features, labels, mode):
    {variable}
    {assigned}
    predicted = tf.layers.dense(features["x"], 1) * scale
    loss = tf.losses.mean_squared_error(labels, predicted)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S608",
    "reference-variable",
    Severity.ERROR,
    title="A variable that is no resource: made with a raw op, not with tf.Variable",
    why="tf.get_variable and tf.Variable make resource variables here whatever use_resource says. "
    "An op that makes a reference variable itself has no handle that a replay could be given, and "
    "its value is lost between steps.",
    fix="Make it with tf.get_variable or tf.Variable.",
    bad=HOST_INPUT
    + _MODEL.format(
        variable="scale = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32)",
        assigned="scale = tf.raw_ops.Assign(ref=scale, value=2.0)",
    ),
    good=HOST_INPUT
    + _MODEL.format(
        variable='scale = tf.get_variable("scale", initializer=2.0)',
        assigned="",
    ).replace("    \n", ""),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    for op in recorded.operations:
        if op.type in ("Variable", "VariableV2", "TemporaryVariable"):
            yield Hit(op, f"{recorded.mode}: {op.name!r} is a reference variable ({op.type})")
