"""Restores legacy name-based checkpoints, and says exactly why one does not fit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.runtime.direct_restore import DirectRestore

tf1 = tf.compat.v1


def restore(saver: tf1.train.Saver, session: tf1.Session, path: str) -> None:
    """`saver.restore`, with an error that lists each variable that does not fit.

    Raises:
        tf.errors.NotFoundError: The checkpoint lacks variables of the model.
        tf.errors.InvalidArgumentError: Shapes or dtypes differ.
    """
    expected = expected_variables(saver, session.graph)
    try:
        _refuse_other_shapes(expected, path)
        saver.restore(session, path)
    except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError) as error:
        differences = compare(expected, path)
        if not differences:
            raise
        # The op's place in the graph, its stack and the errors before this one say nothing of why.
        said = error.message.partition("\n\t [[")[0]
        raise type(error)(None, None, f"{said}\n\n{path} does not fit:\n{differences}") from None


def not_written(error: tf.errors.OpError) -> tf.errors.OpError:
    """The error to raise where a checkpoint could not be written.

    It keeps its type, but for OutOfRangeError (a file that became too large): in a training that
    would pass for the end of the input.
    """
    too_large = isinstance(error, tf.errors.OutOfRangeError)
    kind = tf.errors.ResourceExhaustedError if too_large else type(error)
    message = f"A checkpoint could not be written; the earlier ones are kept. {error.message}"
    return kind(error.node_def, error.op, message)


# The key of the global step in a checkpoint of objects: `model_to_estimator` can write such.
OBJECT_STEP = "estimator_global_step"


def step_in(path: str) -> int:
    """The global step that a checkpoint has."""
    reader = tf.train.load_checkpoint(path)
    by_object = f"{OBJECT_STEP}/.ATTRIBUTES/VARIABLE_VALUE"
    name = by_object if reader.has_tensor(by_object) else tf1.GraphKeys.GLOBAL_STEP
    return int(reader.get_tensor(name))


def is_there(path: str) -> bool:
    """True if this is a checkpoint's path, and not that of a folder."""
    return _tf_private.checkpoint_exists(path) and not tf.io.gfile.isdir(path)


def remove_unfinished(path: str) -> None:
    """Removes the files of a checkpoint that could not be written, to free its disk."""
    with contextlib.suppress(tf.errors.OpError):
        for name in tf.io.gfile.glob([f"{path}.*", f"{path}_temp*"]):
            tf.io.gfile.rmtree(name) if tf.io.gfile.isdir(name) else tf.io.gfile.remove(name)


def remove_file(path: str) -> None:
    """Removes a file that could not be written to its end, if it is there."""
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.remove(path)


def _refuse_other_shapes(
    expected: Mapping[str, tuple[tf.TensorShape, tf.DType]], path: str
) -> None:
    """Raises ValueError if a checkpoint has a variable in another shape.

    The runtime would not: its variables take the shape of the value that they are assigned.

    Source: the message of `tf.compat.v1.train.Saver.restore`, which programs match.
    """
    if not expected or not is_there(path):
        return
    shapes = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    for name, (shape, _) in expected.items():
        if name in shapes and not shape.is_compatible_with(shapes[name]):
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                "Restoring from checkpoint failed. This is most likely due to a mismatch between "
                "the current graph and the graph from the checkpoint.",
            )


def expected_variables(
    saver: tf1.train.Saver, graph: tf.Graph
) -> dict[str, tuple[tf.TensorShape, tf.DType]]:
    """Checkpoint name -> (shape, dtype) of what `saver` reads, from its restore op."""
    if isinstance(saver, DirectRestore):
        return saver.expected
    if not isinstance(saver, tf1.train.Saver):
        return {}
    expected = {}
    prefix = saver.saver_def.restore_op_name.rpartition("/")[0]
    for op in graph.get_operations():
        if op.type == "RestoreV2" and op.name.startswith(f"{prefix}/"):
            names, slices = (tf.get_static_value(tensor) for tensor in op.inputs[1:])
            if names is None or slices is None:
                continue
            for name, part, output in zip(names, slices, op.outputs, strict=True):
                targets = [c.inputs[0] for c in _assignments(output)]
                shape = _handle_shape(targets[0].op) if targets else tf.TensorShape(None)
                expected[name.decode()] = (_whole_shape(part.decode()) or shape, output.dtype)
    return expected


def _whole_shape(part: str) -> tf.TensorShape | None:
    """The shape of the variable of which one `part` is read, as RestoreV2 spells it: `8 4 0,4:-`.

    None where the whole is read.
    """
    return tf.TensorShape([int(size) for size in part.split()[:-1]]) if part else None


def _assignments(tensor: tf.Tensor) -> list[tf.Operation]:
    """The AssignVariableOps that store `tensor`, directly or behind identities.

    Not what a `Saver(reshape=True)` has reshaped: there a variable of another shape fits.
    """
    found, frontier = [], list(tensor.consumers())
    while frontier:
        op = frontier.pop()
        if op.type == "AssignVariableOp":
            found.append(op)
        elif op.type == "Identity":
            frontier.extend(op.outputs[0].consumers())
    return found


def _handle_shape(op: tf.Operation) -> tf.TensorShape:
    return tf.TensorShape(op.get_attr("shape") if op.type == "VarHandleOp" else None)


def compare(expected: Mapping[str, tuple[tf.TensorShape, tf.DType]], path: str) -> str:
    """Returns a line for each variable that the checkpoint lacks, or has in another form.

    Variables of the checkpoint alone are listed too: a renamed variable shows as a pair. Slots
    stand in the line of their variable.
    """
    if not expected:
        return ""
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    missing, differs = {}, {}
    for name, (shape, dtype) in sorted(expected.items()):
        if name not in shapes:
            missing[name] = f"{dtype.name} {_shown(shape)}"
        elif not shape.is_compatible_with(shapes[name]) or dtypes[name] != dtype:
            differs[name] = (
                f"is {dtypes[name].name} {shapes[name]} in the checkpoint, "
                f"{dtype.name} {_shown(shape)} in the model"
            )
    if not missing and not differs:
        return ""
    extra = {name: f"{shapes[name]}" for name in sorted(set(shapes) - set(expected))}
    lines = [
        f"  {kind} {line}"
        for kind, found in (
            ("missing in the checkpoint:", missing),
            ("differs:", differs),
            ("only in the checkpoint:", extra),
        )
        for line in _with_slots(found)
    ]
    if not set(shapes).intersection(expected) - {tf1.GraphKeys.GLOBAL_STEP}:
        lines.append("They have no variable in common. Is this the model_dir of another model?")
    return "\n".join(lines)


def _shown(shape: tf.TensorShape) -> str:
    return str(shape.as_list() if shape.rank is not None else shape)


def _with_slots(found: Mapping[str, str]) -> Iterator[str]:
    """Yields a line for each variable, which names its slots.

    Args:
        found: Variable or slot -> what is said about it, sorted by their names.
    """
    slots: dict[str, list[str]] = {name: [] for name in found}
    for name in found:
        variable, _, last = name.rpartition("/")
        if variable in slots:
            slots[variable].append(last)
            del slots[name]
    for name, below in slots.items():
        more = f" (also its {', '.join(below)})" if below else ""
        yield f"{name} {found[name]}{more}"
