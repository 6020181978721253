"""Canned Estimators from the arguments of their constructors.

A canned class has the signature that programs know, and one statement: it hands its arguments on,
by name, with the head that it has and the model_fn that goes with it.

class DNNClassifier(Estimator):
    def __init__(self, hidden_units, feature_columns, model_dir=None, n_classes=2, ...):
        super().__init__(*_estimator(locals(), construction.classifier_v1, _model_fn))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from estimator2strategy.estimator.heads import RegressionHead, v1
from estimator2strategy.estimator.heads.classification import binary_or_multi_class_head
from estimator2strategy.estimator.specs import EstimatorSpec

Arguments: TypeAlias = Mapping[str, Any]  # of a constructor, by name
ModelFn: TypeAlias = Callable[..., EstimatorSpec]


def classifier_v1(given: Arguments) -> Any:
    """The head of a classifier of TF 1."""
    return v1.binary_or_multi_class_head(**_classes(given))


def classifier_v2(given: Arguments) -> Any:
    """The head of a classifier of TF 2."""
    return binary_or_multi_class_head(**_classes(given))


def regressor_v1(given: Arguments) -> Any:
    """The head of a regressor of TF 1."""
    return v1.regression_head(**_values(given))


def regressor_v2(given: Arguments) -> Any:
    """The head of a regressor of TF 2."""
    return RegressionHead(**_values(given))


def given_head(given: Arguments) -> Any:
    """The head that the program chose."""
    return given["head"]


def estimator_arguments(given: Arguments, model_fn: ModelFn) -> tuple[Any, ...]:
    """The arguments of `Estimator`, in its order, from those of a canned class."""
    return model_fn, given["model_dir"], given["config"], None, given.get("warm_start_from")


def _classes(given: Arguments) -> dict[str, Any]:
    names = ("n_classes", "weight_column", "label_vocabulary", "loss_reduction")
    return {name: given[name] for name in names}


def _values(given: Arguments) -> dict[str, Any]:
    return {name: given[name] for name in ("label_dimension", "weight_column", "loss_reduction")}
