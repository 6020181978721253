"""The TensorFlow that a file was written for: the meaning of its `import tensorflow as tf`."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator

from estimator2strategy.engine.names import tables
from estimator2strategy.tools.migrate.module import Facts
from estimator2strategy.tools.reader import symbol_uses
from estimator2strategy.tools.reader.source import Call, Source, parents

_SESSIONS = {
    "tf.Session",
    "tf.InteractiveSession",
    "tf.train.MonitoredSession",
    "tf.train.MonitoredTrainingSession",
    "tf.train.SingularMonitoredSession",
    "tf.train.Supervisor",
}
# Calls at a module's top level that build no graph.
_NO_GRAPH = ("tf.app.", "tf.flags.", "tf.logging.", "tf.compat.v1.", "tf.enable", "tf.disable")
# The last part of a function's name is enough: these have no namesakes.
_LOOKUPS = {
    "Embedding", "embedding_lookup", "embedding_lookup_sparse", "safe_embedding_lookup_sparse",
    "embedding_column", "shared_embedding_columns",
}  # fmt: skip
_STRATEGIES = ("tf.distribute.", "tf.contrib.distribute.", "tf.compat.v2.distribute.")


class Era(enum.Enum):
    """The TensorFlow that a file was written for."""

    TF1 = "TF 1.x"
    TF2 = "TF 2.0 to 2.15"
    UNKNOWN = "either"


def era(source: Source) -> Era:
    """The era of a file, by the names in it."""
    if any(target.module.startswith("tensorflow.compat.v1") for target, _ in source.imports):
        return Era.TF1
    if any(map(_is_only_in_tf1, symbol_uses.uses(source))):
        return Era.TF1
    return Era.TF2 if any(map(_is_only_in_tf2, symbol_uses.uses(source))) else Era.UNKNOWN


def facts(sources: Iterable[Source]) -> Facts:
    """Facts about the files of a program together; they know one another (`Project`)."""
    sources = list(sources)
    return Facts(
        is_legacy=any(era(source) is Era.TF1 for source in sources),
        has_sessions=any(_needs_graph_mode(source) for source in sources),
        restores_by_name=any(
            call.name == "tf.train.init_from_checkpoint" for s in sources for call in s.calls
        ),
        of_specs=frozenset(
            keyword.arg
            for s in sources
            for call in s.calls
            if call.last.endswith("EstimatorSpec")
            for keyword in call.node.keywords
            if keyword.arg
        ),
        imported=frozenset(
            part
            for s in sources
            for target, _ in s.imports
            if target.module.partition(".")[0] != "estimator2strategy"
            for part in (*target.module.split("."), target.name or "")
        ),
        has_strategies=any(_makes_a_strategy(call) for s in sources for call in s.calls),
        looks_up_rows=any(call.last in _LOOKUPS for s in sources for call in s.calls),
    )


def _makes_a_strategy(call: Call) -> bool:
    name = call.name or ""
    return name.startswith(_STRATEGIES) and name.endswith("Strategy")


def is_program(source: Source) -> bool:
    """True if a file is one that is run, and not imported."""
    return any(
        isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
        for node in source.tree.body
    )


def _is_only_in_tf1(use: symbol_uses.Use) -> bool:
    if use.flavour is not symbol_uses.Flavour.PLAIN or use.name.startswith("tf.estimator"):
        return False
    if use.name == "tf.contrib" or use.name.startswith("tf.contrib."):
        return True
    return use.row is not None and use.in_tensorflow is False and "python" not in use.name


def _is_only_in_tf2(use: symbol_uses.Use) -> bool:
    if use.flavour is symbol_uses.Flavour.V1:
        return True
    return (
        use.flavour is symbol_uses.Flavour.PLAIN and use.row is None and use.in_tensorflow is True
    )


def _needs_graph_mode(source: Source) -> bool:
    return any(
        call.name in _SESSIONS or (call.scope is source.scope and _builds(call))
        for call in source.calls
    )


def _builds(call: Call) -> bool:
    """True if a call at the top of a file adds to the default graph."""
    name = call.name or ""
    return (
        name.startswith("tf.")
        and not name.startswith((*_NO_GRAPH, "tf.estimator.", "tf.contrib.tpu."))
        and not any(isinstance(outer, ast.If) for outer in parents(call.node))
        and tables.exists(name, "v1") is True
        and name.rpartition(".")[2][:1].islower()
    )


def imports_of_tensorflow(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that name TensorFlow or its estimator."""
    seen = set()
    for target, _ in source.imports:
        top = target.module.partition(".")[0]
        ours = top in ("tensorflow", "tensorflow_estimator") and not target.level
        if ours and target.node not in seen:
            seen.add(target.node)
            yield target.node  # type: ignore[misc]
