"""Host functions that capture what only the cores have."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import captured_tensors
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import Function

_FIELDS = ("host_call", "eval_metrics")


@rule(
    "E2S210",
    "host-function-captures",
    Severity.ERROR,
    title="A host_call or metric_fn that captures a tensor of model_fn",
    why="It runs on the host, once for all cores, on the tensors that are sent to it by the "
    "second half of the pair. A tensor that it captures belongs to one core; a TPU cannot "
    "give it out, and this package refuses it with its name and line.",
    fix="Give the tensor in the list, and take it as an argument.",
    guide="metrics.md",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    predictions = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, predictions)

    def metric_fn(labels):
        return {"error": tf.metrics.mean_absolute_error(labels, predictions)}

    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels]))
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    predictions = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, predictions)

    def metric_fn(labels, predictions):
        return {"error": tf.metrics.mean_absolute_error(labels, predictions)}

    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, eval_metrics=(metric_fn, [labels, predictions]))
""",
)
def find(source, context):
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        for function in _host_functions(model):
            for name, node in captured_tensors(function, model.node, source).items():
                what = getattr(function, "name", "the lambda")
                yield Hit(node, f"{what} runs on the host, and captures {name} of model_fn")


def _host_functions(model):
    """The functions in the pairs that the specs are given."""
    scope = model.source.scopes[model.node]
    for spec in model.specs:
        for field in _FIELDS:
            pair = spec.argument(field)
            if pair is None:
                continue
            pairs = [pair]
            if isinstance(pair, ast.Name):
                pairs = [v for v in scope.bindings.get(pair.id, ()) if isinstance(v, ast.expr)]
            for value in pairs:
                if isinstance(value, ast.Tuple) and value.elts:
                    yield from _functions(value.elts[0], scope)


def _functions(node, scope):
    if isinstance(node, ast.Lambda):
        yield node
    elif isinstance(node, ast.Name):
        for value in scope.bindings.get(node.id, ()):
            if isinstance(value, (ast.Lambda, Function)):
                yield value
