"""`saved_model_export_utils` and `gc` of `tf.contrib.learn.utils`: when, how, and which to keep.

    newest = largest_export_versions(3)
    for path in negation(newest)(get_paths(folder, parser)):
        tf.io.gfile.rmtree(path.path)

A filter takes a list of Paths and returns those that it selects, sorted.
"""

from __future__ import annotations

import collections
import heapq
import inspect
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.tf1.contrib.layers.column_kinds import create_feature_spec_for_parsing
from estimator2strategy.tf1.contrib.learn.early_estimator import Estimator
from estimator2strategy.tf1.contrib.learn.model_fn_ops import (
    MetricKey,
    build_parsing_serving_input_fn,
)

MAX_DIRECTORY_CREATION_ATTEMPTS = 10


def get_timestamped_export_dir(export_dir_base: str | bytes) -> bytes:
    """The path of a new folder named after the seconds since 1970; it is not made yet."""
    for _ in range(MAX_DIRECTORY_CREATION_ATTEMPTS):
        seconds = str(int(time.time()))
        path = os.path.join(tf.compat.as_bytes(export_dir_base), tf.compat.as_bytes(seconds))
        if not tf.io.gfile.exists(path):
            return cast(bytes, path)
        time.sleep(1)
    raise RuntimeError(
        "Failed to obtain a unique export directory name after "
        f"{MAX_DIRECTORY_CREATION_ATTEMPTS} attempts."
    )


def get_temp_export_dir(timestamped_export_dir: str | bytes) -> bytes:
    """The path beside an export's whose name starts with "temp-", which a server does not load."""
    folder, name = os.path.split(tf.compat.as_bytes(timestamped_export_dir))
    return cast(bytes, os.path.join(folder, b"temp-" + name))


def _versioned(path: Path) -> Path | None:
    name = os.path.basename(path.path)
    if len(name) != 10 or not name.isdigit():
        return None
    return path._replace(export_version=int(name))


def get_most_recent_export(export_dir_base: str | bytes) -> Path | None:
    """The newest export in a folder of them; None if there is none."""
    newest = largest_export_versions(1)
    return next(iter(newest(get_paths(export_dir_base, _versioned))), None)


def garbage_collect_exports(export_dir_base: str | bytes, exports_to_keep: int | None) -> None:
    """Deletes all but the newest exports of a folder; none if `exports_to_keep` is None."""
    if exports_to_keep is None:
        return
    old = negation(largest_export_versions(exports_to_keep))
    for path in old(get_paths(export_dir_base, _versioned)):
        tf.io.gfile.rmtree(path.path)


class Path(NamedTuple):
    """A file or a folder, and the version that its name tells."""

    path: str
    export_version: Any


Filter = Callable[[Sequence[Path]], list[Path]]


def get_paths(base_dir: str | bytes, parser: Callable[[Path], Path | None]) -> list[Path]:
    """The Paths in a folder, sorted: those for which `parser` returns one, with its version."""
    folder = tf.compat.as_str_any(base_dir)
    # In a bucket, names of folders end in a slash.
    names = [tf.compat.as_str_any(name).rstrip("/") for name in tf.io.gfile.listdir(folder)]
    exports = [parser(Path(os.path.join(folder, name), None)) for name in names]
    return sorted(path for path in exports if path)


def largest_export_versions(n: int) -> Filter:
    """A filter that selects the `n` largest versions."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        known = [(p.export_version, i) for i, p in enumerate(paths) if p.export_version is not None]
        return sorted(paths[i] for _, i in heapq.nlargest(n, known))

    return keep


def one_of_every_n_export_versions(n: int) -> Filter:
    """A filter that selects the largest version of each interval [0, n], (n, 2n], ..."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        largest: dict[int, Path] = {}
        for path in paths:
            version = path.export_version
            if version is None:
                continue
            interval = math.floor((version - 1) / n) if version else 0
            if interval not in largest or largest[interval].export_version < version:
                largest[interval] = path
        return sorted(largest.values())

    return keep


def mod_export_version(n: int) -> Filter:
    """A filter that selects versions that are multiples of `n`."""
    return lambda paths: sorted(path for path in paths if path.export_version % n == 0)


def union(lf: Filter, rf: Filter) -> Filter:
    """A filter that selects what one of two selects."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Filter) -> Filter:
    """A filter that selects what another does not."""
    return lambda paths: sorted({*paths} - {*f(paths)})


_v1 = tf.compat.v1

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"


class ExportStrategy(
    collections.namedtuple("ExportStrategy", ("name", "export_fn", "strip_default_attrs"))
):
    """A name, and a function that exports an Estimator to a path."""

    __slots__ = ()

    def __new__(
        cls, name: str, export_fn: Callable[..., Any], strip_default_attrs: bool | None = None
    ) -> ExportStrategy:
        return super().__new__(cls, name, export_fn, strip_default_attrs)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None = None,
        eval_result: Any = None,
    ) -> Any:
        """The result of the function, which gets those of the arguments that it takes."""
        offered = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }
        taken = inspect.signature(self.export_fn).parameters
        if "eval_result" in taken and "checkpoint_path" not in taken:
            raise ValueError("An export_fn accepting eval_result must also accept checkpoint_path.")
        given = {name: value for name, value in offered.items() if name in taken}
        return self.export_fn(estimator, export_path, **given)


def make_export_strategy(
    serving_input_fn: Callable[..., Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """A strategy "Servo" that writes SavedModels, and keeps the newest `exports_to_keep`."""

    key = default_output_alternative_key

    def export_fn(
        estimator: Any,
        export_dir_base: str,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> Any:
        if isinstance(estimator, Estimator):
            how = (key, assets_extra, as_text, checkpoint_path)
            strip = bool(strip_default_attrs)
            path = estimator.export_savedmodel(
                export_dir_base, serving_input_fn, *how, strip_default_attrs=strip
            )
        elif key is not None:
            raise ValueError(
                f"default_output_alternative_key is not supported in core Estimator. Given: {key}"
            )
        else:
            path = estimator.export_saved_model(
                export_dir_base, serving_input_fn, assets_extra, as_text, checkpoint_path
            )
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return path

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


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
