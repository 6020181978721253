"""Arguments that a class of tf.estimator does not have."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf

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


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, *_ARGUMENTS) or ".learn." in call.name:
            continue
        known = _ARGUMENTS[call.name.rpartition(".")[2]].split()
        for keyword in call.node.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                last = call.name.rpartition(".")[2]
                fix = _INSTEAD.get((last, keyword.arg), f"It takes {', '.join(known)}.")
                yield Hit(keyword.value, f"{last} has no argument {keyword.arg!r}", fix=fix)
