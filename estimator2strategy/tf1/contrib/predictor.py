"""`tf.contrib.predictor`: a function that feeds an exported model, and fetches what it predicts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

tf1 = tf.compat.v1
_DEFAULT = tf1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY

__getattr__ = names_of("predictor")


class Predictor:
    """Calls a signature of a SavedModel: arrays by input name to arrays by output name.

    Attributes:
        graph: The graph that the model was loaded into.
        session: The Session that has its variables.
        feed_tensors: Tensors by input name.
        fetch_tensors: Tensors by output name.
    """

    def __init__(self, session: tf1.Session, inputs: Mapping[str, str], outputs: Mapping[str, str]):
        self.session = session
        self.graph = session.graph
        self.feed_tensors = self._tensors(inputs)
        self.fetch_tensors = self._tensors(outputs)

    def _tensors(self, names: Mapping[str, str]) -> dict[str, tf.Tensor]:
        return {key: self.graph.get_tensor_by_name(name) for key, name in names.items()}

    def __repr__(self) -> str:
        return f"Predictor(feed_tensors={self.feed_tensors}, fetch_tensors={self.fetch_tensors})"

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Predictions for a batch.

        Args:
            input_dict: Arrays by input name; those that are left out keep their default.

        Raises:
            ValueError: There is an input that the model has not.
        """
        unknown = sorted(set(input_dict) - set(self.feed_tensors))
        if unknown:
            known = sorted(self.feed_tensors)
            raise ValueError(f"Got unexpected keys in input_dict: {unknown}; expected {known}.")
        given = {key: value for key, value in input_dict.items() if value is not None}
        feeds = {self.feed_tensors[key]: value for key, value in given.items()}
        return self.session.run(self.fetch_tensors, feeds)


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: tf.Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A Predictor of a SavedModel.

    Args:
        export_dir: The folder that an export returned.
        signature_def_key: The key of a signature; "serving_default" by default.
        signature_def: In its place: a SignatureDef.
        input_names, output_names: In its place: names of tensors, by names of the caller's choice.
        tags: Separated by commas; "serve" by default.
        graph: The graph to load it into; a new one by default.
        config: ConfigProto of the Session.

    Raises:
        ValueError: More than one way is said to find the tensors, or there is no such signature.
    """
    ways = [signature_def_key, signature_def, input_names if output_names else None]
    if sum(way is not None for way in ways) > 1 or (input_names is None) != (output_names is None):
        raise ValueError(
            "You must specify at most one of signature_def_key, signature_def, and input_names "
            "together with output_names."
        )
    session = tf1.Session(graph=graph or tf.Graph(), config=config)
    with session.graph.as_default():
        loaded = tf1.saved_model.loader.load(session, (tags or "serve").split(","), export_dir)
    if input_names is None or output_names is None:
        signature = signature_def or _signature(loaded, signature_def_key or _DEFAULT)
        input_names = {key: info.name for key, info in signature.inputs.items()}
        output_names = {key: info.name for key, info in signature.outputs.items()}
    return Predictor(session, input_names, output_names)


def _signature(loaded: Any, key: str) -> Any:
    if key not in loaded.signature_def:
        known = sorted(loaded.signature_def)
        raise ValueError(f"There is no signature {key!r} in the SavedModel; it has {known}.")
    return loaded.signature_def[key]


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: tf.Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A Predictor of an Estimator's latest checkpoint, through an export to a temporary folder.

    Args:
        estimator: A trained Estimator.
        serving_input_receiver_fn: As for `export_saved_model`.
        output_key: The key of one of the model's export_outputs; the default one by default.
        graph, config: See `from_saved_model`.

    Raises:
        ValueError: There is no checkpoint, or no such output.
    """
    with tempfile.TemporaryDirectory() as folder:
        exported = estimator.export_saved_model(folder, serving_input_receiver_fn)
        return from_saved_model(tf.compat.as_str(exported), output_key, graph=graph, config=config)
