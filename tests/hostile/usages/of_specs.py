"""Wrong usages of `EstimatorSpec` and `TPUEstimatorSpec`."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy import estimator
from tests.hostile.usages.programs import EVAL, PREDICT, TRAIN, in_graph, scalar
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1
Spec, TpuSpec = estimator.EstimatorSpec, estimator.tpu.TPUEstimatorSpec


def metric_fn(labels, logits):
    return {"m": tf1.metrics.mean_squared_error(labels, logits)}


def train(**fields):
    """A spec for training, with these fields wrong."""
    return Spec(TRAIN, **{"loss": scalar(), "train_op": tf.no_op(), **fields})


def evaluated(**fields):
    return TpuSpec(EVAL, loss=scalar(), **fields)


ESTIMATOR_SPEC = (
    Usage("mode is a typo", "mode", lambda d: in_graph(lambda: Spec("training", loss=scalar()))),
    Usage("mode is None", "mode", lambda d: in_graph(lambda: Spec(None, loss=scalar()))),
    Usage("no loss to train", "loss", lambda d: in_graph(lambda: Spec(TRAIN, train_op=tf.no_op()))),
    Usage("no train_op", "train_op", lambda d: in_graph(lambda: Spec(TRAIN, loss=scalar()))),
    Usage("no loss to evaluate", "loss", lambda d: in_graph(lambda: Spec(EVAL))),
    Usage("no predictions", "predictions", lambda d: in_graph(lambda: Spec(PREDICT))),
    Usage("loss is a number", "loss", lambda d: in_graph(lambda: Spec(EVAL, loss=1.0))),
    Usage("loss is a vector", "loss", lambda d: in_graph(lambda: Spec(EVAL, loss=tf.ones([3])))),
    Usage("loss is a list", "loss", lambda d: in_graph(lambda: Spec(EVAL, loss=[scalar()]))),
    Usage(
        "loss of another graph",
        "loss",
        lambda d: in_graph(lambda: Spec(EVAL, loss=in_graph(scalar))),
    ),
    Usage(
        "train_op is a function", "train_op", lambda d: in_graph(lambda: train(train_op=tf.no_op))
    ),
    Usage(
        "train_op is an optimizer",
        "train_op",
        lambda d: in_graph(lambda: train(train_op=tf1.train.AdamOptimizer())),
    ),
    Usage(
        "train_op is a list", "train_op", lambda d: in_graph(lambda: train(train_op=[tf.no_op()]))
    ),
    Usage(
        "predictions is a list",
        "predictions",
        lambda d: in_graph(lambda: Spec(PREDICT, [scalar()])),
    ),
    Usage(
        "a prediction is a number",
        "predictions",
        lambda d: in_graph(lambda: Spec(PREDICT, {"y": 3})),
    ),
    Usage(
        "a prediction is None",
        "predictions",
        lambda d: in_graph(lambda: Spec(PREDICT, {"y": scalar(), "p": None})),
    ),
    Usage(
        "a prediction of another graph",
        "predictions",
        lambda d: in_graph(lambda: Spec(PREDICT, {"y": in_graph(scalar)})),
    ),
    Usage(
        "eval_metric_ops is a list",
        "eval_metric_ops",
        lambda d: in_graph(lambda: Spec(EVAL, loss=scalar(), eval_metric_ops=["a"])),
    ),
    Usage(
        "a metric is a tensor",
        "eval_metric_ops",
        lambda d: in_graph(lambda: Spec(EVAL, loss=scalar(), eval_metric_ops={"m": scalar()})),
    ),
    Usage(
        "a metric is a list",
        "eval_metric_ops",
        lambda d: in_graph(
            lambda: Spec(EVAL, loss=scalar(), eval_metric_ops={"m": [scalar(), tf.no_op()]})
        ),
    ),
    Usage(
        "a metric has three parts",
        "eval_metric_ops",
        lambda d: in_graph(
            lambda: Spec(EVAL, loss=scalar(), eval_metric_ops={"m": (scalar(), scalar(), 1)})
        ),
    ),
    Usage(
        "a metric of another graph",
        "eval_metric_ops",
        lambda d: in_graph(
            lambda: Spec(
                EVAL, loss=scalar(), eval_metric_ops={"m": in_graph(lambda: tf1.metrics.mean(1.0))}
            )
        ),
    ),
    Usage(
        "a metric that was not updated",
        "eval_metric_ops",
        lambda d: in_graph(
            lambda: Spec(EVAL, loss=scalar(), eval_metric_ops={"m": tf.keras.metrics.Mean()})
        ),
    ),
    Usage(
        "export_outputs is a list",
        "export_outputs",
        lambda d: in_graph(lambda: Spec(PREDICT, scalar(), export_outputs=[1])),
    ),
    Usage(
        "an export output is a tensor",
        "export_outputs",
        lambda d: in_graph(lambda: Spec(PREDICT, scalar(), export_outputs={"y": scalar()})),
    ),
    Usage(
        "training_hooks is a hook",
        "training_hooks",
        lambda d: in_graph(lambda: train(training_hooks=tf1.train.StopAtStepHook(1))),
    ),
    Usage(
        "training_hooks has a string",
        "training_hooks",
        lambda d: in_graph(lambda: train(training_hooks=["a"])),
    ),
    Usage(
        "training_chief_hooks has a number",
        "training_chief_hooks",
        lambda d: in_graph(lambda: train(training_chief_hooks=[3])),
    ),
    Usage(
        "evaluation_hooks is a number",
        "evaluation_hooks",
        lambda d: in_graph(lambda: train(evaluation_hooks=3)),
    ),
    Usage(
        "prediction_hooks has None",
        "prediction_hooks",
        lambda d: in_graph(lambda: train(prediction_hooks=[None])),
    ),
    Usage("scaffold is a Saver", "scaffold", lambda d: in_graph(lambda: train(scaffold="saver"))),
    Usage(
        "scaffold is the class",
        "scaffold",
        lambda d: in_graph(lambda: train(scaffold=tf1.train.Scaffold)),
    ),
    Usage(
        "a keyword that is misspelt",
        "eval_metrics",
        lambda d: in_graph(lambda: Spec(EVAL, loss=scalar(), eval_metrics={})),
    ),
    Usage(
        "_replace: another mode",
        "mode",
        lambda d: in_graph(lambda: Spec(EVAL, loss=scalar())._replace(mode=TRAIN)),
    ),
    Usage(
        "_replace: no such field",
        "losses",
        lambda d: in_graph(lambda: Spec(EVAL, loss=scalar())._replace(losses=1)),
    ),
    Usage(
        "loss of shape [1]",
        "loss",
        lambda d: in_graph(lambda: Spec(EVAL, loss=tf.ones([1]))),
        taken="the original makes it a scalar",
    ),
)

TPU_SPEC = (
    Usage("host_call is a number", "host_call", lambda d: in_graph(lambda: evaluated(host_call=3))),
    Usage(
        "host_call is a function",
        "host_call",
        lambda d: in_graph(lambda: evaluated(host_call=metric_fn)),
    ),
    Usage(
        "host_call has three parts",
        "host_call",
        lambda d: in_graph(lambda: evaluated(host_call=(metric_fn, [], {}))),
    ),
    Usage(
        "host_call cannot be called",
        "host_call",
        lambda d: in_graph(lambda: evaluated(host_call=("metric_fn", []))),
    ),
    Usage(
        "host_call's tensors are one tensor",
        "host_call",
        lambda d: in_graph(lambda: evaluated(host_call=(metric_fn, scalar()))),
    ),
    Usage(
        "host_call has a tensor too few",
        "host_call",
        lambda d: in_graph(lambda: evaluated(host_call=(metric_fn, [scalar()]))),
    ),
    Usage(
        "eval_metrics is a dict",
        "eval_metrics",
        lambda d: in_graph(lambda: evaluated(eval_metrics={"m": 1})),
    ),
    Usage(
        "eval_metrics names others",
        "eval_metrics",
        lambda d: in_graph(lambda: evaluated(eval_metrics=(metric_fn, {"labels": 1, "x": 2}))),
    ),
    Usage(
        "eval_metrics is a function",
        "eval_metrics",
        lambda d: in_graph(lambda: evaluated(eval_metrics=metric_fn)),
    ),
    Usage(
        "scaffold_fn is a Scaffold",
        "scaffold_fn",
        lambda d: in_graph(lambda: evaluated(scaffold_fn=tf1.train.Scaffold())),
    ),
    Usage(
        "training_hooks is a number",
        "training_hooks",
        lambda d: in_graph(lambda: evaluated(training_hooks=3)),
    ),
    Usage("mode is a typo", "mode", lambda d: in_graph(lambda: TpuSpec("test", loss=scalar()))),
    Usage("no loss", "loss", lambda d: in_graph(lambda: TpuSpec(EVAL))),
    Usage(
        "an Estimator's eval_metric_ops",
        "eval_metric_ops",
        lambda d: in_graph(lambda: evaluated(eval_metric_ops={})),
    ),
)

TABLES = {"`EstimatorSpec`": ESTIMATOR_SPEC, "`TPUEstimatorSpec`": TPU_SPEC}
