"""The folders of exports in `saved_model_export_utils` of `tf.contrib.learn` of TF 1.15."""

from __future__ import annotations

import os
import time
from typing import cast

import tensorflow as tf

from estimator2strategy.tf1.contrib.learn import kept_exports

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


def _versioned(path: kept_exports.Path) -> kept_exports.Path | None:
    name = os.path.basename(path.path)
    if len(name) != 10 or not name.isdigit():
        return None
    return path._replace(export_version=int(name))


def get_most_recent_export(export_dir_base: str | bytes) -> kept_exports.Path | None:
    """The newest export in a folder of them; None if there is none."""
    newest = kept_exports.largest_export_versions(1)
    return next(iter(newest(kept_exports.get_paths(export_dir_base, _versioned))), None)


def garbage_collect_exports(export_dir_base: str | bytes, exports_to_keep: int | None) -> None:
    """Deletes all but the newest exports of a folder; none if `exports_to_keep` is None."""
    if exports_to_keep is None:
        return
    old = kept_exports.negation(kept_exports.largest_export_versions(exports_to_keep))
    for path in old(kept_exports.get_paths(export_dir_base, _versioned)):
        tf.io.gfile.rmtree(path.path)
