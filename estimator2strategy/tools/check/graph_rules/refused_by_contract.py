"""Results of model_fn that Estimator's contract refuses, where no other rule is more exact."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import TPU_INPUT
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
MODES = ("predict",)

def model_fn(features, labels, mode, params):
    predicted = tf.layers.dense(features["x"], 1)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={predictions})
"""


@rule(
    "E2S601",
    "refused-by-contract",
    Severity.ERROR,
    title="What model_fn returned cannot be run",
    why="model_fn and input_fn were called, and what they returned is not what Estimator or "
    "TPUEstimator takes: train, evaluate or predict would end with this error before the first "
    "step.",
    fix="Do what the message says.",
    bad=TPU_INPUT + _MODEL.format(predictions="predicted"),
    good=TPU_INPUT + _MODEL.format(predictions='{"y": predicted}'),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    # Two of these have a rule of their own: E2S604 and E2S611.
    said = str(recorded.refused or "")
    if said and not ("static shape" in said or said.startswith("CrossShardOptimizer must be")):
        where = "on cores" if recorded.on_cores else "on one device"
        yield Hit(None, f"{recorded.mode} {where}: {said}")
