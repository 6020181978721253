"""Updates that nothing orders with a use of their variable."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = (
    HOST_INPUT
    + """\
def model_fn(features, labels, mode):
    w = tf.get_variable("w", [1, 1])
    target = tf.get_variable("target", [1, 1], trainable=False)
    loss = tf.losses.mean_squared_error(labels, features["x"] @ w)
    step = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
COPY
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
)


@rule(
    "E2S617",
    "update-race",
    Severity.INFO,
    title="An update of a variable and a use of it, in one step, that nothing orders",
    why="With the reference variables of TF 1.15 the use got the value from before or from after "
    "the update, as threads had it: a run there is not repeatable. Here it has one of those "
    "results, always the same. So an old run may not be met to the digit.",
    fix="Build the use under tf.control_dependencies([update]) if it shall follow the update, or "
    "the update under tf.control_dependencies([use]).",
    bad=_MODEL.replace("COPY", "    train_op = tf.group(step, tf.assign(target, w))"),
    good=_MODEL.replace(
        "COPY",
        "    with tf.control_dependencies([step]):\n        train_op = tf.assign(target, w)",
    ),
    level=Evidence.RECORDED,
    guide="differences.md",
)
def find(recorded, subject):
    if recorded.on_cores or recorded.mode != "train":
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.plan.races import races

    for race in races(recorded.graph, [recorded.train_op.name]):
        use = recorded.graph.get_operation_by_name(race.use)
        yield Hit(
            use, f"nothing orders {race.use!r} with {race.write!r}, a write of {race.variable!r}"
        )
