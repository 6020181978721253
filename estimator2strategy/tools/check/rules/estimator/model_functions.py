"""model_fns, the specs that they make, and the classes that stand for Estimators."""

from collections.abc import Iterator

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import function_of, is_optimizer_step
from estimator2strategy.tools.reader.own_code import scope_around
from estimator2strategy.tools.reader.project import is_tf
from estimator2strategy.tools.reader.source import Call, Function, Source

_KNOWN = {"features", "labels", "mode", "params", "config", "embedding_lookup", "self"}


def model_fn_arguments(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if not is_tf(call.name, "Estimator", "TPUEstimator") or ".learn." in call.name:
            continue
        given = call.argument("model_fn", 0)
        made = source.call(given, call.scope)
        if made is not None:
            continue  # functools.partial, or a builder
        function = context.project.function(given, call.scope, source)
        if function is None:
            continue
        arguments = function_of(function).args
        if arguments.kwarg or arguments.vararg:
            continue
        every = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        needed = every[: len(every) - len(arguments.defaults)]
        if every[:1] in (["self"], ["cls"]):
            needed = needed[1:]
        unknown = [name for name in needed if name not in _KNOWN]
        if unknown:
            message = (
                f"{function.node.name} takes {', '.join(unknown)}, which Estimator does not give"
            )
            yield Hit(given, message)
        elif "features" not in every:
            yield Hit(given, f"{function.node.name} does not take features")


_ARGUMENTS = {
    "TPUEstimatorSpec": "mode predictions loss train_op eval_metrics export_outputs scaffold_fn "
    "host_call training_hooks evaluation_hooks prediction_hooks",
    "EstimatorSpec": "mode predictions loss train_op eval_metric_ops export_outputs "
    "training_chief_hooks training_hooks scaffold evaluation_hooks prediction_hooks",
    "TPUConfig": "iterations_per_loop num_shards num_cores_per_replica "
    "per_host_input_for_training tpu_job_name initial_infeed_sleep_secs input_partition_dims "
    "eval_training_input_configuration experimental_host_call_every_n_steps "
    "experimental_allow_per_host_v2_parallel_get_next experimental_feed_hook",
    "TPUEstimator": "model_fn model_dir config params use_tpu train_batch_size eval_batch_size "
    "predict_batch_size batch_axis eval_on_tpu export_to_tpu export_to_cpu warm_start_from "
    "embedding_config_spec export_saved_model_api_version "
    "experimental_exported_model_uses_all_cores experimental_export_device_assignment "
    "experimental_embedding_tables_on_cpu",
    "Estimator": "model_fn model_dir config params warm_start_from",
}
_INSTEAD = {
    (
        "TPUEstimatorSpec",
        "eval_metric_ops",
    ): "A TPUEstimatorSpec takes eval_metrics=(metric_fn, tensors).",
    ("TPUEstimatorSpec", "scaffold"): "A TPUEstimatorSpec takes scaffold_fn, a function.",
    ("TPUEstimatorSpec", "training_chief_hooks"): "A TPUEstimatorSpec takes training_hooks.",
    ("EstimatorSpec", "eval_metrics"): "An EstimatorSpec takes eval_metric_ops, a dict.",
    ("EstimatorSpec", "host_call"): "Only a TPUEstimatorSpec takes host_call.",
    ("EstimatorSpec", "scaffold_fn"): "An EstimatorSpec takes scaffold, an object.",
}


def spec_arguments(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if not is_tf(call.name, *_ARGUMENTS) or ".learn." in call.name:
            continue
        known = _ARGUMENTS[call.name.rpartition(".")[2]].split()
        for keyword in call.node.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                last = call.name.rpartition(".")[2]
                fix = _INSTEAD.get((last, keyword.arg), f"It takes {', '.join(known)}.")
                yield Hit(keyword.value, f"{last} has no argument {keyword.arg!r}", fix=fix)


_COUNTS = ("assign_add", "global_step + 1", "global_step+1", "optimize_loss", "create_train_op")


def step_never_counts(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        updates = [
            call
            for call in project.calls_of(model.definition)
            if call.last in ("minimize", "apply_gradients")
            and is_optimizer_step(call, of_project=False)
        ]
        if not updates or any(word in source.text for word in _COUNTS):
            continue
        if all(_counts_nothing(call) for call in updates):
            for call in updates:
                yield Hit(call.node, f".{call.last}() without global_step: the step stays 0")


def _counts_nothing(call: Call) -> bool:
    given = call.argument("global_step", 1)
    if call.is_open:
        return False
    return given is None or call.source.constant(given, call.scope) is None


_RUNS_UPDATES = ("UPDATE_OPS", "optimize_loss", "create_train_op", "get_updates_for", ".updates")
_AROUND = (
    "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)): around minimize"
)
_TRAINING = "Give training=(mode == tf.estimator.ModeKeys.TRAIN), and put "


def update_ops(source: Source, context: Context) -> Iterator[Hit]:
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


_METRICS = ("precision", "recall", "f1", "fbeta")
_FLAGS = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.", "absl.flags.FLAGS.")


def weights_of_one_row(source: Source, context: Context) -> Iterator[Hit]:
    del context
    for call in source.calls:
        if call.last not in _METRICS or "tf_metrics." not in (call.name or ""):
            continue
        weights = source.call(call.argument("weights", 4), call.scope)
        if weights is None or not is_tf(weights.name, "sequence_mask"):
            continue
        if _is_one_number(weights):
            yield Hit(call.node, f"the weights of {call.last} are those of one row of the batch")


def _is_one_number(mask: Call) -> bool:
    """True if a sequence_mask is made of one length: of a number or a flag."""
    length = mask.argument("lengths", 0)
    if length is None:
        return False
    if isinstance(mask.source.constant(length, mask.scope), int):
        return True
    return (mask.source.name(length, mask.scope) or "").startswith(_FLAGS)


_OWN = {
    "train",
    "evaluate",
    "predict",
    "export_saved_model",
    "export_savedmodel",
    "get_variable_names",
    "get_variable_value",
    "latest_checkpoint",
    "eval_dir",
}
# TF 1.15 let a class of this name override them: such a program brings a copy of TensorFlow's own.
_A_COPY = "Import TPUEstimator from tf.contrib.tpu or tf.estimator.tpu in the place of this copy."


def overridden_method(source: Source, context: Context) -> Iterator[Hit]:
    if "_assert_members_are_not_overridden" in source.text:
        return  # it switches the refusal off
    for node, scope in source.classes:
        around = scope_around(scope)
        if not any(is_tf(source.name(base, around), "Estimator") for base in node.bases):
            continue
        if any(".learn." in (source.name(base, around) or "") for base in node.bases):
            continue
        for item in node.body:
            if isinstance(item, Function) and item.name in _OWN:
                fix = _A_COPY if node.name == "TPUEstimator" else None
                yield Hit(item, f"{node.name} overrides Estimator.{item.name}", fix=fix)


_INSIDE = (
    "For cores and replicas use the optimizer inside of it: replicas in step take the same means."
)
# The first tokens come by the optimizer's hook, or by one of the program that does its work.
_FILLS = {"make_session_run_hook", "get_init_tokens_op"}


def parameter_servers(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if call.name != "tf.train.SyncReplicasOptimizer":
            continue
        # A program with Sessions of its own starts its own servers.
        own = any(is_tf(c.name, "Server", "MonitoredTrainingSession") for c in source.calls)
        project = context.project
        if source not in project.estimator_sources or own:
            message = f"{call.name} gathers gradients in queues"
            yield Hit(call.node, message, Severity.INFO, _INSIDE)
        elif not any(c.last in _FILLS for other in project.sources for c in other.calls):
            message = f"{call.name} has no hook: its steps would wait for ever, so it is refused"
            yield Hit(call.node, message)
        elif any(
            _asks_for_replicas(c) for other in project.imports.together(source) for c in other.calls
        ):
            message = f"{call.name} is refused with train_distribute and jit_compile"
            yield Hit(call.node, message, fix=_INSIDE)
        else:
            message = f"{call.name} trains in one process, or with parameter servers in TF_CONFIG"
            yield Hit(call.node, message, Severity.INFO, _INSIDE)


def _asks_for_replicas(call: Call) -> bool:
    """True if a call asks for replicas, or for compiled steps."""
    given = {
        k.arg for k in call.node.keywords if getattr(k.value, "value", "?") not in (None, False)
    }
    return "train_distribute" in given or (
        call.last == "TrainingOptions" and "jit_compile" in given
    )
