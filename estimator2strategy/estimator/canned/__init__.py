"""Canned Estimators: networks that need no model_fn.

Those of TF 1 have the names of `tf.estimator`; those of TF 2, which differed, end in V2.
"""

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

__all__ = [
    "BaselineClassifier",
    "BaselineClassifierV2",
    "BaselineEstimator",
    "BaselineEstimatorV2",
    "BaselineRegressor",
    "BaselineRegressorV2",
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
    "LinearClassifier",
    "LinearClassifierV2",
    "LinearEstimator",
    "LinearEstimatorV2",
    "LinearRegressor",
    "LinearRegressorV2",
    "classifier_parse_example_spec",
    "regressor_parse_example_spec",
]
