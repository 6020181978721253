"""`add_metrics`: an Estimator like another one, with more metrics.

Example:

    def my_auc(labels, predictions):
        return {"my_auc": tf.compat.v1.metrics.auc(labels, predictions["probability"])}

    estimator = add_metrics(estimator, my_auc)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.contract_rules import HOOK_RULES
from estimator2strategy.estimator.estimator import Estimator

_METRIC_FN_ARGUMENTS = frozenset({"features", "labels", "predictions", "config"})


@checked(HOOK_RULES)
def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """Returns an Estimator of the same model and folder that also evaluates `metric_fn`.

    Args:
        estimator: Any Estimator; it stays as it is.
        metric_fn: Takes any of `features`, `labels`, `predictions` and `config`, and returns what
            `EstimatorSpec` takes as `eval_metric_ops`. Its metrics win over those of the model of
            the same name.

    Raises:
        ValueError: metric_fn wants other arguments.

    Source: `tf.estimator.add_metrics`, tensorflow_estimator 2.15 extenders.py.
    """
    names = argument_names(metric_fn)
    unknown = sorted(set(names) - _METRIC_FN_ARGUMENTS)
    if unknown:
        raise ValueError(
            f"metric_fn {location(metric_fn)} has following not expected args: {unknown}. It may "
            f"take {sorted(_METRIC_FN_ARGUMENTS)}."
        )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        available = {
            "features": features,
            "labels": labels,
            "predictions": spec.predictions,
            "config": config,
        }
        added = metric_fn(**{name: available[name] for name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **added})

    return Estimator(
        model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator.e2s_parts.warm_start_from,
    )
