"""`saved_model_export_utils` of `tf.contrib.learn.utils` of TF 1.15: when to export, and how."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.tf1.contrib.layers.column_kinds import create_feature_spec_for_parsing
from estimator2strategy.tf1.contrib.learn.experiment_runs import (
    ExportStrategy,
    make_export_strategy,
)
from estimator2strategy.tf1.contrib.learn.model_fn_ops import (
    MetricKey,
    build_parsing_serving_input_fn,
)

_v1 = tf.compat.v1

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"


def make_parsing_export_strategy(
    feature_columns: Iterable[Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    target_core: bool = False,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """`make_export_strategy` of a model that is served strings of `tf.Example`.

    Args:
        feature_columns: Columns of `tf.contrib.layers`: the features of an Example.
        target_core: True for a `tf.estimator.Estimator`.
        default_output_alternative_key, assets_extra, as_text, exports_to_keep,
            strip_default_attrs: As for `make_export_strategy`.
    """
    spec = create_feature_spec_for_parsing(feature_columns)
    build = core.export.build_parsing_serving_input_receiver_fn
    return make_export_strategy(
        build(spec) if target_core else build_parsing_serving_input_fn(spec),
        default_output_alternative_key=default_output_alternative_key,
        assets_extra=assets_extra,
        as_text=as_text,
        exports_to_keep=exports_to_keep,
        strip_default_attrs=strip_default_attrs,
    )


def _is_better(best: Mapping[str, Any] | None, candidate: Mapping[str, Any] | None) -> bool:
    for what, result in (("curr_best", best), ("cand", candidate)):
        if not result or MetricKey.LOSS not in result:
            raise ValueError(f"{what}_eval_result cannot be empty or no loss is found in it.")
    return bool(best[MetricKey.LOSS] > candidate[MetricKey.LOSS])  # type: ignore[index]


class BestModelSelector:
    """Remembers the best evaluation so far.

    Args:
        event_file_pattern: Event files of earlier evaluations; None: there were none.
        compare_fn: Takes the best result and a new one, and returns True if the new one is better;
            by default the one with the smaller loss is.
    """

    def __init__(
        self,
        event_file_pattern: str | None = None,
        compare_fn: Callable[[Any, Any], bool] | None = None,
    ):
        self._compare_fn = compare_fn or _is_better
        self._best: Any = None
        for file in sorted(tf.io.gfile.glob(event_file_pattern)) if event_file_pattern else ():
            for event in _v1.train.summary_iterator(file):
                if event.HasField("summary"):
                    numbers = [v for v in event.summary.value if v.HasField("simple_value")]
                    self._note({v.tag: v.simple_value for v in numbers})

    def update(self, checkpoint_path: str, eval_result: Any) -> tuple[str, Any]:
        """The checkpoint and its result if it is the best so far, else ("", None).

        Raises:
            ValueError: There is no checkpoint, or no result.
        """
        if not checkpoint_path:
            raise ValueError("Checkpoint path is empty.")
        if eval_result is None:
            raise ValueError(f"{checkpoint_path} has empty evaluation results.")
        return (checkpoint_path, eval_result) if self._note(eval_result) else ("", None)

    def _note(self, result: Any) -> bool:
        is_best = self._best is None or self._compare_fn(self._best, result)
        self._best = result if is_best else self._best
        return is_best


def make_best_model_export_strategy(
    serving_input_fn: Callable[[], Any],
    exports_to_keep: int | None = 1,
    model_dir: str | None = None,
    event_file_pattern: str | None = None,
    compare_fn: Callable[[Any, Any], bool] | None = None,
    default_output_alternative_key: str | None = None,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """A strategy "best_model" that exports a checkpoint if its evaluation is the best so far.

    Args:
        serving_input_fn: As for `make_export_strategy`.
        exports_to_keep: Exports of one checkpoint to keep.
        model_dir: The folder that `event_file_pattern` starts from.
        event_file_pattern: Event files of earlier evaluations; without them and `model_dir`,
            a program that starts again forgets them.
        compare_fn: As for `BestModelSelector`.
        default_output_alternative_key, strip_default_attrs: As for `make_export_strategy`.
    """
    exporting = make_export_strategy(
        serving_input_fn,
        exports_to_keep=exports_to_keep,
        default_output_alternative_key=default_output_alternative_key,
        strip_default_attrs=strip_default_attrs,
    )
    known = model_dir and event_file_pattern
    files = os.path.join(model_dir, event_file_pattern) if known else None  # type: ignore[arg-type]
    selector = BestModelSelector(files, compare_fn)

    def export_fn(
        estimator: Any,
        export_dir_base: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None = None,
    ) -> Any:
        checkpoint_path = checkpoint_path or _v1.train.latest_checkpoint(estimator.model_dir)
        best, result = selector.update(checkpoint_path, eval_result)
        if not best or result is None:
            return ""
        folder = os.path.join(export_dir_base, os.path.basename(best))
        return exporting.export(estimator, folder, best, result)

    return ExportStrategy("best_model", export_fn)


def extend_export_strategy(
    base_export_strategy: ExportStrategy,
    post_export_fn: Callable[[Any, str], Any],
    post_export_name: str | None = None,
) -> ExportStrategy:
    """A strategy that changes each export of another.

    Args:
        base_export_strategy: The other one.
        post_export_fn: Takes the path of an export, and a folder in which it writes a changed one;
            returns the path of that.
        post_export_name: Name of the strategy, by default that of the other.
    """

    def export_fn(estimator: Any, export_dir_base: str, checkpoint_path: str | None = None) -> Any:
        export_dir_base = tf.compat.as_str_any(export_dir_base)
        before, after = (_new_folder(export_dir_base, kind) for kind in ("base", "post"))
        exported = base_export_strategy.export(estimator, before, checkpoint_path)
        changed = tf.compat.as_str_any(post_export_fn(exported, after))
        if not changed.startswith(after):
            raise ValueError(f"post_export_fn must return a sub-directory of {after}")
        path = os.path.join(export_dir_base, os.path.relpath(changed, after))
        if tf.io.gfile.exists(path):
            raise RuntimeError("Failed to obtain final export directory")
        tf.io.gfile.rename(changed, path)
        tf.io.gfile.rmtree(before)
        tf.io.gfile.rmtree(after)
        return path

    return ExportStrategy(post_export_name or base_export_strategy.name, export_fn)


def _new_folder(base: str, kind: str) -> str:
    path = os.path.join(base, f"temp-{kind}-export-{int(time.time())}")
    if tf.io.gfile.exists(path):
        raise RuntimeError(f"Failed to obtain {kind} export directory")
    tf.io.gfile.makedirs(path)
    return path
