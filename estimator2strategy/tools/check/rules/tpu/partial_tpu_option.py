"""Options of TPUEstimator that this package refuses in some places, or only traced."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit

# (class, argument) -> why, what instead.
_OPTIONS = {
    ("TPUEstimator", "embedding_config_spec"): (
        "works on the host and on emulated cores; refused on a TPU, and in predict on cores",
        "There: look the tables up in model_fn with tf.nn.embedding_lookup.",
    ),
    ("TPUConfig", "num_cores_per_replica"): (
        "above 1 it has only been traced for a TPU; emulated cores run a replica on one of them",
        "Leave it out where the model fits one core: data-parallel.",
    ),
    ("TPUConfig", "input_partition_dims"): (
        "has only been traced for a TPU, which wants parts of one size; emulated cores cut nothing",
        "Leave it out where the model fits one core: data-parallel.",
    ),
}


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator", "TPUConfig"):
            continue
        for keyword in call.node.keywords:
            option = _OPTIONS.get((call.name.rpartition(".")[2], keyword.arg))
            if not option or source.constant(keyword.value, call.scope) in (None, 1):
                continue
            if isinstance(keyword.value, (ast.Name, ast.Attribute)):
                # Handed on from somewhere, and often None.
                message = f"if it is set: {keyword.arg} {option[0]}"
                yield Hit(keyword.value, message, severity=Severity.INFO, fix=option[1])
            else:
                yield Hit(keyword.value, f"{keyword.arg} {option[0]}", fix=option[1])
