"""Applies a `ConfigProto` to TF2, where one runtime serves the whole process.

    with applied(run_config.session_config):
        ...

Settings of the runtime hold while the body runs. Those that TensorFlow takes only before it starts
its devices stay. Fields that have no meaning here are named in one warning.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine import _tf_private, patches

tf1 = tf.compat.v1
OptimizerOptions = tf1.OptimizerOptions


class _Switch(NamedTuple):
    """A setting of the runtime that can be changed, and put back, at any time."""

    field: str
    wanted: Callable[[Any], Any]
    get: Callable[[], Any]
    set: Callable[[Any], None]


def _xla(level: int) -> bool:
    return level in (OptimizerOptions.ON_1, OptimizerOptions.ON_2)


def _set_log_of_placement(enabled: bool) -> None:
    soft = tf.config.get_soft_device_placement()
    tf.debugging.set_log_device_placement(enabled)
    patches.noted("soft placement")
    tf.config.set_soft_device_placement(soft)  # goes off with the log, as of TensorFlow 2.21


_SWITCHES = (
    _Switch(
        "log_device_placement",
        bool,
        tf.debugging.get_log_device_placement,
        _set_log_of_placement,
    ),
    _Switch(
        "graph_options.optimizer_options.global_jit_level",
        _xla,
        lambda: bool(tf.config.optimizer.get_jit()),
        tf.config.optimizer.set_jit,
    ),
)


class _Start(NamedTuple):
    """A setting that TensorFlow takes only before it starts its devices."""

    field: str
    get: Callable[[], Any]
    set: Callable[[Any], None]


def _memory_growth() -> bool:
    return any(
        map(tf.config.experimental.get_memory_growth, tf.config.list_physical_devices("GPU"))
    )


def _set_memory_growth(allow: bool) -> None:
    for gpu in tf.config.list_physical_devices("GPU"):
        patches.noted("session config")
        tf.config.experimental.set_memory_growth(gpu, allow)


_STARTS = (
    _Start(
        "intra_op_parallelism_threads",
        tf.config.threading.get_intra_op_parallelism_threads,
        tf.config.threading.set_intra_op_parallelism_threads,
    ),
    _Start(
        "inter_op_parallelism_threads",
        tf.config.threading.get_inter_op_parallelism_threads,
        tf.config.threading.set_inter_op_parallelism_threads,
    ),
    _Start("gpu_options.allow_growth", _memory_growth, _set_memory_growth),
)

# How Grappler rewrites what runs; all fields of it have a meaning.
_REWRITES = "graph_options.rewrite_options."

# Of Grappler's optimizers those that find next to nothing in a step on a CPU, and take their time.
_NOT_FOR_CPUS = (
    "implementation_selector",
    "layout_optimizer",
    "loop_optimization",
    "shape_optimization",
)

# The replay places ops itself, so that placement is always soft; the cluster comes from TF_CONFIG
# or a resolver, which write these fields.
_SETTLED = frozenset(
    [
        "allow_soft_placement",
        "cluster_def.job",
        "device_filters",
        "isolate_session_state",
    ]
)


def default_session_config() -> Any:
    """The session config of an Estimator where the program gave none.

    Source: `get_default_session_config`, tensorflow_estimator 2.15 run_config.py.
    """
    config = tf1.ConfigProto(allow_soft_placement=True)
    rewrite_options = config.graph_options.rewrite_options
    rewrite_options.meta_optimizer_iterations = rewrite_options.ONE
    return config


@contextlib.contextmanager
def applied(session_config: Any) -> Iterator[None]:
    """Applies the settings of a `ConfigProto` (or None) while the body runs."""
    values = _values(session_config.SerializeToString()) if session_config else {}
    known = {setting.field for setting in (*_SWITCHES, *_STARTS)} | _SETTLED
    unknown = tuple(
        sorted(name for name in values.keys() - known if not name.startswith(_REWRITES))
    )
    if unknown:
        _warn_of_fields(unknown)
    for start in _STARTS:
        if values.get(start.field):
            _start(start, values[start.field])
    with contextlib.ExitStack() as stack:
        for switch in _SWITCHES:
            if switch.field in values:
                stack.callback(switch.set, switch.get())
                switch.set(switch.wanted(values[switch.field]))
        if any(name.startswith(_REWRITES) for name in values):
            options = session_config.graph_options.rewrite_options
            stack.enter_context(_tf_private.rewrite_options(options))
        yield


def not_rewritten() -> contextlib.AbstractContextManager[None]:
    """Keeps Grappler off programs first called in the body: it pays for those that run often."""
    options = tf1.GraphOptions().rewrite_options
    options.disable_meta_optimizer = True
    return _tf_private.rewrite_options(options)


def rewritten_a_little() -> contextlib.AbstractContextManager[None]:
    """Limits Grappler to what pays on a CPU, for programs first called in the body.

    For cores that are emulated: their program is as many times as large as there are cores. What it
    computes stays the same to the bit. If somebody has chosen how programs are rewritten, that
    holds.
    """
    if not _tf_private.rewrites_as_usual():
        return contextlib.nullcontext()
    options = tf1.GraphOptions().rewrite_options
    for optimizer in _NOT_FOR_CPUS:
        setattr(options, optimizer, options.OFF)
    options.memory_optimization = options.NO_MEM_OPT
    options.disable_model_pruning = options.disable_tfg_optimizer = True
    return _tf_private.rewrite_options(options)


def applied_to_each(session_config: Any, values: Generator[Any, None, None]) -> Iterator[Any]:
    """Yields `values`; the settings hold while each is computed, and not in between."""
    with contextlib.closing(values):
        while True:
            with applied(session_config):
                try:
                    value = next(values)
                except StopIteration:
                    return
            yield value


@functools.lru_cache(maxsize=8)  # each batch of a prediction asks for the same
def _values(session_config: bytes) -> Mapping[str, Any]:
    return dict(_fields(tf1.ConfigProto.FromString(session_config)))


def _fields(message: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of all fields that are set."""
    for field, value in message.ListFields():
        if isinstance(value, type(message)) or hasattr(value, "ListFields"):
            yield from _fields(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", value


def _start(setting: _Start, value: Any) -> None:
    if setting.get() == value:
        return
    try:
        setting.set(value)
    except RuntimeError:
        _warn_of_start(setting.field, value)


@functools.cache
def _warn_of_start(field: str, value: Any) -> None:
    tf1.logging.warn(
        "session_config.%s = %s came too late: TensorFlow has started its devices, with another "
        "value. Train before anything else runs TensorFlow ops, or use tf.config at the start of "
        "the program.",
        field,
        value,
    )


@functools.cache
def _warn_of_fields(fields: tuple[str, ...]) -> None:
    tf1.logging.warn(
        "Fields of session_config that have no effect, because there is no tf.Session: %s.",
        ", ".join(fields),
    )
