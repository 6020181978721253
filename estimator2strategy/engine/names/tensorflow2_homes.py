"""Finds the replacement, in TensorFlow 2 itself, of a name of TensorFlow 1.x.

The tables of the facade have one for most names. This module adds the many names of `tf.estimator`,
and follows advice that names something that is gone, too.
"""

from __future__ import annotations

import functools
import re

from estimator2strategy.engine.names import tables

_ROOTS = (
    "tf.estimator.",
    "tf.contrib.estimator.",
    "tf.contrib.learn.",
    "tf.contrib.tpu.",
    "tf.python.estimator.",
    "tf.python.tpu.",
)
# Replacement -> the names of `_ROOTS` that it replaces, by their last part.
_BY_WORK = {
    "keras.Model: compile(steps_per_execution=...), fit, evaluate, predict": (
        "BaseEstimator Estimator EstimatorV2 SKCompat TPUEstimator estimator learn"
    ),
    "keras.Model.fit(validation_data=...), and the callback BackupAndRestore": (
        "Experiment InMemoryEvaluatorHook experiment learn_runner run train_and_evaluate tune"
    ),
    "the arguments epochs, steps_per_epoch, validation_freq of keras.Model.fit": (
        "EvalSpec TrainSpec"
    ),
    "the optimizer, loss and metrics of keras.Model.compile": (
        "EstimatorSpec ModelFnOps TPUEstimatorSpec model_fn"
    ),
    "the argument `training` of a layer's call": "ModeKeys",
    "the callbacks ModelCheckpoint, BackupAndRestore and TensorBoard; a tf.distribute strategy": (
        "RunConfig run_config"
    ),
    "tf.distribute.TPUStrategy and compile(steps_per_execution=...)": "TPUConfig tpu_config",
    "tf.distribute.TPUStrategy": "tpu TPUContext tpu_context tpu_estimator",
    "strategy.distribute_datasets_from_function": "InputPipelineConfig",
    "keras.Model.export": (
        "BestExporter ClassificationOutput EvalOutput ExportOutput ExportStrategy Exporter "
        "FinalExporter InputFnOps LatestExporter PredictOutput RegressionOutput "
        "ServingInputReceiver SupervisedInputReceiver TensorServingInputReceiver "
        "build_parsing_serving_input_receiver_fn build_raw_serving_input_receiver_fn "
        "build_raw_supervised_input_receiver_fn export export_estimator_savedmodel exporter "
        "input_fn_utils make_export_strategy saved_model_export_utils"
    ),
    "tf.data.Dataset.from_tensor_slices": "inputs numpy_input_fn pandas_input_fn",
    "keras.Model.load_weights": "WarmStartSettings VocabInfo",
    "tf.keras.callbacks.EarlyStopping": (
        "make_early_stopping_hook make_stop_at_checkpoint_step_hook stop_if_higher_hook "
        "stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook"
    ),
    "tf.keras.losses and tf.keras.metrics": (
        "BinaryClassHead Head LogisticRegressionHead MetricKeys MetricSpec MultiClassHead "
        "MultiHead MultiLabelHead PoissonRegressionHead PredictionKey PredictionKeys ProblemType "
        "RegressionHead add_metrics binary_classification_head head logistic_regression_head "
        "multi_class_head multi_head multi_label_head poisson_regression_head regression_head"
    ),
    "tf.keras, with tf.keras.layers.Normalization, StringLookup, Hashing, Embedding on columns": (
        "BaselineClassifier BaselineEstimator BaselineRegressor DNNClassifier DNNEstimator "
        "DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor "
        "DNNRegressor LinearClassifier LinearEstimator LinearRegressor"
    ),
    "tf.keras.callbacks.TerminateOnNaN": "NanLossDuringTrainingError NanTensorHook",
    "tf.keras.callbacks.Callback": (
        "CheckpointSaverListener SecondOrStepTimer SessionRunArgs SessionRunContext "
        "SessionRunValues"
    ),
    "tf.distribute.TPUStrategy and tf.tpu.experimental.DeviceAssignment": (
        "DeviceAssignment device_assignment"
    ),
    "tf.tpu.experimental.Topology": "Topology",
    "tf.distribute.get_replica_context().all_reduce": "cross_replica_sum CrossShardOptimizer",
    "tf.keras.callbacks.ModelCheckpoint": "AsyncCheckpointSaverHook",
}
# The same for the modules below, whose rows say one thing for all that a module has.
_LIBRARIES = ("tf.contrib.slim.", "tf.contrib.layers.", "tf.contrib.framework.", "tf.contrib.crf.")
_OF_LIBRARIES = {
    "functools.partial": (
        "add_arg_scope arg_scope arg_scope_lib arg_scoped_arguments current_arg_scope has_arg_scope"
    ),
    "optimizer.iterations": (
        "assert_global_step assert_or_get_global_step create_global_step get_global_step "
        "get_or_create_global_step"
    ),
    "tf.Variable; the `variables` of a tf.Module or a layer": (
        "add_model_variable filter_variables get_local_variables get_model_variables "
        "get_trainable_variables get_unique_variable get_variables get_variable_collections "
        "get_variables_by_name get_variables_by_suffix global_variable local_variable "
        "model_variable variable"
    ),
    "tf.train.Checkpoint": (
        "assign_from_checkpoint assign_from_checkpoint_fn get_variables_to_restore "
        "init_from_checkpoint"
    ),
    "tf.keras.initializers": "initializers zero_initializer",
    "tf.keras.initializers.VarianceScaling": "variance_scaling_initializer",
    "tf.keras.initializers.GlorotUniform": "xavier_initializer xavier_initializer_conv2d",
    "tf.keras.regularizers": (
        "apply_regularization l1_l2_regularizer l1_regularizer regularizers sum_regularizer"
    ),
    "tf.keras.regularizers.L2(scale / 2)": "l2_regularizer",
    "tf.keras.losses": "losses",
    "tf.keras.metrics": "evaluation metrics",
    "keras.Model.fit, or a loop in tf.function": "learning",
    "tf.keras.optimizers": "OPTIMIZER_CLS_NAMES optimizers",
    "a tf.keras optimizer and global_clipnorm": "adaptive_clipping_fn optimize_loss",
    "tf.summary": (
        "OPTIMIZER_SUMMARIES summaries summarize_activation summarize_activations "
        "summarize_collection summarize_tensor summarize_tensors"
    ),
    "tf.data": (
        "data data_decoder data_provider dataset dataset_data_provider parallel_reader "
        "prefetch_queue tfexample_decoder"
    ),
    "tf.keras.applications": (
        "inception_v3 resnet_v1 resnet_v2 vgg"
    ),
    "tf.sparse.from_dense": "dense_to_sparse",
    "tf.one_hot": "one_hot_encoding",
    "tf.recompute_grad": "recompute_grad",
    "tf.nn": "bias_add elu relu relu6 softmax",
    "tf.nn.safe_embedding_lookup_sparse": "safe_embedding_lookup_sparse",
    "a for loop over the layers, or tf.keras.Sequential": "repeat stack",
    "Python's `if`, or tf.cond": "smart_case smart_cond static_cond",
    "tf.get_static_value": "constant_value smart_constant_value",
    "the functions as they are, copied": (
        "crf_binary_score crf_decode crf_log_likelihood crf_log_norm crf_multitag_sequence_score "
        "crf_sequence_score crf_unary_score viterbi_decode CrfDecodeBackwardRnnCell "
        "CrfDecodeForwardRnnCell CrfForwardRnnCell"
    ),
}  # fmt: skip
# The rows of a whole module say these.
_FOR_ALL = {
    "",
    "a tf.distribute strategy and a loop",
    "tf.Module, tf.train.Checkpoint",
    "tf.distribute.TPUStrategy; see contract.md",
    "tf.keras.layers",
}
_KINDS = ((_ROOTS, _BY_WORK), (_LIBRARIES, _OF_LIBRARIES))
_BY_NAME = {
    roots: {name: work for work, names in works.items() for name in names.split()}
    for roots, works in _KINDS
}
_NAME = re.compile(r"\btf(?:\.\w+)+")


@functools.cache
def home(name: str, advice: str) -> str:
    """Returns advice on the replacement of a name in TensorFlow 2.

    Args:
        name: A name of TensorFlow 1.x, "tf.estimator.RunConfig".
        advice: What the facade's table says of it; "" if nothing.

    Returns:
        Words that name nothing that is gone itself; "" where nothing is known.
    """
    written = _written(name, advice)
    if written:
        return written
    if name.startswith("tf.keras.") and advice == "tf.keras":
        return _class_of(name)
    gone = next((found for found in _NAME.findall(advice) if is_gone(found)), None)
    if gone is None:
        return advice
    if gone == name:
        return ""
    row = tables.served(gone)
    return home(gone, row.advice if row is not None else "")


def _written(name: str, advice: str) -> str:
    """The advice on a name in the tables above, or on the class or module that it is in."""
    owner, _, last = name.rpartition(".")
    for roots, works in _BY_NAME.items():
        if not f"{name}.".startswith(roots):
            continue
        if last in works:
            return works[last]
        if advice in _FOR_ALL:
            return works.get(owner.rpartition(".")[2]) or _moved(owner, last)
    return ""


def _moved(owner: str, last: str) -> str:
    """The place of what went from `tf.contrib` to TensorFlow, or its place as one of layers."""
    if owner.startswith("tf.contrib.framework"):
        homes = ("tf", "tf.nest") if owner.endswith("nest") else ("tf", "tf.train")
        there = [f"{home}.{last}" for home in homes if tables.exists(f"{home}.{last}", "v2")]
        return there[-1] if there else ""
    row = tables.served(f"tf.contrib.layers.{last}") if owner == "tf.contrib.slim" else None
    return row.advice if row is not None else ""


def _class_of(name: str) -> str:
    """The class of Keras that does what a function did: `MeanSquaredError`."""
    owner, _, last = name.rpartition(".")
    there = f"{owner}.{''.join(word.capitalize() for word in last.split('_'))}"
    return there if tables.exists(there, "v2") else ""


def is_gone(name: str) -> bool:
    """True if TensorFlow 2 does not have this public name."""
    if name.startswith(("tf.estimator", "tf.contrib")):
        return True
    return tables.exists(name, "v2") is False
