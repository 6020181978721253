"""Batch norm whose moving averages nothing updates."""

from estimator2strategy.tools.check.rule import Hit

_RUNS_UPDATES = ("UPDATE_OPS", "optimize_loss", "create_train_op", "get_updates_for", ".updates")
_AROUND = (
    "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)): around minimize"
)
_TRAINING = "Give training=(mode == tf.estimator.ModeKeys.TRAIN), and put "


def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source or not any(s.argument("train_op") for s in model.specs):
            continue
        reached = project.reachable([model.definition])
        if any(word in d.source.text for d in reached for word in _RUNS_UPDATES):
            continue
        for call in project.calls_of(model.definition):
            if call.name == "tf.layers.batch_normalization" and call.value("training") is not False:
                never = "the moving averages of this batch norm are never updated"
                # Without `training`, it is False, and there is nothing to run.
                is_told = call.argument("training") is not None or call.is_open
                yield Hit(call.node, never, fix=None if is_told else _TRAINING + _AROUND)
