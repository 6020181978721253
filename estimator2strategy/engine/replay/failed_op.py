"""A step that fails: the error names the op as the program does, and the line that made it.

    with naming_failures(recorded, graph):
        step()

The error keeps its class. Its message has the form of TensorFlow 1.15, `op` is the op of the
recorded graph, and printing the error adds "Original stack trace for" it, as it did then.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import known, label_of, labels_in
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.replay.failed_input import (
    BEFORE,
    NO_FAILURES,
    OURS,
    is_failed_input,
    line_in_python,
    named_input_failure,
)
from estimator2strategy.engine.user_code import user_frame, user_line

# TensorFlow's words between and after the failures of a message; BEFORE has those before.
_BETWEEN = re.compile(r"^ *\(\d+\) (?P<code>[A-Z_]+): *", re.MULTILINE)
_AFTER = re.compile(
    r"(?:\n\d+ successful operations\.)?(?:\n\d+ derived errors ignored\.)?"
    r"(?: *\[Op:[^\]]*\])?\s*\Z"
)
# Inputs that are not named beside an op: the arguments of functions, and constants.
_SAY_NOTHING = frozenset({"Placeholder", "Const"})
# Never a part of what an Assert prints, such as `[[1 2]]`.
_NODE_LINE = re.compile(r"\n\t \[\[(?:\{\{node [^\n]*\}\}|[^\s\[\]{}]+)\]\]")


class FailedOp(NamedTuple):
    """A recorded op that a message of TensorFlow names.

    Attributes:
        op: The op: of the recorded graph, or of a function that is called from it. The call, where
            TensorFlow keeps nothing of the function (of a `Defun`).
        node: The op's node.
        name: As the program knows it: an op of a function has the name of the call before its own.
        call: The op of the recorded graph that calls the function; `op`, if there is none.
    """

    op: tf.Operation
    node: NodeDef
    name: str
    call: tf.Operation


@contextlib.contextmanager
def naming_failures(recorded: RecordedGraph, graph: tf.Graph) -> Iterator[None]:
    """Gives the error of a failing step the program's name of the op, and the user's line.

    Args:
        recorded: The nodes that run.
        graph: The program's graph, of which `recorded` has the nodes, or those of an equal one.

    Raises:
        tf.errors.OpError: In place of TensorFlow's own, of the same class.
    """
    try:
        yield
    except tf.errors.OpError as error:
        named = named_failure(recorded, graph, error)
        if named is error:
            raise
        raise named from error


def named_failure(recorded: RecordedGraph, graph: tf.Graph, error: Exception) -> Exception:
    """Returns the error with op and line added; `error` itself if they are not known."""
    failed: Any = error
    if not isinstance(failed, tf.errors.OpError) or isinstance(failed, NO_FAILURES):
        return error
    message = str(failed.message)
    if failed.op is not None or OURS in message or type(failed) is tf.errors.OpError:
        return error
    if is_failed_input(recorded, message):
        return named_input_failure(recorded, error)
    failures: dict[str, tuple[FailedOp, str]] = {}
    for said in _failures(message):
        culprit = failed_op(recorded, graph, said)
        if culprit:
            failures.setdefault(culprit.name, (culprit, said))
    if not failures:
        return error
    text = "\n".join(_described(culprit, said) for culprit, said in failures.values())
    first = next(iter(failures.values()))[0]
    named: Exception = type(failed)(_node_def(first), first.op, text)
    return named


def _node_def(failed: FailedOp) -> NodeDef:
    node = NodeDef()
    node.CopyFrom(failed.node)
    node.name = failed.name
    node.ClearField("experimental_debug_info")
    return node


def failed_op(recorded: RecordedGraph, graph: tf.Graph, said: str) -> FailedOp | None:
    """The first op of the program that has failed, by what TensorFlow said; None if unknown."""
    candidates = (_op_of(recorded, graph, label) for label in labels_in(said, failed=True))
    return next((failed for failed in candidates if failed), None)


def named_ops(recorded: RecordedGraph, said: str) -> list[str]:
    """A line for each op of the program that TensorFlow named: type, name, user's line."""
    candidates = (_op_of(recorded, recorded.graph, label) for label in labels_in(said, failed=True))
    return list(dict.fromkeys(_made(failed) for failed in candidates if failed))


def _op_of(recorded: RecordedGraph, graph: tf.Graph, label: str) -> FailedOp | None:
    name = known(label, recorded.position)
    if name is None:
        return _op_inside(recorded, graph, label)
    op = _operation(graph, name) or _operation(recorded.graph, name)
    return FailedOp(op, recorded[name], name, op)


def _op_inside(recorded: RecordedGraph, graph: tf.Graph, label: str) -> FailedOp | None:
    """The op of a function, by its label, or by its name if no other op has it."""
    inner = [node for function in recorded.library.values() for node in function.node_def]
    if all(label_of(node) != label for node in inner):
        labels = {label_of(node) for node in inner if node.name == label}
        if len(labels) != 1:
            return None
        (label,) = labels
    way = _way(recorded, recorded.nodes, label, set())
    if way is None:
        return None
    call = _operation(graph, way[0].name) or _operation(recorded.graph, way[0].name)
    made_from = [None, *(_made_from(recorded, node) for node in way[1:])]
    name = "/".join(op.name if op else n.name for op, n in zip(made_from, way, strict=True))
    # TensorFlow keeps no graph of a `Defun`.
    return FailedOp(made_from[-1] or call, way[-1], name, call)


def _made_from(recorded: RecordedGraph, node: NodeDef) -> Any:
    """The op that became a node of a function; None if TensorFlow does not keep it."""
    function, _, name = label_of(node).partition("/")
    body = _tf_private.func_graph(recorded.graph, recorded.name_in_graph(function))
    # A node is called otherwise than its op where a result of the function has the op's name.
    names = (name, re.sub(r"_\d+$", "", name)) if node.name == name else ()
    ops = (_operation(body, name) for name in names if body is not None)
    return next((op for op in ops if op and op.type == node.op and user_frame(op.traceback)), None)


def _way(recorded: RecordedGraph, nodes: Any, label: str, seen: set[str]) -> list[NodeDef] | None:
    """The nodes by which one of `nodes` leads to that with a label: calls, and then that one."""
    for node in nodes:
        if label_of(node) == label:
            return [node]
        for name in _called(recorded, node):
            if name not in seen:
                seen.add(name)
                rest = _way(recorded, recorded.library[name].node_def, label, seen)
                if rest:
                    return [node, *rest]
    return None


def _called(recorded: RecordedGraph, node: NodeDef) -> Iterator[str]:
    for attr in node.attr.values():
        names = (attr.func.name, *(f.name for f in attr.list.func))
        yield from (name for name in names if name in recorded.library)


def _operation(graph: tf.Graph, name: str) -> Any:
    """The op of a graph; None if there is none."""
    try:
        return graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return None


def _failures(message: str) -> Iterator[str]:
    """The part of a message about each failure, with the names of its nodes."""
    inner = _AFTER.sub("", BEFORE.sub("", message))
    first, *rest = _BETWEEN.split(inner)
    if first.strip():
        yield inner
        return
    for code, said in zip(rest[::2], rest[1::2], strict=True):
        if code != "CANCELLED":  # by another failure
            yield said


def _described(failed: FailedOp, said: str) -> str:
    """The message of one failure, in the form of TensorFlow 1.15's."""
    op, name = failed.op, failed.name
    told = _NODE_LINE.sub("", _plain_names(said, name)).rstrip()
    lines = [f"{told}\n\t [[node {name} ({_defined(op)}) ]]", f"  {_made(failed)}"]
    forward = _tf_private.forward_op(op) or _tf_private.forward_op(failed.call)
    if forward is not None:
        at = user_line(forward.traceback)
        lines.append(f"  It is in the gradient of {forward.type} {forward.name!r}, made at {at}")
    python = line_in_python(said)
    if python:
        lines.append(f"  The Python function that it calls failed at {python}")
    # The prefix of the names: the calls that lead to the op.
    scope = name.removesuffix(op.name) if name.endswith(op.name) else ""
    sources = [tensor.op for tensor in op.inputs if tensor.op.type not in _SAY_NOTHING]
    if sources:
        lines.append("Errors may have originated from an input operation.")
        lines.append(f"Input Source operations connected to node {name}:")
        lines += dict.fromkeys(f" {scope}{s.name} ({_defined(s)})" for s in sources)
    return "\n".join(lines)


def _made(failed: FailedOp) -> str:
    """Type, name and the user's line."""
    is_call = failed.op is failed.call and failed.node.name != failed.op.name
    made = "in a function that is called at" if is_call else "made at"
    return f"{failed.node.op} {failed.name!r}, {made} {user_line(failed.op.traceback)}"


def _defined(op: tf.Operation) -> str:
    frame = user_frame(op.traceback)
    return f"defined at {frame.filename}:{frame.lineno}" if frame else "defined at unknown line"


def _plain_names(said: str, name: str) -> str:
    """A message in which the op has no longer name than `name`: of a placeholder, for example."""
    return re.sub(rf"[^\s'\"]*\breplay(?:_\d+)?/{re.escape(name)}(?![\w./-])", name, said)
