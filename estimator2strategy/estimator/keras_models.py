"""A compiled Keras 2 model as an Estimator: `tf.keras.estimator.model_to_estimator`.

model_fn clones the model in the graph that is recorded. It takes the loss, the metrics and the
updates of the clone, as Keras's own loop for graphs would have. The variables have the names that
Keras gives them there: `dense/kernel`, `training/Adam/dense/kernel/m`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime.checkpoints import OBJECT_STEP
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.export import ExportOutput, PredictOutput
from estimator2strategy.estimator.run_config import RunConfig, completed
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = "saver",
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, type[ExportOutput]] | None = None,
) -> Estimator:
    """An Estimator that trains, evaluates and predicts with a compiled Keras 2 model.

    It starts from the weights that the model has now, but for those that are not trained, such as
    moving averages. input_fn gives what `fit` took: features as a tensor, a list or a dict by the
    names of the inputs, labels likewise by the outputs; weights of examples as features
    `{"features": ..., "sample_weights": ...}`.

    Args:
        keras_model: A compiled `tf.keras.Model` of tf-keras; a subclass needs `get_config`.
        keras_model_path: In its place: the HDF5 file of one.
        custom_objects: Classes and functions of the model by the names in its config.
        model_dir: Folder of the Estimator; that of `config`, or a temporary one, by default.
        config: A RunConfig.
        checkpoint_format: "saver", checkpoints by names of variables; "checkpoint" or None, by
            objects, as `tf.train.Checkpoint(model)` and `model.load_weights` read them.
        metric_names_map: The model's metric names -> names in the results of `evaluate`.
        export_outputs: Output names of the model -> class of a further signature for them.

    Raises:
        TypeError: `keras_model` is one of Keras 3.
        ValueError: There is no model or there are two; it is not compiled, or cannot be cloned;
            the format is none of the above, or not possible for a subclass.

    Source: `tf.compat.v1.keras.estimator.model_to_estimator`, TensorFlow 2.15.
    """
    if (keras_model is None) == (not keras_model_path):
        raise ValueError(
            "Either `keras_model` or `keras_model_path` needs to be provided."
            if keras_model is None
            else "Give `keras_model` or `keras_model_path`, not both."
        )
    config = completed(config, model_dir)
    if keras_model is None:
        tf1.logging.info("Loading models from %s", keras_model_path)
        import tf_keras

        keras_model = tf_keras.models.load_model(keras_model_path, dict(custom_objects or {}))
    by_objects = _check(keras_model, custom_objects, checkpoint_format)
    clone = _cloner(keras_model, custom_objects)
    first = None
    if keras_model._is_graph_network and config.is_chief:
        first = _first_checkpoint(keras_model, clone, config, by_objects)
    elif keras_model.built:
        tf1.logging.warn(
            "The Estimator of a subclassed Keras model starts from new weights: those that the "
            "model has now are not carried over."
        )
    model_fn = _model_fn(keras_model, clone, by_objects, metric_names_map, export_outputs)
    return Estimator(model_fn, config=config, warm_start_from=first)


def model_to_estimator_v2(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = "checkpoint",
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, type[ExportOutput]] | None = None,
) -> Estimator:
    """Like `model_to_estimator`, but its checkpoints are of objects by default.

    Source: `tf.keras.estimator.model_to_estimator`, TensorFlow 2.15.
    """
    return model_to_estimator(
        keras_model,
        keras_model_path,
        custom_objects,
        model_dir,
        config,
        checkpoint_format,
        metric_names_map,
        export_outputs,
    )


def _check(model: Any, custom_objects: Mapping[str, Any] | None, format: str | None) -> bool:  # noqa: A002
    """Refuses what cannot become an Estimator; returns whether checkpoints are by objects."""
    import tf_keras

    if not isinstance(model, tf_keras.Model):
        raise TypeError(
            f"keras_model must be a compiled model of Keras 2 (`import tf_keras`), not {model!r}. "
            "Call a model of Keras 3 inside of a model_fn: see migration_guide/keras.md."
        )
    subclassed = not (model._is_graph_network or isinstance(model, tf_keras.Sequential))
    if subclassed:
        try:
            with tf_keras.utils.CustomObjectScope(dict(custom_objects or {})):
                type(model).from_config(model.get_config())
        except NotImplementedError as error:
            raise ValueError(
                "A subclassed model must have `get_config` and `from_config`: the Estimator makes "
                "it anew from them."
            ) from error
    if format not in (None, "checkpoint", "saver"):
        raise ValueError(f'Checkpoint format must be one of "checkpoint" or "saver". Got {format}')
    by_objects = format != "saver"
    if by_objects and subclassed:
        raise ValueError(
            "A subclassed model has checkpoints by names only: checkpoint_format='saver'."
        )
    if not getattr(model, "optimizer", None):
        raise ValueError(
            "The model has not been compiled yet: call its `compile` before `model_to_estimator`."
        )
    return by_objects


# --- The clone of a mode.

_Cloner = Callable[..., Any]


def _cloner(model: Any, custom_objects: Mapping[str, Any] | None) -> _Cloner:
    """`clone(mode, features, labels)`: the model anew, compiled, in the default graph."""
    import tf_keras

    # Of the optimizers for TF2 loops, which cannot run in a graph, Keras makes those that can.
    if isinstance(model.optimizer, tf_keras.optimizers.experimental.Optimizer):
        tf1.logging.warn(
            "The optimizer %s is for TF2's loops; the Estimator trains with its namesake in "
            "`tf_keras.optimizers.legacy`.",
            type(model.optimizer).__name__,
        )
        convert = tf_keras.__internal__.optimizers.convert_to_legacy_optimizer
        model.optimizer = convert(model.optimizer)
    # Here, because its numbers may be variables of this graph.
    settings = _settings_of(model.optimizer)

    def clone(mode: str, features: Any = None, labels: Any = None) -> Any:
        tf_keras.backend.set_learning_phase(mode == ModeKeys.TRAIN)
        features, weights = _split_weights(features)
        step = None
        if mode != ModeKeys.PREDICT:
            step = tf1.train.get_or_create_global_step()
            tf_keras.__internal__.backend.track_variable(step)
        made = tf_keras.__internal__.models.clone_and_build_model(
            model,
            _inputs(model, features),
            _targets(model, labels),
            dict(custom_objects or {}),
            compile_clone=mode != ModeKeys.PREDICT,
            in_place_reset=not model._is_graph_network,
            optimizer_iterations=step,
            optimizer_config=settings,
        )
        if weights is not None and mode != ModeKeys.PREDICT:
            made._compile_weights_loss_and_weighted_metrics(
                _weights_of_outputs(weights, made.output_names)
            )
        return made

    return clone


def _settings_of(optimizer: Any) -> Any:
    """The config of one optimizer, or a list of several; None where there is none, as of TF 1."""
    try:
        if isinstance(optimizer, (list, tuple)):
            return [one.get_config() for one in optimizer]
        return optimizer.get_config()
    except (NotImplementedError, AttributeError):
        return None


def _split_weights(features: Any) -> tuple[Any, Any]:
    """Features, and weights of examples where these come with them."""
    if isinstance(features, Mapping) and set(features) == {"features", "sample_weights"}:
        return features["features"], features["sample_weights"]
    return features, None


def _inputs(model: Any, features: Any) -> Any:
    """`features` as the model takes its inputs: a list in its order, or a dict if it has one."""
    if isinstance(features, Mapping):
        if isinstance(model.inputs, Mapping):
            return {key: _tensor(features[key]) for key in model.inputs}
        if model.inputs is None:
            return {key: _tensor(value) for key, value in features.items()}
    return _listed(features, _names(model, "input", features), "features", "inputs")


def _targets(model: Any, labels: Any) -> Any:
    return _listed(labels, _names(model, "output", labels), "labels", "outputs")


def _names(model: Any, kind: str, given: Any) -> list[str]:
    """Names of the model's inputs or outputs, or those that Keras gives where it has none."""
    if model._is_graph_network:
        return list(getattr(model, f"{kind}_names"))
    count = len(given) if isinstance(given, Mapping) else 0
    return [f"{kind}_{index + 1}" for index in range(count)]


def _listed(given: Any, names: Sequence[str], argument: str, part: str) -> list[Any] | None:
    """Tensors in the order of `names`.

    Raises:
        KeyError: A dict does not have all the names.
    """
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        return [_tensor(value) for value in given]
    if not isinstance(given, Mapping):
        return [_tensor(given)]
    missing = sorted(set(names) - set(given))
    if missing:
        raise KeyError(
            f"The model's {part} {missing} are not among the {argument}: it takes {sorted(names)}, "
            f"and was given {sorted(given)}."
        )
    return [_tensor(given[name]) for name in names]


def _tensor(value: Any) -> Any:
    return value if tf.is_tensor(value) else tf1.convert_to_tensor_or_sparse_tensor(value)


def _weights_of_outputs(weights: Any, outputs: Sequence[str]) -> list[Any]:
    """Weights of examples for each output.

    Raises:
        ValueError: There are not as many as outputs, or some for what is no output.
        TypeError: There are several outputs, and neither a list nor a dict.
    """
    if isinstance(weights, Mapping):
        unknown = sorted(set(weights) - set(outputs))
        if unknown and len(outputs) > 1:
            raise ValueError(
                f"sample_weights are given for {unknown}; the model's outputs are {list(outputs)}."
            )
        return [weights.get(name) for name in outputs]
    if isinstance(weights, (list, tuple)):
        if len(weights) != len(outputs):
            raise ValueError(
                f"sample_weights are a list of {len(weights)} for a model with {len(outputs)} "
                "outputs; give one for each."
            )
        return list(weights)
    if len(outputs) > 1:
        raise TypeError(
            "sample_weights of a model with several outputs must be a list or a dict, not "
            f"{weights}."
        )
    return [weights]


# --- What becomes of it.


def _model_fn(
    keras_model: Any,
    clone: _Cloner,
    by_objects: bool,
    metric_names_map: Mapping[str, str] | None,
    export_outputs: Mapping[str, type[ExportOutput]] | None,
) -> Callable[..., EstimatorSpec]:
    def spec(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        model = clone(mode, features, labels)
        predictions = dict(zip(_output_names(model), model.outputs, strict=True))
        loss = train_op = metrics = None
        if mode == ModeKeys.TRAIN:
            model._make_train_function()
            train_op = model.train_function.updates_op
        elif mode == ModeKeys.EVAL:
            model._make_test_function()
        if mode != ModeKeys.PREDICT:
            loss = model.total_loss
            metrics = _metrics(model, metric_names_map)
        return EstimatorSpec(
            mode,
            predictions,
            loss,
            train_op,
            metrics,
            export_outputs=_export_outputs(model, predictions, export_outputs),
            scaffold=tf1.train.Scaffold(saver=_object_saver(model)) if by_objects else None,
        )

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        with _tf_private.keras_classes_kept(keras_model):
            return spec(features, labels, mode)

    return model_fn


def _output_names(model: Any) -> list[str]:
    """The same on all replicas, where Keras numbers the names of layers on the further ones."""
    if tf.distribute.has_strategy():
        return [re.sub(r"_\d$", "", name) for name in model.output_names]
    return list(model.output_names)


def _metrics(model: Any, names: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The metrics that the model was compiled with, not those that it adds in `call`.

    Raises:
        ValueError: `names` are not those of all metrics.
    """
    if not getattr(model, "_compile_metrics", None):
        return None
    by_name = {metric.name: metric for metric in model._compile_metric_functions}
    if not names:
        return by_name
    if set(names) != set(by_name):
        raise ValueError(
            "Invalid `metric_names_map`. There are unexpected or missing keys in the "
            f"`metric_names_map` dictionary. Expected keys: {sorted(by_name)}, Received: "
            f"{sorted(names)}"
        )
    return {names[name]: metric for name, metric in by_name.items()}


def _export_outputs(
    model: Any, predictions: Mapping[str, Any], further: Mapping[str, type[ExportOutput]] | None
) -> dict[str, ExportOutput]:
    unknown = sorted(set(further or ()) - set(model.output_names))
    if unknown:
        raise KeyError(
            f"export_outputs has keys that are no outputs of the keras model: {unknown}. Its "
            f"outputs: {list(model.output_names)}"
        )
    outputs: dict[str, ExportOutput] = {
        tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(dict(predictions))
    }
    outputs.update({name: kind(predictions[name]) for name, kind in (further or {}).items()})
    return outputs


# --- Checkpoints.


def _object_saver(model: Any) -> tf1.train.Saver:
    """A Saver that writes the format of `tf.train.Checkpoint(model)`."""
    _track_step(model)
    return tf1.train.Saver(_tf_private.saveable_objects(model), sharded=True)


def _track_step(model: Any) -> None:
    model._track_trackable(tf1.train.get_global_step(), OBJECT_STEP)


def _first_checkpoint(model: Any, clone: _Cloner, config: RunConfig, by_objects: bool) -> str:
    """The weights of `model` as a checkpoint in `model_dir/keras`, if there was none."""
    import tf_keras

    folder = os.path.join(config.model_dir or "", "keras")
    path = tf.train.latest_checkpoint(folder)
    if path:
        return cast(str, path)
    weights = model.get_weights() if _has_weights(model) else None
    tf.io.gfile.makedirs(folder)
    path = os.path.join(folder, "keras_model.ckpt")
    with _tf_private.keras_classes_kept(model), tf.Graph().as_default():
        tf1.set_random_seed(config.tf_random_seed)
        tf1.train.create_global_step()
        made = clone(ModeKeys.TRAIN)
        made._make_train_function()  # makes the optimizer's variables
        with tf1.Session(config=config.session_config) as session:
            if weights:
                made.set_weights(weights)
            tf_keras.__internal__.backend.initialize_variables(session)
            if by_objects:
                _track_step(made)
                made.save_weights(path)
            else:
                tf1.train.Saver().save(session, path)
    return path


def _has_weights(model: Any) -> bool:
    """True if the weights have values: in graph mode Keras gives them at their first use."""
    if tf1.executing_eagerly_outside_functions():
        return True
    return any(hasattr(w, "_keras_initialized") for layer in model.layers for w in layer.weights)
