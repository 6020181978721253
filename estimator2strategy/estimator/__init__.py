"""Drop-in for `tf.estimator`: `from estimator2strategy import estimator`."""

# These are TensorFlow's own; `tf.estimator` had them under its name too.
from tensorflow.compat.v1.train import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
    VocabInfo,
)

from estimator2strategy.engine.libraries import served as _served
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime.devices import emulate_tpu_if_asked
from estimator2strategy.engine.runtime.liveness import watch as watch_other_processes
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.estimator import experimental, export, inputs, tpu
from estimator2strategy.estimator.canned.baseline import (
    BaselineClassifier,
    BaselineClassifierV2,
    BaselineEstimator,
    BaselineEstimatorV2,
    BaselineRegressor,
    BaselineRegressorV2,
)
from estimator2strategy.estimator.canned.combined import (
    DNNLinearCombinedClassifier,
    DNNLinearCombinedClassifierV2,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedEstimatorV2,
    DNNLinearCombinedRegressor,
    DNNLinearCombinedRegressorV2,
)
from estimator2strategy.estimator.canned.dnn import (
    DNNClassifier,
    DNNClassifierV2,
    DNNEstimator,
    DNNEstimatorV2,
    DNNRegressor,
    DNNRegressorV2,
)
from estimator2strategy.estimator.canned.linear import (
    LinearClassifier,
    LinearClassifierV2,
    LinearEstimator,
    LinearEstimatorV2,
    LinearRegressor,
    LinearRegressorV2,
)
from estimator2strategy.estimator.canned.parsing import (
    classifier_parse_example_spec,
    regressor_parse_example_spec,
)
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.exporter import (
    BestExporter,
    Exporter,
    FinalExporter,
    LatestExporter,
)
from estimator2strategy.estimator.extenders import add_metrics
from estimator2strategy.estimator.heads import (
    BinaryClassHead,
    Head,
    LogisticRegressionHead,
    MultiClassHead,
    MultiHead,
    MultiLabelHead,
    PoissonRegressionHead,
    RegressionHead,
)
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.estimator.tf_config import warn_of_form
from estimator2strategy.estimator.train_evaluate import train_and_evaluate
from estimator2strategy.estimator.training_specs import EvalSpec, TrainSpec
from estimator2strategy.estimator.warm_start import WarmStartSettings

__all__ = [
    "BaselineClassifier",
    "BaselineClassifierV2",
    "BaselineEstimator",
    "BaselineEstimatorV2",
    "BaselineRegressor",
    "BaselineRegressorV2",
    "BestExporter",
    "BinaryClassHead",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "DNNClassifier",
    "DNNClassifierV2",
    "DNNEstimator",
    "DNNEstimatorV2",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedClassifierV2",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedEstimatorV2",
    "DNNLinearCombinedRegressor",
    "DNNLinearCombinedRegressorV2",
    "DNNRegressor",
    "DNNRegressorV2",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "Head",
    "LatestExporter",
    "LinearClassifier",
    "LinearClassifierV2",
    "LinearEstimator",
    "LinearEstimatorV2",
    "LinearRegressor",
    "LinearRegressorV2",
    "LoggingTensorHook",
    "LogisticRegressionHead",
    "ModeKeys",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "PoissonRegressionHead",
    "Precision",
    "ProfilerHook",
    "RegressionHead",
    "RunConfig",
    "Runtime",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "TrainingOptions",
    "VocabInfo",
    "WarmStartSettings",
    "add_metrics",
    "classifier_parse_example_spec",
    "experimental",
    "export",
    "inputs",
    "regressor_parse_example_spec",
    "tpu",
    "train_and_evaluate",
]

emulate_tpu_if_asked()
_served.install()
# A strategy that spans processes waits for the others as soon as it is made.
warn_of_form()
watch_other_processes()
