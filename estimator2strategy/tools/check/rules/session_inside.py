"""Sessions inside of model_fn or input_fn."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S221",
    "session-inside",
    Severity.WARNING,
    title="A Session in model_fn or input_fn",
    why="The functions build a graph, which is run later and by others. A Session of their own "
    "sees other variables than training does, and on a TPU not the TPU's.",
    fix="Compute it outside, or as part of the graph.",
    bad="""\
import tensorflow as tf

def input_fn():
    data = tf.data.TFRecordDataset("train.tfrecord")
    with tf.Session() as session:
        session.run(data.make_one_shot_iterator().get_next())
    return data
""",
    good="""\
import tensorflow as tf

def input_fn():
    return tf.data.TFRecordDataset("train.tfrecord")
""",
)
def find(source, context):
    project = context.project
    functions = [m.definition for m in project.model_functions if m.source is source]
    for definition in (*functions, *input_functions(source, project)):
        for call in project.calls_of(definition):
            if is_tf(call.name, "Session", "InteractiveSession") and call.name.count(".") == 1:
                yield Hit(call.node, f"a Session in {definition.node.name}")
