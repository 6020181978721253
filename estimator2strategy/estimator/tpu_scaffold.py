"""The Scaffold of a TPUEstimatorSpec, which is made on the host."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.replicated import RecordedReplicas
from estimator2strategy.engine.user_code import location, user_line

tf1 = tf.compat.v1


def scaffold_of(spec: Any, replicas: RecordedReplicas) -> tf1.train.Scaffold | None:
    """Calls scaffold_fn, on the host.

    Raises:
        ValueError: It returns no Scaffold, or uses what the cores compute from a batch.
    """
    scaffold_fn = getattr(spec, "scaffold_fn", None)
    if scaffold_fn is None:
        return None
    graph = tf1.get_default_graph()
    before = len(graph.get_operations())
    scaffold = scaffold_fn()
    if scaffold is None:
        raise ValueError("TPUEstimatorSpec.scaffold_fn returns None, which is not allowed")
    capture = replicas.capture(since=before)
    if capture and capture.user:
        raise ValueError(
            f"scaffold_fn {location(scaffold_fn)}: op {capture.user.name} depends on a TPU "
            "computation, which is not allowed. It was made at "
            f"{user_line(capture.user.traceback)}. What the cores compute reaches the host through "
            "a host_call."
        )
    if replicas.left_out and scaffold.summary_op is None:
        summary = replicas.left_out[0].op
        raise ValueError(
            f"scaffold_fn {location(scaffold_fn)}: Scaffold.finalize merges all summaries, and "
            f"{summary.name} depends on a TPU computation, which is not allowed. It was made at "
            f"{user_line(summary.traceback)}. Make it in a host_call."
        )
    return scaffold
