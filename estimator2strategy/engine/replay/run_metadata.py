"""Fills the `RunMetadata` of a run that is to be traced with the time that each op took.

    with traced(options, run_metadata):
        values = function(*feeds)

The times come from TensorFlow's profiler; ops go by their names in the recorded graph.
"""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1

# The profiler calls an execution of an op `name:Type`; a replayed op's name has the scope of its
# importer, and that of the loop of steps, before its name in the recorded graph.
_OP_EVENT = re.compile(r"(?:.*?/)?replay(?:_\d+)?/(?P<name>[^:]+):(?P<type>\w+)")


@contextlib.contextmanager
def traced(options: Any, run_metadata: Any) -> Iterator[None]:
    """Fills `run_metadata.step_stats` with the ops that the body runs, if `options` ask for it.

    Args:
        options: A `RunOptions` or None. Of its fields, only `trace_level` has a meaning here.
        run_metadata: A `RunMetadata` or None.
    """
    if others := _other_fields(options.SerializeToString()) if options else ():
        _warn_of_options(others)
    if run_metadata is None or not options or options.trace_level == tf1.RunOptions.NO_TRACE:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.profiler.experimental.start(folder)
        except tf.errors.AlreadyExistsError:
            tf1.logging.warn("RunMetadata stays empty: the program is being profiled already.")
            yield
            return
        try:
            yield
        finally:
            tf.profiler.experimental.stop()
        for path in Path(folder).rglob("*.xplane.pb"):
            _add_stats(run_metadata.step_stats, _tf_private.XSpace.FromString(path.read_bytes()))


@functools.cache
def _other_fields(options: bytes) -> tuple[str, ...]:
    """The fields of serialized `RunOptions` that are set and have no meaning here."""
    others = tf1.RunOptions.FromString(options)
    for field in ("trace_level", "debug_options"):  # MonitoredSession sets the latter, to nothing
        others.ClearField(field)
    return tuple(field.name for field, _ in others.ListFields())


@functools.cache
def _warn_of_options(fields: tuple[str, ...]) -> None:
    tf1.logging.warn(
        "RunOptions.%s has no effect: there is no tf.Session, only `trace_level` has a meaning.",
        ", ".join(fields),
    )


def _add_stats(stats: Any, space: Any) -> None:
    """Adds the executions of recorded ops, one device per plane."""
    for plane in space.planes:
        device = stats.dev_stats.add(device=plane.name)
        for line in plane.lines:
            for event in line.events:
                op = _OP_EVENT.fullmatch(plane.event_metadata[event.metadata_id].name)
                if op is None:
                    continue
                micros = event.duration_ps // 10**6
                device.node_stats.add(
                    node_name=op["name"],
                    timeline_label=f"{op['name']} = {op['type']}()",
                    all_start_micros=(line.timestamp_ns + event.offset_ps // 1000) // 1000,
                    op_end_rel_micros=micros,
                    all_end_rel_micros=micros,
                    thread_id=line.id % 2**31,
                )
