"""Variables that training cannot change."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features["x"], 4, name="hidden")
    {between}
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S610",
    "no-gradient",
    Severity.WARNING,
    title="A trainable variable that no gradient reaches",
    why="The loss does not depend on it, or only through ops without a gradient, so it keeps its "
    "first value for ever. Checkpoints carry it along; under some strategies its missing gradient "
    "is an error. A variable that the loss depends on and that train_op leaves alone (var_list) is "
    "a note.",
    fix="Use it in the loss, or make it with trainable=False.",
    bad=HOST_INPUT + _MODEL.format(between="hidden = tf.stop_gradient(hidden)"),
    good=HOST_INPUT + _MODEL.format(between="hidden = tf.nn.relu(hidden)"),
    level=Evidence.RECORDED,
)
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
