"""Wrong usages of `train_and_evaluate`, its specs, exporters and hooks."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.estimator import EvalSpec, TrainSpec, train_and_evaluate
from tests.hostile.usages.programs import dataset, finite, input_fn, model, serving, trained
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1
experimental = estimator.experimental

SPECS = (
    Usage("TrainSpec: input_fn is None", "input_fn", lambda d: TrainSpec(None)),
    Usage("TrainSpec: input_fn was called", "input_fn", lambda d: TrainSpec(dataset())),
    Usage("TrainSpec: max_steps is a string", "max_steps", lambda d: TrainSpec(input_fn, "10")),
    Usage("TrainSpec: max_steps is 0", "max_steps", lambda d: TrainSpec(input_fn, 0)),
    Usage(
        "TrainSpec: hooks is a hook",
        "hooks",
        lambda d: TrainSpec(input_fn, 1, tf1.train.StopAtStepHook(1)),
    ),
    Usage("TrainSpec: hooks has a string", "hooks", lambda d: TrainSpec(input_fn, 1, ["stop"])),
    Usage(
        "TrainSpec: saving_listeners has a hook",
        "saving_listeners",
        lambda d: TrainSpec(input_fn, 1, saving_listeners=[tf1.train.StopAtStepHook(1)]),
    ),
    Usage(
        "TrainSpec: saving_listeners is a number",
        "saving_listeners",
        lambda d: TrainSpec(input_fn, 1, saving_listeners=3),
    ),
    Usage("TrainSpec: steps of train", "steps", lambda d: TrainSpec(input_fn, steps=10)),
    Usage("EvalSpec: input_fn is a list", "input_fn", lambda d: EvalSpec([1])),
    Usage("EvalSpec: steps is a string", "steps", lambda d: EvalSpec(input_fn, "10")),
    Usage("EvalSpec: steps is negative", "steps", lambda d: EvalSpec(input_fn, -1)),
    Usage("EvalSpec: name is a number", "name", lambda d: EvalSpec(input_fn, name=3)),
    Usage("EvalSpec: hooks is a number", "hooks", lambda d: EvalSpec(input_fn, hooks=3)),
    Usage(
        "EvalSpec: exporters is a function",
        "exporters",
        lambda d: EvalSpec(input_fn, exporters=serving),
    ),
    Usage(
        "EvalSpec: exporters has a string",
        "exporters",
        lambda d: EvalSpec(input_fn, exporters=["best"]),
    ),
    Usage(
        "EvalSpec: exporters of one name",
        "exporters",
        lambda d: EvalSpec(
            input_fn,
            exporters=[
                estimator.LatestExporter("a", serving),
                estimator.FinalExporter("a", serving),
            ],
        ),
    ),
    Usage(
        "EvalSpec: an exporter without a name",
        "exporters",
        lambda d: EvalSpec(input_fn, exporters=estimator.Exporter()),
    ),
    Usage(
        "EvalSpec: start_delay_secs is a string",
        "start_delay_secs",
        lambda d: EvalSpec(input_fn, start_delay_secs="0"),
    ),
    Usage(
        "EvalSpec: start_delay_secs is negative",
        "start_delay_secs",
        lambda d: EvalSpec(input_fn, start_delay_secs=-1),
    ),
    Usage(
        "EvalSpec: throttle_secs is None",
        "throttle_secs",
        lambda d: EvalSpec(input_fn, throttle_secs=None),
    ),
    Usage(
        "EvalSpec: throttle_secs is negative",
        "throttle_secs",
        lambda d: EvalSpec(input_fn, throttle_secs=-1),
    ),
    Usage(
        "EvalSpec: max_steps of TrainSpec", "max_steps", lambda d: EvalSpec(input_fn, max_steps=1)
    ),
)

CALLS = (
    Usage(
        "estimator is a model_fn",
        "estimator",
        lambda d: train_and_evaluate(model, TrainSpec(input_fn, 1), EvalSpec(finite)),
    ),
    Usage(
        "estimator is None",
        "estimator",
        lambda d: train_and_evaluate(None, TrainSpec(input_fn, 1), EvalSpec(finite)),
    ),
    Usage(
        "train_spec is an input_fn",
        "train_spec",
        lambda d: train_and_evaluate(model(d), input_fn, EvalSpec(finite)),
    ),
    Usage(
        "eval_spec is None",
        "eval_spec",
        lambda d: train_and_evaluate(model(d), TrainSpec(input_fn, 1), None),
    ),
    Usage(
        "the specs are exchanged",
        "eval_spec",
        lambda d: train_and_evaluate(model(d), EvalSpec(finite), TrainSpec(input_fn)),
    ),
    Usage(
        "a spec is a dict",
        "train_spec",
        lambda d: train_and_evaluate(model(d), {"max_steps": 1}, EvalSpec(finite)),
    ),
)

EXPORTERS = (
    Usage(
        "name is a number",
        "name",
        lambda d: EvalSpec(input_fn, exporters=estimator.LatestExporter(3, serving)),
    ),
    Usage(
        "name is empty",
        "name",
        lambda d: EvalSpec(input_fn, exporters=estimator.LatestExporter("", serving)),
    ),
    Usage(
        "exports_to_keep is 0",
        "exports_to_keep",
        lambda d: estimator.LatestExporter("a", serving, exports_to_keep=0),
    ),
    Usage(
        "exports_to_keep is a string",
        "exports_to_keep",
        lambda d: estimator.LatestExporter("a", serving, exports_to_keep="5"),
    ),
    Usage(
        "exports_to_keep is a list",
        "exports_to_keep",
        lambda d: estimator.BestExporter("a", serving, exports_to_keep=[5]),
    ),
    Usage(
        "LatestExporter: the function is None",
        "serving_input_receiver_fn",
        lambda d: estimator.LatestExporter("a", None),
        taken="the original refuses it when it exports, and so it is here",
    ),
    Usage(
        "FinalExporter: the function was called",
        "serving_input_receiver_fn",
        lambda d: estimator.FinalExporter("a", {"x": 1}),
    ),
    Usage(
        "BestExporter: the function is a name",
        "serving_input_receiver_fn",
        lambda d: estimator.BestExporter("a", "serving"),
    ),
    Usage(
        "assets_extra is a list",
        "assets_extra",
        lambda d: estimator.LatestExporter("a", serving, ["a.txt"]),
    ),
    Usage(
        "as_text is 'False'",
        "as_text",
        lambda d: estimator.FinalExporter("a", serving, as_text="False"),
    ),
    Usage(
        "compare_fn is None",
        "compare_fn",
        lambda d: estimator.BestExporter("a", serving, compare_fn=None),
    ),
    Usage(
        "compare_fn is a metric's name",
        "compare_fn",
        lambda d: estimator.BestExporter("a", serving, compare_fn="accuracy"),
    ),
    Usage(
        "compare_fn takes others",
        "compare_fn",
        lambda d: estimator.BestExporter("a", serving, compare_fn=lambda a, b: a < b),
    ),
    Usage(
        "event_file_pattern is a number",
        "event_file_pattern",
        lambda d: estimator.BestExporter("a", serving, 3),
    ),
)

HOOKS = (
    Usage(
        "the estimator is a folder",
        "estimator",
        lambda d: experimental.stop_if_higher_hook(d, "loss", 1.0),
    ),
    Usage(
        "the metric is a number",
        "metric_name",
        lambda d: experimental.stop_if_lower_hook(model(d), 3, 1.0),
    ),
    Usage(
        "the threshold is a string",
        "threshold",
        lambda d: experimental.stop_if_higher_hook(model(d), "loss", "0.5"),
    ),
    Usage(
        "max_steps is a string",
        "max_steps_without_decrease",
        lambda d: experimental.stop_if_no_decrease_hook(model(d), "loss", "100"),
    ),
    Usage(
        "max_steps is None",
        "max_steps_without_increase",
        lambda d: experimental.stop_if_no_increase_hook(model(d), "loss", None),
    ),
    Usage(
        "min_steps is a string",
        "min_steps",
        lambda d: experimental.stop_if_no_decrease_hook(model(d), "loss", 10, min_steps="5"),
    ),
    Usage(
        "eval_dir is a number",
        "eval_dir",
        lambda d: experimental.stop_if_higher_hook(model(d), "loss", 1.0, eval_dir=3),
    ),
    Usage(
        "both intervals",
        "run_every_steps",
        lambda d: experimental.make_early_stopping_hook(model(d), lambda: True, 60, 100),
    ),
    Usage(
        "no interval",
        "run_every_steps",
        lambda d: experimental.make_early_stopping_hook(model(d), lambda: True, None),
    ),
    Usage(
        "run_every_secs is a string",
        "run_every_secs",
        lambda d: experimental.make_early_stopping_hook(model(d), lambda: True, "60"),
    ),
    Usage(
        "should_stop_fn is True",
        "should_stop_fn",
        lambda d: experimental.make_early_stopping_hook(model(d), True),
    ),
    Usage(
        "the estimator is None",
        "estimator",
        lambda d: experimental.make_early_stopping_hook(None, lambda: True),
    ),
    Usage(
        "every_n_iter is 0",
        "every_n_iter",
        lambda d: experimental.InMemoryEvaluatorHook(model(d), finite, every_n_iter=0),
    ),
    Usage(
        "every_n_iter is a string",
        "every_n_iter",
        lambda d: experimental.InMemoryEvaluatorHook(model(d), finite, every_n_iter="10"),
    ),
    Usage(
        "input_fn was called",
        "input_fn",
        lambda d: experimental.InMemoryEvaluatorHook(model(d), dataset()),
    ),
    Usage(
        "the estimator is a model_fn",
        "estimator",
        lambda d: experimental.InMemoryEvaluatorHook(model, finite),
    ),
    Usage(
        "last_step is a string",
        "last_step",
        lambda d: experimental.make_stop_at_checkpoint_step_hook(model(d), "10"),
    ),
    Usage(
        "metric_fn wants others",
        "metric_fn",
        lambda d: estimator.add_metrics(trained(), lambda y: {}),
    ),
    Usage("metric_fn is a dict", "metric_fn", lambda d: estimator.add_metrics(trained(), {"m": 1})),
    Usage(
        "add_metrics of a folder",
        "estimator",
        lambda d: estimator.add_metrics(d, lambda labels: {}),
    ),
)

TABLES = {
    "`TrainSpec`, `EvalSpec`": SPECS,
    "`train_and_evaluate`": CALLS,
    "exporters": EXPORTERS,
    "hooks, `add_metrics`": HOOKS,
}
