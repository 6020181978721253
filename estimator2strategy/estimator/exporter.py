"""Exporters: which of the evaluated checkpoints `train_and_evaluate` exports as SavedModels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import behavior, callers
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.contract_rules import RULES

tf1 = tf.compat.v1

_COMPARED = frozenset({"best_eval_result", "current_eval_result"})


class Exporter:
    """One way to export, called after each evaluation of a `train_and_evaluate`.

    Not an abstract class: the original let programs leave a member out until it was used.

    Source: `tf.estimator.Exporter`, tensorflow_estimator 2.15.
    """

    @property
    def name(self) -> str | None:
        """Folder of these exports, within `<model_dir>/export`; must be overridden."""
        return None

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports a checkpoint, if this exporter's rule says so.

        Args:
            estimator: The Estimator.
            export_path: Folder of these exports.
            checkpoint_path: The checkpoint that was evaluated.
            eval_result: The result of `Estimator.evaluate` for it.
            is_the_final_export: True if training has ended with this checkpoint. Never, if
                `TrainSpec.max_steps` is None.

        Returns:
            Path of the folder that was written, None if there was none.
        """


class _SavedModelExporter(Exporter):
    """Exports each checkpoint that it is given.

    Args:
        name: Folder of these exports, within `<model_dir>/export`.
        serving_input_receiver_fn: As for `Estimator.export_saved_model`, and so are the others.
    """

    @checked(RULES)
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ):
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> Any:
        del eval_result, is_the_final_export
        return estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )


class FinalExporter(_SavedModelExporter):
    """Exports once, when training has ended.

    Args:
        name: Folder of these exports, within `<model_dir>/export`.
        serving_input_receiver_fn: As for `Estimator.export_saved_model`.
        assets_extra: Likewise.
        as_text: Likewise.

    Source: `tf.estimator.FinalExporter`, tensorflow_estimator 2.15.
    """

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> Any:
        if not is_the_final_export:
            return None
        tf1.logging.info("Performing the final export in the end of training.")
        return super().export(estimator, export_path, checkpoint_path, eval_result, True)


class _KeepsNewest:
    """Deletes older exports, by a method that programs call on exporters of their own too."""

    _exports_to_keep: int | None

    def _garbage_collect_exports(self, export_dir_base: str) -> None:
        """Deletes all but the newest exports; what is not named as an export is left alone."""
        if self._exports_to_keep is None:
            return
        names = [os.fsdecode(name).rstrip("/") for name in tf.io.gfile.listdir(export_dir_base)]
        exports = sorted(name for name in names if len(name) == 10 and name.isdigit())
        for name in exports[: -self._exports_to_keep]:
            path = os.path.join(export_dir_base, name)
            try:
                tf.io.gfile.rmtree(path)
            except tf.errors.NotFoundError as error:
                tf1.logging.warn("Can not delete %s recursively: %s", path, error)


class LatestExporter(_SavedModelExporter, _KeepsNewest):
    """Exports after each evaluation, and keeps the newest exports.

    Args:
        name: Folder of these exports, within `<model_dir>/export`.
        serving_input_receiver_fn: As for `Estimator.export_saved_model`.
        assets_extra: Likewise.
        as_text: Likewise.
        exports_to_keep: The number of newest exports to keep; None: all.

    Raises:
        ValueError: `exports_to_keep` is not positive.

    Source: `tf.estimator.LatestExporter`, tensorflow_estimator 2.15.
    """

    @checked(RULES)
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._exports_to_keep = _checked_number(exports_to_keep)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> Any:
        result = super().export(
            estimator, export_path, checkpoint_path, eval_result, is_the_final_export
        )
        self._garbage_collect_exports(export_path)
        return result


def _loss_smaller(
    best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]
) -> bool:
    """True if the current loss is below the best one.

    Raises:
        ValueError: One of them has no loss.
    """
    results = {"best_eval_result": best_eval_result, "current_eval_result": current_eval_result}
    for name, result in results.items():
        if not result or "loss" not in result:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_SavedModelExporter, _KeepsNewest):
    """Exports a checkpoint that is better than all before it, and keeps the newest exports.

    When training is resumed in another process, the best result so far is read from the event files
    of the evaluations. A program of TF 2 exports the first checkpoint that one object sees in any
    case. A program of TF 1.15 exports what is better than all in those files, which hold the first
    result already when it is compared.

    Args:
        name: Folder of these exports, within `<model_dir>/export`.
        serving_input_receiver_fn: As for `Estimator.export_saved_model`.
        event_file_pattern: Event files of the evaluations, relative to the model's folder. None:
            what was the best in another process is not known.
        compare_fn: `compare_fn(best_eval_result, current_eval_result)` tells whether the current
            results are better. The default compares losses.
        assets_extra: As for `Estimator.export_saved_model`.
        as_text: Likewise.
        exports_to_keep: The number of newest exports to keep; None: all.

    Raises:
        ValueError: compare_fn has other arguments, `exports_to_keep` is not positive.

    Source: `tf.estimator.BestExporter`, tensorflow_estimator 1.15 and 2.15.
    """

    @checked(RULES)
    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        _check_compare_fn(compare_fn)
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._exports_to_keep = _checked_number(exports_to_keep)
        self._model_dir: str | None = None
        self._best_eval_result: Mapping[str, Any] | None = None
        # TF 1.15 had no rule of its own for the first export of an object.
        self._has_exported = behavior.is_entered() or callers.makes_estimator()

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> Any:
        if self._event_file_pattern and self._model_dir != estimator.model_dir:
            tf1.logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            pattern = os.path.join(self._model_dir, self._event_file_pattern)
            self._best_eval_result = self._get_best_eval_result(pattern)
        if (
            self._has_exported
            and self._best_eval_result is not None
            and not self._better(eval_result)
        ):
            return None
        tf1.logging.info("Performing best model export.")
        self._best_eval_result = eval_result
        result = super().export(
            estimator, export_path, checkpoint_path, eval_result, is_the_final_export
        )
        self._garbage_collect_exports(export_path)
        self._has_exported = True
        return result

    def _better(self, eval_result: Mapping[str, Any] | None) -> bool:
        return self._compare_fn(
            best_eval_result=self._best_eval_result, current_eval_result=eval_result
        )

    def _get_best_eval_result(self, event_files: str) -> dict[str, float] | None:
        """The best among the results in event files; None if there are none."""
        best = None
        for path in tf.io.gfile.glob(event_files):
            for result in _results_in(path):
                if best is None or self._compare_fn(
                    best_eval_result=best, current_eval_result=result
                ):
                    best = result
        return best


def _results_in(event_file: str) -> Iterator[dict[str, float]]:
    """The results in an event file, up to the place where a killed process cut it."""
    try:
        for event in tf1.train.summary_iterator(event_file):
            values = event.summary.value
            result = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
            if result:
                yield result
    except tf.errors.DataLossError as error:
        tf1.logging.warning(
            "BestExporter reads %s up to a damaged record only: %s", event_file, error.message
        )


def _check_compare_fn(compare_fn: Any) -> None:
    if compare_fn is None:
        raise ValueError("`compare_fn` must not be None.")
    names = set(argument_names(compare_fn))
    for name in sorted(_COMPARED - names):
        raise ValueError(f"compare_fn ({location(compare_fn)}) must include {name} argument.")
    if names - _COMPARED:
        raise ValueError(
            f"compare_fn ({location(compare_fn)}) has following not expected args: "
            f"{sorted(names - _COMPARED)}"
        )


def _checked_number(exports_to_keep: int | None) -> int | None:
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise ValueError(
            f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
        )
    return exports_to_keep
