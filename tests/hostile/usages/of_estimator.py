"""Wrong usages of `Estimator`: its constructor, `train`, `evaluate`, `predict`, exports."""

from __future__ import annotations

import argparse

import tensorflow as tf

from estimator2strategy import estimator
from tests.hostile.usages.programs import (
    ModeKeys,
    dataset,
    input_fn,
    model,
    model_fn,
    model_fn_of_params,
    serving,
    trained,
    trained_folder,
)
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1
Estimator, WarmStart = estimator.Estimator, estimator.WarmStartSettings


def no_features(labels, mode):
    return labels, mode


def odd(features, labels, mode, shoe_size):
    return features, labels, mode, shoe_size


class Overriding(Estimator):
    def train(self, input_fn):
        return input_fn


CONSTRUCTOR = (
    Usage("model_fn is a number", "model_fn", lambda d: Estimator(3, d)),
    Usage("model_fn is None", "model_fn", lambda d: Estimator(None, d)),
    Usage("model_fn is a spec", "model_fn", lambda d: Estimator(estimator.EstimatorSpec, d)),
    Usage("model_fn without features", "features", lambda d: Estimator(no_features, d)),
    Usage("model_fn with an odd argument", "shoe_size", lambda d: Estimator(odd, d)),
    Usage("model_fn is a Keras model", "model_fn", lambda d: Estimator(tf.keras.Model(), d)),
    Usage("model_dir is a number", "model_dir", lambda d: Estimator(model_fn, 3)),
    Usage("model_dir is a list", "model_dir", lambda d: Estimator(model_fn, [d])),
    Usage(
        "model_dir and the config's differ",
        "model_dir",
        lambda d: Estimator(model_fn, d, estimator.RunConfig(model_dir="/tmp/else")),
    ),
    Usage("config is a ConfigProto", "config", lambda d: model(d, config=tf1.ConfigProto())),
    Usage("config is a dict", "config", lambda d: model(d, config={"model_dir": d})),
    Usage("config is a class", "config", lambda d: model(d, config=estimator.RunConfig)),
    Usage("config is a path", "config", lambda d: Estimator(model_fn, d, d)),
    Usage("params for a model_fn without", "params", lambda d: model(d, params={"a": 1})),
    Usage(
        "params is a list",
        "params",
        lambda d: model(d, model_fn=model_fn_of_params, params=[1]),
        taken="the original hands model_fn whatever it is, and lists make sense there",
    ),
    Usage(
        "params is a namespace",
        "params",
        lambda d: model(d, model_fn=model_fn_of_params, params=argparse.Namespace(a=1)),
        taken="the original hands model_fn whatever it is",
    ),
    Usage("options is a dict", "options", lambda d: model(d, options={"jit_compile": True})),
    Usage("options is True", "options", lambda d: model(d, options=True)),
    Usage("strategy is a name", "strategy", lambda d: model(d, strategy="mirrored")),
    Usage(
        "strategy is a class",
        "strategy",
        lambda d: model(d, strategy=tf.distribute.MirroredStrategy),
    ),
    Usage("a keyword that is misspelt", "model_directory", lambda d: model(d, model_directory=d)),
    Usage("an option as a keyword", "jit_compile", lambda d: model(d, jit_compile=True)),
    Usage("a subclass overrides train", "train", lambda d: Overriding(model_fn, d)),
)

WARM_START = (
    Usage("warm_start_from is a number", "warm_start_from", lambda d: model(d, warm_start_from=3)),
    Usage("warm_start_from is a dict", "warm_start_from", lambda d: model(d, warm_start_from={})),
    Usage(
        "warm_start_from is nowhere",
        "warm_start_from",
        lambda d: model(d, warm_start_from="/no/such").train(input_fn, steps=1),
    ),
    Usage(
        "a folder without a checkpoint",
        "ckpt_to_initialize_from",
        lambda d: model(d, warm_start_from=WarmStart("/tmp")).train(input_fn, steps=1),
    ),
    Usage(
        "the checkpoint is a number",
        "ckpt_to_initialize_from",
        lambda d: model(d, warm_start_from=WarmStart(3)),
    ),
    Usage(
        "the checkpoint is None",
        "ckpt_to_initialize_from",
        lambda d: model(d, warm_start_from=WarmStart(None)),
    ),
    Usage(
        "the pattern is none",
        "vars_to_warm_start",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), "weight(")),
    ),
    Usage(
        "the pattern is a number",
        "vars_to_warm_start",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), 3)),
    ),
    Usage(
        "the pattern matches nothing",
        "vars_to_warm_start",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), "wieght")).train(
            input_fn, steps=1
        ),
    ),
    Usage(
        "one of the patterns is none",
        "vars_to_warm_start",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), ["a", "*"])),
    ),
    Usage(
        "vocabularies in a list",
        "var_name_to_vocab_info",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), ".*", ["a"])),
    ),
    Usage(
        "a vocabulary that is a path",
        "var_name_to_vocab_info",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), ".*", {"weight": "v.txt"})),
    ),
    Usage(
        "earlier names in a list",
        "var_name_to_prev_var_name",
        lambda d: model(d, warm_start_from=WarmStart(trained_folder(), ".*", None, ["a"])),
    ),
)

TRAIN = (
    Usage("input_fn is None", "input_fn", lambda d: model(d).train(None, steps=1)),
    Usage("input_fn is a number", "input_fn", lambda d: model(d).train(3, steps=1)),
    Usage("input_fn was called", "input_fn", lambda d: model(d).train(input_fn(), steps=1)),
    Usage("input_fn is a pair", "input_fn", lambda d: model(d).train(([1], [2]), steps=1)),
    Usage("steps is a string", "steps", lambda d: model(d).train(input_fn, steps="10")),
    Usage("steps is a list", "steps", lambda d: model(d).train(input_fn, steps=[10])),
    Usage("steps is 0", "steps", lambda d: model(d).train(input_fn, steps=0)),
    Usage("steps is negative", "steps", lambda d: model(d).train(input_fn, steps=-1)),
    Usage("steps is NaN", "steps", lambda d: model(d).train(input_fn, steps=float("nan"))),
    Usage(
        "steps is 2.0",
        "steps",
        lambda d: model(d).train(input_fn, steps=2.0),
        taken="programs compute it: the original trains until the step is reached",
    ),
    Usage("max_steps is a string", "max_steps", lambda d: model(d).train(input_fn, max_steps="1")),
    Usage("max_steps is 0", "max_steps", lambda d: model(d).train(input_fn, max_steps=0)),
    Usage("max_steps is a dict", "max_steps", lambda d: model(d).train(input_fn, max_steps={})),
    Usage("both of them", "max_steps", lambda d: model(d).train(input_fn, steps=1, max_steps=2)),
    Usage(
        "hooks is a hook",
        "hooks",
        lambda d: model(d).train(input_fn, tf1.train.StopAtStepHook(1), steps=1),
    ),
    Usage(
        "hooks has a class",
        "hooks",
        lambda d: model(d).train(input_fn, [tf1.train.StopAtStepHook], steps=1),
    ),
    Usage("hooks has a string", "hooks", lambda d: model(d).train(input_fn, ["stop"], steps=1)),
    Usage("hooks is a string", "hooks", lambda d: model(d).train(input_fn, "stop", steps=1)),
    Usage("hooks is a number", "hooks", lambda d: model(d).train(input_fn, 10)),
    Usage(
        "hooks has a function", "hooks", lambda d: model(d).train(input_fn, [lambda: None], steps=1)
    ),
    Usage(
        "saving_listeners is a listener",
        "saving_listeners",
        lambda d: model(d).train(
            input_fn, steps=1, saving_listeners=tf1.train.CheckpointSaverListener()
        ),
    ),
    Usage(
        "saving_listeners has a hook",
        "saving_listeners",
        lambda d: model(d).train(input_fn, steps=1, saving_listeners=[tf1.train.StopAtStepHook(1)]),
    ),
    Usage("an argument of fit", "epochs", lambda d: model(d).train(input_fn, epochs=3)),
)

EVALUATE = (
    Usage("input_fn is None", "input_fn", lambda d: trained().evaluate(None, steps=1)),
    Usage("input_fn is a Dataset", "input_fn", lambda d: trained().evaluate(dataset(), steps=1)),
    Usage("steps is a string", "steps", lambda d: trained().evaluate(input_fn, steps="1")),
    Usage("steps is 0", "steps", lambda d: trained().evaluate(input_fn, steps=0)),
    Usage("steps is a list", "steps", lambda d: trained().evaluate(input_fn, steps=[1])),
    Usage(
        "hooks is a hook", "hooks", lambda d: trained().evaluate(input_fn, 1, tf1.train.Scaffold())
    ),
    Usage("hooks has None", "hooks", lambda d: trained().evaluate(input_fn, 1, [None])),
    Usage(
        "checkpoint_path is a number",
        "checkpoint_path",
        lambda d: trained().evaluate(input_fn, 1, checkpoint_path=1000),
    ),
    Usage(
        "checkpoint_path is nowhere",
        "checkpoint_path",
        lambda d: trained().evaluate(input_fn, 1, checkpoint_path="/no/such/model.ckpt-1"),
    ),
    Usage(
        "checkpoint_path is a folder",
        "checkpoint_path",
        lambda d: trained().evaluate(input_fn, 1, checkpoint_path=trained_folder()),
    ),
    Usage(
        "checkpoint_path has a file's ending",
        "checkpoint_path",
        lambda d: trained().evaluate(
            input_fn, 1, checkpoint_path=trained_folder() + "/model.ckpt-1.index"
        ),
    ),
    Usage("name is a number", "name", lambda d: trained().evaluate(input_fn, 1, name=3)),
    Usage("name is a list", "name", lambda d: trained().evaluate(input_fn, 1, name=["a"])),
    Usage("max_steps of train", "max_steps", lambda d: trained().evaluate(input_fn, max_steps=1)),
    Usage("get_variable_value", "name", lambda d: trained().get_variable_value("wieght")),
)

PREDICT = (
    Usage("input_fn is None", "input_fn", lambda d: next(trained().predict(None))),
    Usage("input_fn is an array", "input_fn", lambda d: next(trained().predict([[1.0, 2.0]]))),
    Usage(
        "predict_keys is a number", "predict_keys", lambda d: next(trained().predict(input_fn, 3))
    ),
    Usage(
        "predict_keys has no such key",
        "predict_keys",
        lambda d: next(trained().predict(input_fn, ["classes"])),
    ),
    Usage(
        "hooks is a hook",
        "hooks",
        lambda d: next(trained().predict(input_fn, hooks=tf1.train.Scaffold())),
    ),
    Usage(
        "checkpoint_path is a number",
        "checkpoint_path",
        lambda d: next(trained().predict(input_fn, checkpoint_path=3)),
    ),
    Usage(
        "checkpoint_path is nowhere",
        "checkpoint_path",
        lambda d: next(trained().predict(input_fn, checkpoint_path="/no/such/model.ckpt-1")),
    ),
    Usage(
        "yield_single_examples is 'False'",
        "yield_single_examples",
        lambda d: next(trained().predict(input_fn, yield_single_examples="False")),
    ),
)

EXPORT = (
    Usage(
        "serving_input_receiver_fn is None",
        "serving_input_receiver_fn",
        lambda d: trained().export_saved_model(d, None),
    ),
    Usage(
        "serving_input_receiver_fn was called",
        "serving_input_receiver_fn",
        lambda d: trained().export_saved_model(d, {"x": 1}),
    ),
    Usage(
        "serving_input_receiver_fn returns a dict",
        "serving_input_receiver_fn",
        lambda d: trained().export_saved_model(d, lambda: {"x": tf1.placeholder(tf.float32)}),
    ),
    Usage(
        "serving_input_receiver_fn returns None",
        "serving_input_receiver_fn",
        lambda d: trained().export_saved_model(d, lambda: None),
    ),
    Usage(
        "export_dir_base is None",
        "export_dir_base",
        lambda d: trained().export_saved_model(None, serving),
    ),
    Usage(
        "export_dir_base is a number",
        "export_dir_base",
        lambda d: trained().export_saved_model(3, serving),
    ),
    Usage(
        "assets_extra is a list",
        "assets_extra",
        lambda d: trained().export_saved_model(d, serving, ["a.txt"]),
    ),
    Usage(
        "an asset is nowhere",
        "assets_extra",
        lambda d: trained().export_saved_model(d, serving, {"a.txt": "/no/such"}),
    ),
    Usage(
        "as_text is 'no'",
        "as_text",
        lambda d: trained().export_saved_model(d, serving, as_text="no"),
    ),
    Usage(
        "experimental_mode is a typo",
        "experimental_mode",
        lambda d: trained().export_saved_model(d, serving, experimental_mode="serve"),
    ),
    Usage(
        "checkpoint_path is nowhere",
        "checkpoint_path",
        lambda d: trained().export_saved_model(d, serving, checkpoint_path="/no/such"),
    ),
    Usage(
        "input_receiver_fn_map is a function",
        "input_receiver_fn_map",
        lambda d: trained().experimental_export_all_saved_models(d, serving),
    ),
    Usage(
        "input_receiver_fn_map has an odd mode",
        "input_receiver_fn_map",
        lambda d: trained().experimental_export_all_saved_models(d, {"serve": serving}),
    ),
    Usage(
        "a receiver of serving, for evaluation",
        "labels",
        lambda d: trained().experimental_export_all_saved_models(d, {ModeKeys.EVAL: serving}),
    ),
    Usage(
        "the features of a receiver are None",
        "features",
        lambda d: estimator.export.ServingInputReceiver(None, {}),
    ),
    Usage(
        "the tensors of a receiver are an array",
        "receiver_tensors",
        lambda d: estimator.export.ServingInputReceiver(tf.constant([1.0]), [1.0]),
    ),
    Usage(
        "feature_spec is a list",
        "feature_spec",
        lambda d: estimator.export.build_parsing_serving_input_receiver_fn(["x"])(),
    ),
    Usage(
        "features of a raw receiver are None",
        "features",
        lambda d: estimator.export.build_raw_serving_input_receiver_fn(None)(),
    ),
)

TABLES = {
    "`Estimator(...)`": CONSTRUCTOR,
    "`warm_start_from`": WARM_START,
    "`train`": TRAIN,
    "`evaluate`": EVALUATE,
    "`predict`": PREDICT,
    "exports": EXPORT,
}
