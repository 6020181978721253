"""Canned Estimators from the arguments of their constructors.

The arguments of all of them stand in signatures.tsv, under the names that TensorFlow gave the
classes. `canned` makes the constructor of one. It hands the arguments on, by name, with the head
and the model_fn that go with the class.

    @canned("tf.estimator.BaselineEstimator", estimator_arguments, model_fn)
    class BaselineEstimatorV2(CannedEstimator): ...
"""

from __future__ import annotations

import ast
import csv
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import ArgumentRule, checked
from estimator2strategy.estimator.canned_rules import CANNED_RULES
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.heads import RegressionHead, v1
from estimator2strategy.estimator.heads.classification import binary_or_multi_class_head
from estimator2strategy.estimator.specs import EstimatorSpec

Arguments: TypeAlias = Mapping[str, Any]  # of a constructor, by name
ModelFn: TypeAlias = Callable[..., EstimatorSpec]
T = TypeVar("T")

USE_DEFAULT = object()  # of arguments for which None has a meaning
_TABLE = Path(__file__).with_name("signatures.tsv")
_NAMED = {"relu": tf.nn.relu, "USE_DEFAULT": USE_DEFAULT}  # defaults that are no literals


class CannedEstimator(Estimator):
    """The base of the classes that `canned` completes; a type checker lets all arguments pass."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)


def canned(
    name: str,
    parts: Callable[..., tuple[Any, ...]],
    *also: Any,
    rules: Mapping[str, ArgumentRule] = CANNED_RULES,
) -> Callable[[type[T]], type[T]]:
    """Makes a class decorator that adds the constructor of a canned Estimator.

    Args:
        name: The class as TensorFlow named it: a row of signatures.tsv.
        parts: Makes the arguments of the base class's constructor from those given, by name.
        also: Further arguments of `parts`.
        rules: The rules for the arguments.
    """

    def decorator(cls: type[T]) -> type[T]:
        signature = _signatures()[name]

        def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(self, *args, **kwargs)
            given.apply_defaults()
            super(cls, self).__init__(*parts(given.arguments, *also))

        constructor.__name__ = "__init__"
        constructor.__qualname__ = f"{cls.__qualname__}.__init__"
        constructor.__module__ = cls.__module__
        constructor.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = checked(rules)(constructor)  # type: ignore[method-assign]
        return cls

    return decorator


@functools.cache
def _signatures() -> dict[str, inspect.Signature]:
    """The signatures of the constructors by the names of the classes."""
    with _TABLE.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["class"]: _signature(row["arguments"]) for row in rows}


def _signature(arguments: str) -> inspect.Signature:
    """From `hidden_units, model_dir=None, activation_fn=relu`."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for argument in arguments.split(", "):
        name, has_default, default = argument.partition("=")
        value = _default(default) if has_default else inspect.Parameter.empty
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(name, kind, default=value))
    return inspect.Signature(parameters)


def _default(text: str) -> Any:
    return _NAMED[text] if text in _NAMED else ast.literal_eval(text)


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
