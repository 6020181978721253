"""Python functions in the input pipeline of a TPU."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S306",
    "python-in-input",
    Severity.INFO,
    title="Python code inside of an input pipeline for TPUs",
    why="py_func and from_generator run in this process, one call at a time. A TPU is fed from "
    "the machines it is attached to: with remote workers such a pipeline fails there, and on "
    "one machine it is often what the cores wait for.",
    fix="Write the records to TFRecord files beforehand, or use ops of TensorFlow.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.Dataset.from_generator(lambda: iter([1.0]), tf.float32, [])
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord")
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        for call in context.project.calls_of(definition):
            if is_tf(call.name, "py_func", "py_function", "numpy_function", "from_generator"):
                yield Hit(call.node, f"{call.name} runs Python in the process of the program")
