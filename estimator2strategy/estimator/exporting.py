"""The export methods of `Estimator`: they choose the graphs and the values of a SavedModel.

    feature_spec = {"x": tf.io.FixedLenFeature([4], tf.float32)}
    receiver_fn = estimator.export.build_parsing_serving_input_receiver_fn(feature_spec)
    model.export_saved_model("/models/mine", receiver_fn)

Source: `tf.estimator.Estimator`, tensorflow_estimator 2.15 estimator.py.
"""

from __future__ import annotations

import abc
import copy
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime import jax_hosts
from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.estimator.checks import checked_path
from estimator2strategy.estimator.contract_rules import RULES
from estimator2strategy.estimator.export import EXPORT_TAG_MAP
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.saved_model import ServedGraph, write_saved_model
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.estimator.warm_start import WarmStartSettings

tf1 = tf.compat.v1


class Exporting(abc.ABC):
    """An Estimator as far as exporting it goes."""

    _config: RunConfig
    _tf115: bool
    _warm_start_settings: WarmStartSettings | None

    @abc.abstractmethod
    def latest_checkpoint(self) -> str | None: ...

    @abc.abstractmethod
    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec: ...

    @checked(RULES)
    def export_saved_model(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
        *,
        for_tensorflow: str | None = None,
    ) -> bytes:
        """Writes a SavedModel of TF1, for TensorFlow Serving and `tf.saved_model.load`.

        Args:
            export_dir_base: A new folder, named after the time in seconds, is made in this one.
            serving_input_receiver_fn: Returns a `ServingInputReceiver` or a
                `TensorServingInputReceiver`; for other modes a `SupervisedInputReceiver` or an
                `UnsupervisedInputReceiver`.
            assets_extra: Path below `assets.extra` -> file to copy there.
            as_text: Write `saved_model.pbtxt`, not `saved_model.pb`.
            checkpoint_path: Default: the latest in `model_dir`; if there is none, the one that
                `warm_start_from` names.
            experimental_mode: The mode in which to call model_fn. PREDICT gives a signature for
                each of the spec's `export_outputs`, under the tag `serve`; TRAIN and EVAL one
                signature, `train` or `eval`, under the tag of that name.
            for_tensorflow: "1.15": TF 1.15 and its server load the export, too; TF 2 loads it as
                any other. None: no older TensorFlow than 2.15 is asked for.

        Returns:
            The new folder; `export_dir_base` in a process of a job under JAX that is not its chief.

        Raises:
            ValueError: There is no function, no checkpoint, no signature to serve, or the
                checkpoint lacks a variable.
            SavedModelError: The graph has an op that `for_tensorflow` lacks.
        """
        if not serving_input_receiver_fn:
            raise ValueError("serving_input_receiver_fn: An input_receiver_fn must be defined.")
        return self._export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            **_only_given(for_tensorflow),
        )

    @checked(RULES)
    def experimental_export_all_saved_models(
        self,
        export_dir_base: str | os.PathLike[str],
        input_receiver_fn_map: dict[str, Callable[[], Any]],
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        *,
        for_tensorflow: str | None = None,
    ) -> bytes:
        """Writes a SavedModel with a graph for each of several modes, on the same variables.

        Args:
            input_receiver_fn_map: Mode -> function as for `export_saved_model`.

        The others, what is returned and raised: as for `export_saved_model`.
        """
        return self._export_all_saved_models(
            export_dir_base,
            input_receiver_fn_map,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            **_only_given(for_tensorflow),
        )

    @checked(RULES)
    def export_savedmodel(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
        *,
        for_tensorflow: str | None = None,
    ) -> bytes:
        """`export_saved_model` as TF1 called it, with all attributes of nodes written out.

        (TF2's Estimator had no such method, only an AttributeError that names the other one. This
        class is both TF1's and TF2's.)
        """
        tf1.logging.warn(
            "Estimator.export_savedmodel is deprecated. This function has been renamed, use "
            "`export_saved_model` instead."
        )
        if not serving_input_receiver_fn:
            raise ValueError("serving_input_receiver_fn: An input_receiver_fn must be defined.")
        return self._export_all_saved_models(
            export_dir_base,
            {ModeKeys.PREDICT: serving_input_receiver_fn},
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=strip_default_attrs,
            **_only_given(for_tensorflow),
        )

    # Subclasses have always been allowed to override this one, so it has its old name.
    def _export_all_saved_models(
        self,
        export_dir_base: str | os.PathLike[str],
        input_receiver_fn_map: dict[str, Callable[[], Any]],
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
        for_tensorflow: str | None = None,
    ) -> bytes:
        if not jax_hosts.writes_files():
            tf1.logging.info("No SavedModel is written here: the chief of the job writes it.")
            return os.fsencode(export_dir_base)
        for source in (assets_extra or {}).values():
            if not tf.io.gfile.exists(source):
                raise wrong_argument("assets_extra: no such file", source, "Pass a file's path.")
        asked = checked_path(checkpoint_path)
        checkpoint_path = asked or self._checkpoint_to_export()
        # Training comes first: its variables are what a checkpoint has, and what is saved.
        graphs = [
            graph
            for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
            if input_receiver_fn_map.get(mode)
            for graph in self._served_graphs(mode, input_receiver_fn_map[mode])
        ]
        if not graphs:
            raise wrong_argument(
                f"No valid modes for exporting found. Got {list(input_receiver_fn_map)} as "
                "experimental_mode or in input_receiver_fn_map",
                list(input_receiver_fn_map),
                "Pass ModeKeys.PREDICT, ModeKeys.EVAL or ModeKeys.TRAIN.",
            )
        return write_saved_model(
            export_dir_base,
            graphs,
            checkpoint_path,
            self._config,
            look_up=None if asked else self.latest_checkpoint,
            assets_extra=assets_extra,
            as_text=as_text,
            strip_default_attrs=strip_default_attrs,
            tf115=self._tf115,
            for_tf115=for_tensorflow is not None,
        )

    def _served_graphs(self, mode: str, receiver_fn: Callable[[], Any]) -> list[ServedGraph]:
        def call_model_fn(features: Any, labels: Any) -> Any:
            return self._call_model_fn(features, labels, mode, copy.deepcopy(self._config))

        return [ServedGraph(mode, EXPORT_TAG_MAP[mode], receiver_fn, call_model_fn)]

    def _checkpoint_to_export(self) -> str:
        path = self.latest_checkpoint()
        if not path and self._warm_start_settings:
            path = self._warm_start_settings.ckpt_to_initialize_from
            if tf.io.gfile.isdir(path):
                path = tf.train.latest_checkpoint(path)
        if not path:
            start = self._warm_start_settings
            where = (
                f" nor at {start.ckpt_to_initialize_from}, where it starts from" if start else ""
            )
            raise ValueError(f"Couldn't find trained model at {self._config.model_dir}{where}.")
        return path


def _only_given(for_tensorflow: str | None) -> dict[str, Any]:
    """The argument if it was given: subclasses may have overridden the method that takes it."""
    return {} if for_tensorflow is None else {"for_tensorflow": for_tensorflow}
