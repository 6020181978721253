"""The contract of a served model: the inputs that it receives and the outputs that it offers.

    feature_spec = {"x": tf.io.FixedLenFeature([4], tf.float32)}
    model.export_saved_model(base, build_parsing_serving_input_receiver_fn(feature_spec))

A receiver function runs in the graph that is exported; its placeholders are the model's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine import wrong_argument
from estimator2strategy.engine._tf_private import model_utils as _model_utils
from estimator2strategy.estimator.contract_rules import RAW_RECEIVER_RULES, RECEIVER_RULES

ExportOutput = _model_utils.ExportOutput
ClassificationOutput = _model_utils.ClassificationOutput
RegressionOutput = _model_utils.RegressionOutput
PredictOutput = _model_utils.PredictOutput
TrainOutput = _model_utils.TrainOutput
EvalOutput = _model_utils.EvalOutput

EXPORT_TAG_MAP = _model_utils.EXPORT_TAG_MAP
SIGNATURE_KEY_MAP = _model_utils.SIGNATURE_KEY_MAP
build_all_signature_defs = _model_utils.build_all_signature_defs
export_outputs_for_mode = _model_utils.export_outputs_for_mode
get_export_outputs = _model_utils.get_export_outputs
get_temp_export_dir = _model_utils.get_temp_export_dir
get_timestamped_export_dir = _model_utils.get_timestamped_export_dir

# Names that a lone tensor gets, since inputs of a SavedModel signature must have one.
_FEATURE = "feature"
_LABEL = "label"
_RECEIVER = "input"


class _ServingFields(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: dict[str, dict[str, Any]] | None


class ServingInputReceiver(_ServingFields):
    """The result of a `serving_input_receiver_fn`: features for the model, tensors to feed.

    Source: `tf.estimator.export.ServingInputReceiver`, tensorflow_estimator 2.15 export.py.
    """

    @wrong_argument.checked(RECEIVER_RULES)
    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> ServingInputReceiver:
        """Wraps lone tensors in dicts and checks names and values.

        Args:
            features: Dict of string or int to Tensor, SparseTensor or RaggedTensor; a lone tensor
                becomes {'feature': tensor}.
            receiver_tensors: Dict of string to the tensors that are fed, usually one placeholder
                of serialized examples; a lone tensor becomes {'input': tensor}.
            receiver_tensors_alternatives: Dict of name to other tensors to feed, each as
                `receiver_tensors`; each makes a signature of its own.

        Raises:
            ValueError: Something is missing or is no tensor, or a key is no string.
        """
        return super().__new__(
            cls,
            features=_named_tensors(features, "feature", _FEATURE, allow_int_keys=True),
            receiver_tensors=_named_tensors(receiver_tensors, "receiver_tensor", _RECEIVER),
            receiver_tensors_alternatives=_alternatives(receiver_tensors_alternatives),
        )


class TensorServingInputReceiver(_ServingFields):
    """A `ServingInputReceiver` for models that take one tensor, not a dict of features.

    Source: `tf.estimator.export.TensorServingInputReceiver`, tensorflow_estimator 2.15 export.py.
    """

    @wrong_argument.checked(RECEIVER_RULES)
    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> TensorServingInputReceiver:
        """Like `ServingInputReceiver`, but `features` is one tensor, which no dict replaces.

        Raises:
            ValueError: As `ServingInputReceiver`, or `features` is a dict.
        """
        if features is None:
            raise ValueError("features must be defined.")
        _check_tensor(features, "feature")
        return super().__new__(
            cls,
            features=features,
            receiver_tensors=_named_tensors(receiver_tensors, "receiver_tensor", _RECEIVER),
            receiver_tensors_alternatives=_alternatives(receiver_tensors_alternatives),
        )


class UnsupervisedInputReceiver(ServingInputReceiver):
    """The result of an input receiver function for TRAIN or EVAL of a model without labels.

    Source: `UnsupervisedInputReceiver`, tensorflow_estimator 2.15 export.py.
    """

    @wrong_argument.checked(RECEIVER_RULES)
    def __new__(cls, features: Any, receiver_tensors: Any) -> UnsupervisedInputReceiver:
        """Like `ServingInputReceiver`, without alternatives."""
        receiver = super().__new__(cls, features, receiver_tensors)
        assert isinstance(receiver, UnsupervisedInputReceiver)
        return receiver


class _SupervisedFields(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: dict[str, Any]


class SupervisedInputReceiver(_SupervisedFields):
    """The result of an input receiver function for TRAIN or EVAL: features, labels, tensors fed.

    Source: `SupervisedInputReceiver`, tensorflow_estimator 2.15 export.py.
    """

    @wrong_argument.checked(RECEIVER_RULES)
    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        """Checks all; `features` and `labels` reach the model as they are, lone tensors included.

        Raises:
            ValueError: Something is missing or is no tensor, or a key is no string.
        """
        _named_tensors(features, "feature", _FEATURE, allow_int_keys=True)
        _named_tensors(labels, "label", _LABEL, allow_int_keys=True)
        return super().__new__(
            cls,
            features=features,
            labels=labels,
            receiver_tensors=_named_tensors(receiver_tensors, "receiver_tensor", _RECEIVER),
        )


@wrong_argument.checked(RECEIVER_RULES)
def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A receiver function that is fed serialized `tf.train.Example`s.

    Args:
        feature_spec: Dict of name to `tf.io.FixedLenFeature`, `VarLenFeature` and the like.
        default_batch_size: Examples per call; None leaves it open.

    Returns:
        A function for `export_saved_model`. It makes a string placeholder of shape [batch], named
        `input_example_tensor` and fed as `examples`, and parses it by `feature_spec`.

    Source: function of this name, tensorflow_estimator 2.15 export.py.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        serialized = tf.compat.v1.placeholder(
            tf.string, shape=[default_batch_size], name="input_example_tensor"
        )
        features = tf.compat.v1.io.parse_example(serialized, feature_spec)
        return ServingInputReceiver(features, {"examples": serialized})

    return serving_input_receiver_fn


@wrong_argument.checked(RAW_RECEIVER_RULES)
def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A receiver function that is fed the features themselves.

    Args:
        features: Dict of name to a tensor whose dtype and shape, the batch axis apart, and op name
            the placeholder takes over.
        default_batch_size: Examples per call; None leaves it open.

    Returns:
        A function for `export_saved_model`.

    Source: function of this name, tensorflow_estimator 2.15 export.py.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        placeholders = _placeholders(features, default_batch_size)
        return ServingInputReceiver(placeholders, placeholders)

    return serving_input_receiver_fn


@wrong_argument.checked(RECEIVER_RULES)
def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A receiver function for TRAIN or EVAL that is fed features and labels themselves.

    Args:
        features: Tensor or dict of name to tensor, as in `build_raw_serving_input_receiver_fn`.
        labels: Tensor or dict of name to tensor.
        default_batch_size: Examples per call; None leaves it open.

    Returns:
        A function for `experimental_export_all_saved_models`.

    Raises:
        ValueError: A feature and a label have the same name.

    Source: function of this name, tensorflow_estimator 2.15 export.py.
    """
    overlap = _named(features, _RECEIVER).keys() & _named(labels, _LABEL).keys()
    if overlap:
        raise ValueError(
            "Features and labels must have distinct keys. "
            f"Found overlapping keys: {sorted(overlap)}"
        )

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        fed_features = _placeholders(_named(features, _RECEIVER), default_batch_size)
        fed_labels = _placeholders(_named(labels, _LABEL), default_batch_size)
        return SupervisedInputReceiver(
            features=fed_features if isinstance(features, dict) else fed_features[_RECEIVER],
            labels=fed_labels if isinstance(labels, dict) else fed_labels[_LABEL],
            receiver_tensors={**fed_features, **fed_labels},
        )

    return supervised_input_receiver_fn


@wrong_argument.checked(RECEIVER_RULES)
def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """A receiver function that is fed what `input_fn` would have returned.

    Args:
        input_fn: Returns `(features, labels)` or a Dataset of such pairs. It is called once, now,
            in a graph of its own, for the dtypes, shapes and names only.
        **input_fn_args: Arguments of `input_fn`.

    Returns:
        A function for `experimental_export_all_saved_models`.

    Raises:
        ValueError: `input_fn` returns no pair.

    Source: function of this name, tensorflow_estimator 2.15 export.py.
    """
    with tf.Graph().as_default():
        result = input_fn(**input_fn_args)
        if isinstance(result, (tf.data.Dataset, tf.compat.v1.data.Dataset)):
            result = tf.compat.v1.data.make_initializable_iterator(result).get_next()
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple, or a Dataset of "
                f"such; given: {result}"
            )
        features, labels = result
    return build_raw_supervised_input_receiver_fn(features, labels)


def wrap_and_check_input_tensors(
    tensors: Any, field_name: str, allow_int_keys: bool = False
) -> dict[Any, Any]:
    """A dict of the tensors of one field of a receiver, checked.

    Args:
        tensors: One tensor, or a dict of string, or int if `allow_int_keys`, to tensor.
        field_name: 'feature', 'label', 'receiver_tensor' or 'receiver_tensors_alternative'.
        allow_int_keys: True if keys may be ints.

    Raises:
        ValueError: `tensors` is None, or a value is no tensor, or a key has another type.
    """
    default = {"feature": _FEATURE, "label": _LABEL}.get(field_name, _RECEIVER)
    return _named_tensors(tensors, field_name, default, allow_int_keys=allow_int_keys)


def _named_tensors(
    tensors: Any, label: str, default_name: str, *, allow_int_keys: bool = False
) -> dict[Any, Any]:
    if tensors is None:
        raise ValueError(f"{label}s must be defined.")
    named = _named(tensors, default_name)
    for key, tensor in named.items():
        if not isinstance(key, (str, int) if allow_int_keys else str):
            kinds = "strings or ints" if allow_int_keys else "strings"
            raise ValueError(f"{label} keys must be {kinds}: {key}.")
        _check_tensor(tensor, f"{label} {key}")
    return named


def _named(tensors: Any, default_name: str) -> dict[Any, Any]:
    return tensors if isinstance(tensors, dict) else {default_name: tensors}


def _check_tensor(tensor: Any, label: str) -> None:
    if isinstance(tensor, (tf.Tensor, tf.SparseTensor, tf.RaggedTensor)):
        return
    # Wrappers such as LabeledTensor hold a `tensor` and convert to one. What else would convert,
    # numbers and lists, is a mistake here: nothing could be fed into it.
    if hasattr(tensor, "tensor"):
        try:
            tf.convert_to_tensor(tensor)
            return
        except TypeError:
            pass
    raise ValueError(
        f"{label} must be a Tensor, SparseTensor, or RaggedTensor. Given: {type(tensor).__name__}"
    )


def _alternatives(alternatives: Any) -> dict[str, dict[str, Any]] | None:
    if alternatives is None:
        return None
    if not isinstance(alternatives, dict):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    return {
        name: _named_tensors(tensors, "receiver_tensors_alternative", _RECEIVER)
        for name, tensors in alternatives.items()
    }


def _placeholders(tensors: Mapping[str, Any], batch_size: int | None) -> dict[str, Any]:
    return {name: _placeholder(tensor, batch_size) for name, tensor in tensors.items()}


def _placeholder(tensor: Any, batch_size: int | None) -> Any:
    # Eager tensors have no op and so no name to take over.
    name = tensor.op.name if hasattr(tensor, "op") else None
    shape = tf.TensorShape([batch_size]).concatenate(tensor.shape[1:])
    return tf.compat.v1.placeholder(tensor.dtype, shape=shape, name=name)
