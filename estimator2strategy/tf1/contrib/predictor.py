"""`tf.contrib.predictor`: a function that feeds an exported model, and fetches what it predicts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.tf1.contrib import names_of

tf1 = tf.compat.v1

DEFAULT_TAGS = "serve"
_DEFAULT = tf1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY

__getattr__ = names_of("predictor", globals())


class Predictor:
    """Calls a model: arrays by input name to arrays by output name.

    A subclass sets `_graph`, `_session`, `_feed_tensors` and `_fetch_tensors`.
    """

    _graph: tf.Graph
    _session: tf1.Session
    _feed_tensors: dict[str, tf.Tensor]
    _fetch_tensors: dict[str, tf.Tensor]

    @property
    def graph(self) -> tf.Graph:
        """The graph of the model."""
        return self._graph

    @property
    def session(self) -> tf1.Session:
        """The Session that has its variables."""
        return self._session

    @property
    def feed_tensors(self) -> dict[str, tf.Tensor]:
        """Tensors by input name."""
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, tf.Tensor]:
        """Tensors by output name."""
        return self._fetch_tensors

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__} with feed tensors {self.feed_tensors} "
            f"and fetch_tensors {self.fetch_tensors}"
        )

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
        return cast(dict[str, Any], self.session.run(self.fetch_tensors, feeds))


class SavedModelPredictor(Predictor):
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

    def __init__(
        self,
        export_dir: str,
        signature_def_key: str | None = None,
        signature_def: Any = None,
        input_names: Mapping[str, str] | None = None,
        output_names: Mapping[str, str] | None = None,
        tags: str | None = None,
        graph: tf.Graph | None = None,
        config: Any = None,
    ):
        ways = [signature_def_key, signature_def, input_names if output_names else None]
        ambiguous = sum(way is not None for way in ways) > 1
        if ambiguous or (input_names is None) != (output_names is None):
            raise ValueError(
                "You must specify at most one of signature_def_key, signature_def, and input_names "
                "together with output_names."
            )
        self._session = tf1.Session(graph=graph or tf.Graph(), config=config)
        self._graph = self._session.graph
        with self._graph.as_default():
            tagged = (tags or DEFAULT_TAGS).split(",")
            loaded = tf1.saved_model.loader.load(self._session, tagged, export_dir)
        if input_names is None or output_names is None:
            signature = signature_def or _signature(loaded, signature_def_key or _DEFAULT)
            input_names = {key: info.name for key, info in signature.inputs.items()}
            output_names = {key: info.name for key, info in signature.outputs.items()}
        self._feed_tensors = self._tensors(input_names)
        self._fetch_tensors = self._tensors(output_names)

    def _tensors(self, names: Mapping[str, str]) -> dict[str, tf.Tensor]:
        return {key: self._graph.get_tensor_by_name(name) for key, name in names.items()}


from_saved_model = SavedModelPredictor


def _signature(loaded: Any, key: str) -> Any:
    for name in (key, f"default_input_alternative:{key}"):
        if name in loaded.signature_def:
            return loaded.signature_def[name]
    known = sorted(loaded.signature_def)
    raise ValueError(f"There is no signature {key!r} in the SavedModel; it has {known}.")


class CoreEstimatorPredictor(SavedModelPredictor):
    """A Predictor of an Estimator's latest checkpoint, through an export to a temporary folder.

    Args:
        estimator: A trained Estimator.
        serving_input_receiver_fn: As for `export_saved_model`.
        output_key: The key of one of the model's export_outputs; the default one by default.
        graph, config: See `SavedModelPredictor`.

    Raises:
        ValueError: There is no checkpoint, or no such output.
    """

    def __init__(
        self,
        estimator: Any,
        serving_input_receiver_fn: Callable[[], Any],
        output_key: str | None = None,
        graph: tf.Graph | None = None,
        config: Any = None,
    ):
        with tempfile.TemporaryDirectory() as folder:
            exported = estimator.export_saved_model(folder, serving_input_receiver_fn)
            super().__init__(tf.compat.as_str(exported), output_key, graph=graph, config=config)


from_estimator = CoreEstimatorPredictor


class ContribEstimatorPredictor(SavedModelPredictor):
    """A Predictor of the latest checkpoint of an Estimator of `tf.contrib.learn`.

    Args:
        estimator: A trained `tf.contrib.learn.Estimator`.
        prediction_input_fn: Returns `InputFnOps`.
        input_alternative_key: The default one, or None.
        output_alternative_key: The key of one of several output_alternatives.
        graph, config: See `SavedModelPredictor`.

    Raises:
        ValueError: There is no checkpoint, or no such output.
    """

    def __init__(
        self,
        estimator: Any,
        prediction_input_fn: Callable[[], Any],
        input_alternative_key: str | None = None,
        output_alternative_key: str | None = None,
        graph: tf.Graph | None = None,
        config: Any = None,
    ):
        if input_alternative_key not in (None, "default_input_alternative"):
            raise KeyError(input_alternative_key)

        def receiver() -> Any:
            made = prediction_input_fn()
            return core.export.ServingInputReceiver(made.features, made.default_inputs)

        with tempfile.TemporaryDirectory() as folder:
            exported = estimator.export_savedmodel(folder, receiver, output_alternative_key)
            super().__init__(tf.compat.as_str(exported), graph=graph, config=config)


from_contrib_estimator = ContribEstimatorPredictor


def get_signature_def_by_key(meta_graph_def: Any, signature_def_key: str) -> Any:
    """The SignatureDef of a MetaGraphDef.

    Raises:
        ValueError: There is none with this key.
    """
    if signature_def_key not in meta_graph_def.signature_def:
        raise ValueError(f"No SignatureDef with key '{signature_def_key}' found in MetaGraphDef.")
    return meta_graph_def.signature_def[signature_def_key]
