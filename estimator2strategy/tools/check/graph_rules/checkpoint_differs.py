"""A checkpoint that the model does not fit."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S613",
    "checkpoint-differs",
    Severity.ERROR,
    title="A checkpoint (--checkpoint) that does not fit the variables of the model",
    why="Restoring fails for a variable that the checkpoint lacks, or has in another shape. What "
    "only the checkpoint has is not restored: a note, for it may be an optimizer's.",
    fix="Give the variables the names and shapes that they had (tf.train.list_variables shows "
    "them), or map them with tf.train.init_from_checkpoint or warm_start_from.",
    bad=None,
    good=None,
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if subject.checkpoint is None or recorded.on_cores != subject.model.for_tpu:
        return
    saved = subject.saved_variables
    made = {v.op.name: v for v in recorded.graph.get_collection("variables")}
    for name, variable in made.items():
        if name not in saved:
            yield Hit(variable.op, f"{recorded.mode}: {name!r} is not in {subject.checkpoint}")
        elif not variable.shape.is_compatible_with(saved[name]):
            shape = "x".join(map(str, saved[name])) or "scalar"
            yield Hit(
                variable.op,
                f"{recorded.mode}: {name!r} has the shape {variable.shape}, and {shape} in "
                f"{subject.checkpoint}",
            )
    if recorded.mode == Mode.TRAIN:
        for name in sorted(set(saved) - set(made)):
            message = f"only {subject.checkpoint} has {name!r}; it is not restored"
            yield Hit(None, message, severity=Severity.INFO)
