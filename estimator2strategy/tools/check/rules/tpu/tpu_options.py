"""Arguments of TPUEstimator and its kin."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import branches
from estimator2strategy.tools.reader.estimator_programs import runs
from estimator2strategy.tools.reader.project import is_tf
from estimator2strategy.tools.reader.source import Call, Source, parents


def reserved_params(source: Source, context: Context) -> Iterator[Hit]:
    """params keys that TPUEstimator sets itself."""
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        params = call.argument("params", 3)
        if params is None:
            continue
        found = source.assigned(params, call.scope)
        value, _scope = found or (params, call.scope)
        for key, node in _items(value):
            if key in ("batch_size", "context"):
                yield Hit(node, f"{key!r} is a reserved key of a TPUEstimator's params")


def _items(value: ast.expr) -> Iterator[tuple[object, ast.expr]]:
    if isinstance(value, ast.Dict):
        for key in value.keys:
            if isinstance(key, ast.Constant):
                yield key.value, key
    elif (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict"
    ):
        for keyword in value.keywords:
            yield keyword.arg, keyword.value


def summed_gradients(source: Source, context: Context) -> Iterator[Hit]:
    """CrossShardOptimizer with a sum for a mean."""
    for call in source.calls:
        reduction = (
            call.argument("reduction", 1) if is_tf(call.name, "CrossShardOptimizer") else None
        )
        if reduction is not None and is_tf(source.name(reduction, call.scope), "SUM"):
            yield Hit(call.node, "the gradients of the cores are added, not averaged")


def wrong_spec(source: Source, context: Context) -> Iterator[Hit]:
    """A TPUEstimator whose model_fn returns EstimatorSpecs."""
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        if call.value("use_tpu", 4) is False or call.value("eval_on_tpu") is False:
            continue
        function = context.project.function(call.argument("model_fn", 0), call.scope, source)
        for model in context.project.model_functions:
            if function is not None and model.node is function.node and not model.is_tpu:
                yield Hit(call.node, f"{model.node.name} returns an EstimatorSpec")


def no_steps(source: Source, context: Context) -> Iterator[Hit]:
    """Runs on a TPU without a number of steps."""
    for call, made in runs(source):
        if call.last == "predict" or call.is_open or not is_tf(made.name, "TPUEstimator"):
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate":
            if made.value("eval_on_tpu") is False:
                continue
            given = [call.argument("steps", 1)]
        else:
            given = [call.argument("steps", 2), call.argument("max_steps", 3)]
        if all(steps is None or source.constant(steps, call.scope) is None for steps in given):
            yield Hit(call.node, f"{call.last} on a TPU needs a number of steps")


_INTERVALS = {
    "save_checkpoints_steps": "checkpoints are saved",
    "save_summary_steps": "summaries are written",
    "log_step_count_steps": "the loss is logged",
}


def interval_within_loop(source: Source, context: Context) -> Iterator[Hit]:
    """Intervals that end inside of a loop on the TPU."""
    for call in source.calls:
        if not is_tf(call.name, "RunConfig"):
            continue
        tpu_config = source.call(call.argument("tpu_config"), call.scope)
        if tpu_config is None or not is_tf(tpu_config.name, "TPUConfig"):
            continue
        loop = tpu_config.value("iterations_per_loop", 0)
        if not isinstance(loop, int) or loop < 2:
            continue
        for argument, what in _INTERVALS.items():
            value = call.value(argument)
            if isinstance(value, int) and value > 0 and value % loop:
                yield Hit(
                    call.argument(argument),
                    f"{what} at ends of loops of {loop} steps, not every {value} steps",
                )


# Argument, its position, the method that takes batches of this size.
_SIZES = (("train_batch_size", 5, "train"), ("eval_batch_size", 6, "evaluate"))


def uneven_batch(source: Source, context: Context) -> Iterator[Hit]:
    """Batches that cores cannot share."""
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator") or call.value("use_tpu", 4) is False:
            continue
        used = _methods(call)
        for name, position, method in _SIZES:
            size = call.value(name, position)
            if used is not None and method not in used:
                continue
            if isinstance(size, int) and not isinstance(size, bool) and size % 8:
                yield Hit(call.argument(name, position), f"{name}={size} is no multiple of 8")


def _methods(call: Call) -> set[str] | None:
    """The methods of an estimator that its file calls; None if it may be used in other ways."""
    target = getattr(next(parents(call.node), None), "targets", [None])[0]
    where = call.scope.find(target.id) if isinstance(target, ast.Name) else None
    if where is None or len(where.bindings[target.id]) > 1 or where.is_class:
        return None
    found = set()
    for node, scope in call.source.chains:
        name = node.value if isinstance(node, ast.Attribute) else node
        if isinstance(name, ast.Name) and name.id == target.id and scope.find(name.id) is where:
            if not isinstance(node, ast.Attribute):
                return None
            found.add(node.attr)
    return found or None


_SIZE_OF = {
    "train": ("train_batch_size", 5),
    "evaluate": ("eval_batch_size", 6),
    "predict": ("predict_batch_size", 7),
}


def no_batch_size(source: Source, context: Context) -> Iterator[Hit]:
    """TPUEstimator without a batch size."""
    for call, made in runs(source):
        if not is_tf(made.name, "TPUEstimator") or made.is_open:
            continue
        if made.value("use_tpu", 4) is False or branches.is_refused_on_tpu(call.node):
            continue
        if call.last == "evaluate" and made.value("eval_on_tpu") is False:
            continue
        name, position = _SIZE_OF[call.last]
        if made.argument(name, position) is None:
            yield Hit(call.node, f".{call.last}() on a TPU, and TPUEstimator has no {name}")


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


def partial_option(source: Source, context: Context) -> Iterator[Hit]:
    """Options of TPUEstimator that this package refuses in some places, or only traced."""
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator", "TPUConfig"):
            continue
        for keyword in call.node.keywords:
            option = _OPTIONS.get((call.name.rpartition(".")[2], keyword.arg or ""))
            if not option or source.constant(keyword.value, call.scope) in (None, 1):
                continue
            if isinstance(keyword.value, (ast.Name, ast.Attribute)):
                # Handed on from somewhere, and often None.
                message = f"if it is set: {keyword.arg} {option[0]}"
                yield Hit(keyword.value, message, severity=Severity.INFO, fix=option[1])
            else:
                yield Hit(keyword.value, f"{keyword.arg} {option[0]}", fix=option[1])
