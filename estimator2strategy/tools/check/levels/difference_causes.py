"""Why a step on several cores gives other numbers than on one device."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.check.levels.differences import TensorDifference, difference
from estimator2strategy.tools.check.levels.recorded_graph import Recorded
from estimator2strategy.tools.check.request import Mode

BATCH_STATISTICS, SUMMED, CLIPPED = "E2S620", "E2S621", "E2S622"
UNEVEN, OTHERWISE, DRIFTING = "E2S623", "E2S624", "E2S625"
# A part of the package's message about a batch that cores cannot share.
UNEVEN_WORDS = "which cannot be split over"

_SUM = "CrossReplicaSum"
# Ops whose results depend on the shape of what they are given, and not on its values.
_DIVISIONS = frozenset({"RealDiv", "Div", "DivNoNan"})
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank", "OnesLike", "ZerosLike"})
# How many tensors of the forward pass are looked at at once.
_AT_ONCE = 200
Values = Callable[[list[str]], dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Cause:
    """The most likely cause of a difference.

    Attributes:
        rule: The rule of the finding.
        op: The op that it is about; None for none.
        words: The message.
    """

    rule: str
    op: tf.Operation | None
    words: str


def of(
    cores: Recorded,
    one: Recorded,
    differences: Sequence[TensorDifference],
    on_cores: Values,
    on_one: Values,
    num_cores: int,
) -> Cause:
    """The cause of the differences of a step.

    Args:
        cores, one: The two recordings.
        differences: At least one.
        on_cores, on_one: Give values of tensors inside of model_fn on the same batch.
    """
    inside = first_inside(cores, one, on_cores, on_one, num_cores)
    if inside is not None:
        return _inside(cores, *inside)
    by_name = {d.name: d for d in differences}
    loss = by_name.get("loss")
    if loss is not None:
        return _of_loss(cores, loss, num_cores)
    # Optimizers of a program's own show no gradient: then it is the variables that differ.
    for group in ("gradient of ", "variable "):
        found = [d for d in differences if d.name.startswith(group)]
        if found:
            return _of_gradients(cores, found, num_cores)
    return Cause(OTHERWISE, None, f"the first that differs: {differences[0].words}")


# Inside of the model.


def first_inside(
    cores: Recorded, one: Recorded, on_cores: Values, on_one: Values, num_cores: int
) -> tuple[tf.Operation, TensorDifference] | None:
    """The first tensor with a batch axis, in creation order, that is no part of one device's."""
    kind = precision(cores)
    for chunk in _chunks(list(_comparable(cores, one, num_cores))):
        many, alone = on_cores([n for n, _ in chunk]), on_one([n for n, _ in chunk])
        for name, axis in chunk:
            size = np.shape(many[name])[axis]
            part = np.take(alone[name], range(size), axis)
            found = difference(name, many[name], part, kind)
            if found:
                return cores.graph.get_tensor_by_name(name).op, found
    return None


def _comparable(cores: Recorded, one: Recorded, num_cores: int) -> Iterator[tuple[str, int]]:
    """(name, batch axis) of the float tensors of the forward pass that one core has a part of."""
    random = {op.name for op in cores.random_ops}
    forward = cores.behind([_outcome(cores)])
    known = {op.name: op for op in one.operations}
    for op in cores.core_ops:
        other = known.get(op.name)
        if op.name not in forward or other is None or other.type != op.type or op.name in random:
            continue
        for a, b in zip(op.outputs, other.outputs, strict=True):
            axis = _batch_axis(a, b, num_cores)
            if a.dtype.is_floating and axis is not None:
                yield a.name, axis


def _outcome(recorded: Recorded) -> str:
    """The op that the forward pass ends in."""
    if recorded.mode == Mode.PREDICT:
        return recorded.root_ops[0]
    return str(recorded.spec.loss.op.name)


def _batch_axis(core: tf.Tensor, one: tf.Tensor, num_cores: int) -> int | None:
    """The one axis along which a core has its share."""
    if not core.shape.is_fully_defined() or core.shape.rank != one.shape.rank:
        return None
    pairs = list(zip(core.shape.as_list(), one.shape.as_list(), strict=True))
    axes = [i for i, (a, b) in enumerate(pairs) if a != b]
    if len(axes) != 1:
        return None
    size, whole = pairs[axes[0]]
    return axes[0] if whole in (None, size * num_cores) else None


def _chunks(found: list[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """At most so many at once that small models need one program, and large ones little memory."""
    for start in range(0, len(found), _AT_ONCE):
        yield found[start : start + _AT_ONCE]


def _inside(cores: Recorded, op: tf.Operation, found: TensorDifference) -> Cause:
    said = f"the first tensor that differs: {found.words} ({op.type})"
    statistics = [name for name in _near(cores, op) if _is_statistic(cores, name)]
    if not statistics and not op.type.startswith("FusedBatchNorm"):
        return Cause(OTHERWISE, op, said)
    what = "batch norm" if _is_batch_norm(cores, op) else "a mean or sum over the batch"
    return Cause(
        BATCH_STATISTICS,
        op,
        f"{said}: {what} sees only a core's part of the batch there",
    )


def _near(cores: Recorded, op: tf.Operation) -> set[str]:
    """The ops behind an op, up to the next tensors that have a batch axis and do not differ."""
    stop = {"MatMul", "Conv2D", "BatchMatMul", "BatchMatMulV2", "Placeholder", "VarHandleOp"}
    return cores.behind([op.name], stop_at=stop)


def _is_statistic(cores: Recorded, name: str) -> bool:
    op = cores.graph.get_operation_by_name(name)
    return op.type in ("Mean", "Sum", "Max", "Min", "Prod", "FusedBatchNormV3")


def _is_batch_norm(cores: Recorded, op: tf.Operation) -> bool:
    scope = op.name.rpartition("/")[0]
    near = (op.name, *_near(cores, op))
    moving = any("moving_" in v.op.name for v in cores.graph.get_collection("variables"))
    named = any("moments" in name or "batchnorm" in name or "batch_norm" in name for name in near)
    return op.type.startswith("FusedBatchNorm") or named or (moving and "norm" in scope.lower())


# The loss, and gradients.


def _of_loss(cores: Recorded, loss: TensorDifference, num_cores: int) -> Cause:
    op = cores.spec.loss.op
    sums = loss.ratio is not None and _is_times(loss.ratio, num_cores)
    if sums and not _divides_by_batch(cores):
        return Cause(
            SUMMED,
            op,
            f"{loss.words}: it is a sum over the examples, of which a core has one in {num_cores}; "
            "the cores' mean is taken",
        )
    return Cause(
        UNEVEN,
        op,
        f"{loss.words}: it divides by a number (of examples, of weights, of tokens) that is "
        "another one on each core, and the cores' mean counts each core alike",
    )


def _divides_by_batch(cores: Recorded) -> bool:
    """True if the loss divides by what a core makes of the values in its part of the batch."""
    fed = {tensor.op.name for tensor in cores.fed}
    behind = map(cores.graph.get_operation_by_name, cores.behind([cores.spec.loss.op.name]))
    divisions = (op for op in behind if op.type in _DIVISIONS and op.outputs[0].shape.rank == 0)
    return any(
        fed & cores.behind([division.inputs[1].op.name], stop_at=_SIZES) for division in divisions
    )


def _of_gradients(cores: Recorded, gradients: Sequence[TensorDifference], num_cores: int) -> Cause:
    first = gradients[0]
    ratios = [d.ratio for d in gradients]
    variable = first.name.removeprefix("gradient of ").removeprefix("variable ")
    op = _update_of(cores, variable) or cores.train_op
    if all(ratio is not None and _is_times(ratio, num_cores) for ratio in ratios):
        return Cause(
            SUMMED,
            op,
            f"{first.words}: gradients are summed over the cores where one device takes the mean "
            "over the batch",
        )
    clip = _clipped(cores)
    if clip is not None:
        return Cause(
            CLIPPED,
            clip,
            f"{first.words}: gradients are clipped here on each core, before they are summed over "
            "the cores",
        )
    return Cause(OTHERWISE, op, f"the loss is the same; the first that differs: {first.words}")


def _is_times(ratio: float, num_cores: int) -> bool:
    """True if a ratio is the number of cores, or one over it."""
    return any(math.isclose(ratio, n, rel_tol=0.02) for n in (num_cores, 1 / num_cores))


def _clipped(cores: Recorded) -> tf.Operation | None:
    """The op that clips a gradient before its sum over the cores, if one does."""
    sums = [op for op in cores.core_ops if op.type == _SUM]
    behind = cores.behind([op.inputs[0].op.name for op in sums]) if sums else set()
    loss = cores.behind([cores.spec.loss.op.name])
    for name in sorted(behind - loss, key=cores.nodes.position.__getitem__):
        if "clip_by" in name or "global_norm" in name:
            return cores.graph.get_operation_by_name(name)
    return None


def gradients(recorded: Recorded) -> dict[str, tf.Tensor]:
    """Variable -> what an optimizer's update is given as its (dense) gradient."""
    found = {}
    for op in recorded.core_ops:
        names = [argument.name for argument in op.op_def.input_arg]
        given = [name for name in ("grad", "delta") if name in names]
        if op.type.startswith("ResourceApply") and given:
            for variable in recorded.writes(op) & _trainable(recorded):
                found[variable] = op.inputs[names.index(given[0])]
    return found


def _trainable(recorded: Recorded) -> set[str]:
    return {v.op.name for v in recorded.graph.get_collection("trainable_variables")}


def _update_of(recorded: Recorded, variable: str) -> tf.Operation | None:
    return next((op for op in recorded.core_ops if variable in recorded.writes(op)), None)


# Both recordings.


def precision(recorded: Recorded) -> str:
    """The coarsest of the types that the forward pass computes in."""
    used = {t.dtype.base_dtype.name for op in recorded.core_ops for t in op.outputs}
    return next((name for name in ("bfloat16", "float16") if name in used), "float32")


def random_op(recorded: Recorded) -> tf.Operation | None:
    """A random op that what is compared depends on."""
    behind = recorded.behind([_outcome(recorded)])
    return next((op for op in recorded.random_ops if op.name in behind), None)
