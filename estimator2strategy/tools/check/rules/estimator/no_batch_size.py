"""TPUEstimator without a batch size."""

from estimator2strategy.tools.check import branches
from estimator2strategy.tools.check.estimator_programs import runs
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit

_SIZES = {
    "train": ("train_batch_size", 5),
    "evaluate": ("eval_batch_size", 6),
    "predict": ("predict_batch_size", 7),
}


def find(source, context):
    for call, made in runs(source):
        if not is_tf(made.name, "TPUEstimator") or made.is_open:
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate" and made.value("eval_on_tpu") is False:
            continue
        name, position = _SIZES[call.last]
        if made.argument(name, position) is None:
            yield Hit(call.node, f".{call.last}() on a TPU, and TPUEstimator has no {name}")
