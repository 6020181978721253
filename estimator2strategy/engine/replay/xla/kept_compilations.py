"""Compilations of JAX that are kept on disk, so that a second start compiles nothing.

    function = kept(jax.jit(block))
    function(*arguments)        # compiles, or loads what an earlier process has compiled

They lie in `estimator2strategy/jax` of the user's folder for caches (XDG_CACHE_HOME, or ~/.cache).
Nobody else may write there, because what is loaded is code. E2S_CACHE=off keeps nothing. Where a
program has set a cache of JAX, that one is used. JAX's settings are left as they were found.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import tensorflow as tf
from jax.experimental.compilation_cache import compilation_cache

from estimator2strategy.engine import patches

VARIABLE = "E2S_CACHE"

# The most bytes that are kept.
_LIMIT = 1 << 30
_SETTINGS = {
    # Small programs take long, too: a start has one for training, and others.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_enable_compilation_cache": True,
}
_FOLDER = "jax_compilation_cache_dir"
# The beginning of JAX's warning of an entry that it cannot load.
_DAMAGED = "Error reading persistent compilation cache entry"


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jitted function of one kind of arguments, whose first call may find it compiled."""
    calls = itertools.count()

    def called(*arguments: Any) -> Any:
        if next(calls):
            return function(*arguments)
        with kept_compilations():
            return function(*arguments)

    return called


@contextlib.contextmanager
def kept_compilations() -> Iterator[None]:
    """Lets JAX look for compilations on disk, and keep new ones there."""
    of_program = getattr(jax.config, _FOLDER)
    folder = None if of_program else folder_of_user()
    if folder is None:
        yield
        return
    found = {name: getattr(jax.config, name) for name in _SETTINGS} | {_FOLDER: of_program}
    patches.noted("kept compilations")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _set(_SETTINGS | {_FOLDER: str(folder)})
        try:
            yield
        finally:
            _set(found)
    others = [w for w in said if not str(w.message).startswith(_DAMAGED)]
    for other in others:
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if len(others) < len(said):
        tf.compat.v1.logging.info(
            "A kept compilation in %s is damaged: the folder is emptied.", folder
        )
        shutil.rmtree(folder, ignore_errors=True)
    else:
        _drop_oldest(folder, _LIMIT)


def _set(settings: dict[str, object]) -> None:
    patches.noted("kept compilations")
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX reads its settings once


def folder_of_user() -> Path | None:
    """The folder; None if nothing is to be kept, or if it is not the user's alone."""
    if os.environ.get(VARIABLE) == "off":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base, "estimator2strategy", "jax")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.stat()
    except OSError:
        return None  # of a user without a home, say
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        tf.compat.v1.logging.warning(
            "Compilations are not kept: others may write to %s. Make it yours alone "
            "(chmod go-w), or set %s=off.",
            folder,
            VARIABLE,
        )
        return None
    return folder if os.access(folder, os.W_OK) else None


def _drop_oldest(folder: Path, limit: int) -> None:
    """Deletes what was not used for longest, until no more than `limit` bytes are left."""
    files = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another process may have deleted it
            state = path.stat()
            if stat.S_ISREG(state.st_mode):
                files.append((max(state.st_atime, state.st_mtime), state.st_size, path))
    size = sum(of_file for _, of_file, _ in files)
    for _, of_file, path in sorted(files):
        if size <= limit:
            break
        path.unlink(missing_ok=True)
        size -= of_file
