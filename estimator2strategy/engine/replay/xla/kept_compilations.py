"""Compilations of JAX that are kept on disk, so that a second start compiles nothing.

    function = kept(jax.jit(block))
    function(*arguments)        # compiles, or loads what an earlier process has compiled

They lie in the folder `jax` of `engine/kept_folder.py`. Where a program has set a cache of JAX,
that one is used. JAX's settings are left as they were found.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import tensorflow as tf
from jax.experimental.compilation_cache import compilation_cache

from estimator2strategy.engine import kept_folder, patches
from estimator2strategy.engine.replay import freed_memory

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
            results = function(*arguments)
        freed_memory.give_back()
        return results

    return called


@contextlib.contextmanager
def kept_compilations() -> Iterator[None]:
    """Lets JAX look for compilations on disk, and keep new ones there."""
    of_program = getattr(jax.config, _FOLDER)
    folder = None if of_program else kept_folder.folder_of("jax")
    if folder is None:
        yield
        return
    settings = {name: getattr(jax.config, name) for name in _SETTINGS} | {_FOLDER: of_program}
    patches.noted("kept compilations")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _set(_SETTINGS | {_FOLDER: str(folder)})
        try:
            yield
        finally:
            _set(settings)
    others = [w for w in said if not str(w.message).startswith(_DAMAGED)]
    for other in others:
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if len(others) < len(said):
        tf.compat.v1.logging.info(
            "A kept compilation in %s is damaged: the folder is emptied.", folder
        )
        kept_folder.clear(folder)
    else:
        kept_folder.drop_oldest(folder, _LIMIT)


def _set(settings: dict[str, object]) -> None:
    patches.noted("kept compilations")
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX reads its settings once
