"""Finds the replacement, in TensorFlow 2 itself, of a name of TensorFlow 1.x.

The tables of the facade have one for most names. This module adds the many names of `tf.estimator`,
and follows advice that names something that is gone, too.
"""

from __future__ import annotations

import functools
import re

from estimator2strategy.tools.check import tables

_ROOTS = (
    "tf.estimator.",
    "tf.contrib.estimator.",
    "tf.contrib.learn.",
    "tf.contrib.tpu.",
    "tf.python.estimator.",
    "tf.python.tpu.",
)
# What to use -> the names of `_ROOTS`, by their last part, whose place it takes.
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
_BY_NAME = {name: work for work, names in _BY_WORK.items() for name in names.split()}
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
    last = name.rpartition(".")[2]
    if last in _BY_NAME and f"{name}.".startswith(_ROOTS):
        return _BY_NAME[last]
    gone = next((found for found in _NAME.findall(advice) if is_gone(found)), None)
    if gone is None:
        return advice
    if gone == name:
        return ""
    row = tables.served(gone)
    return home(gone, row.advice if row is not None else "")


def is_gone(name: str) -> bool:
    """True if TensorFlow 2 does not have this public name."""
    if name.startswith(("tf.estimator", "tf.contrib")):
        return True
    return tables.exists(name, "v2") is False
