"""Recorded graphs of a model_fn: what is refused, what no step runs, and what draws or races."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.request import Mode
from estimator2strategy.tools.check.rule import Hit

if TYPE_CHECKING:  # rules are read without TensorFlow
    from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
    from estimator2strategy.tools.check.levels.recorded_graph import Recorded
    from estimator2strategy.tools.check.levels.subject import Subject


def refused(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Results of model_fn that Estimator's contract refuses, where no other rule is more exact."""
    # Two of these have a rule of their own: E2S604 and E2S611.
    said = str(recorded.refused or "")
    if said and not ("static shape" in said or said.startswith("CrossShardOptimizer must be")):
        where = "on cores" if recorded.on_cores else "on one device"
        yield Hit(None, f"{recorded.mode} {where}: {said}")


def unseeded(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Random numbers that are others in each run."""
    for op in recorded.random_ops:
        if op.name in recorded.step_ops and not recorded.has_stream(op):
            yield Hit(op, f"{recorded.mode}: {op.type} draws other numbers in each run")


def reference_variable(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Variables without a handle."""
    for op in recorded.operations:
        if op.type in ("Variable", "VariableV2", "TemporaryVariable"):
            yield Hit(op, f"{recorded.mode}: {op.name!r} is a reference variable ({op.type})")


def dead_update(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Moving averages that stay as they are."""
    if recorded.mode != Mode.TRAIN:
        return
    for update in dict.fromkeys(recorded.graph.get_collection("update_ops")):
        op = getattr(update, "op", update)
        if op.name not in recorded.step_ops:
            yield Hit(op, f"no step runs the update {op.name!r}")


def no_gradient(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Variables that training cannot change."""
    if recorded.mode != Mode.TRAIN:
        return
    written = set(recorded.nodes.variables_written(recorded.root_ops))
    matters = recorded.behind([recorded.spec.loss.op.name], stop_at={"StopGradient"})
    for variable in recorded.graph.get_collection("trainable_variables"):
        name = variable.op.name
        if name in written:
            continue
        if name in matters:
            yield Hit(
                variable.op,
                f"the loss depends on {name!r}, and train_op leaves it as it is (var_list?)",
                severity=Severity.INFO,
            )
        else:
            yield Hit(variable.op, f"no gradient reaches {name!r}")


def step_stands_still(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """A global step that stands still."""
    if recorded.mode != Mode.TRAIN:
        return
    steps = {v.op.name for v in recorded.graph.get_collection("global_step")}
    if not steps & set(recorded.nodes.variables_written(recorded.root_ops)):
        yield Hit(recorded.train_op, "train_op does not change the global step")


def checkpoint_differs(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """A checkpoint that the model does not fit."""
    if subject.checkpoint is None or recorded.on_cores != subject.model.for_tpu:
        return
    saved = subject.saved_variables
    made = {v.op.name: v for v in recorded.graph.get_collection("variables")}
    for name, variable in made.items():
        if name not in saved:
            yield Hit(variable.op, f"{recorded.mode}: {name!r} is not in {subject.checkpoint}")
        elif not variable.shape.is_compatible_with(saved[name]):
            shape = "x".join(map(str, saved[name])) or "scalar"
            yield Hit(
                variable.op,
                f"{recorded.mode}: {name!r} has the shape {variable.shape}, and {shape} in "
                f"{subject.checkpoint}",
            )
    if recorded.mode == Mode.TRAIN:
        for name in sorted(set(saved) - set(made)):
            message = f"only {subject.checkpoint} has {name!r}; it is not restored"
            yield Hit(None, message, severity=Severity.INFO)


_CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "IsFinite", "IsNan"})
# A NaN that one of these is given comes out again.
_PASS_ON = frozenset(
    {"Abs", "Cast", "ExpandDims", "Identity", "Neg", "Reshape", "Sqrt", "Square", "Squeeze"}
)


def nan_lost_in_max(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Checks for NaN of a value that no longer has it."""
    nodes = recorded.nodes
    for op in recorded.operations:
        if op.type not in _CHECKS or not recorded.in_model(op):
            continue
        checked = input_node(op.inputs[0].name)
        while nodes[checked].op in _PASS_ON:
            checked = input_node(nodes[checked].input[0])
        if _loses_nan(nodes, nodes[checked]):
            kind = nodes[checked].op
            yield Hit(op, f"{recorded.mode}: {op.type} of a {kind}, which loses NaN when compiled")


def _loses_nan(nodes: RecordedGraph, node: NodeDef) -> bool:
    """True if XLA's program may take a number where `node` is given a NaN."""
    if node.op in {"Maximum", "Minimum"}:
        # The first argument's NaN stays, so max(x, 0) keeps it.
        return bool(nodes[input_node(node.input[1])].op != "Const")
    return node.op in {"Max", "Min"}


def update_race(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Updates that nothing orders with a use of their variable."""
    if recorded.on_cores or recorded.mode != "train":
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.plan.races import races

    for race in races(recorded.graph, [recorded.train_op.name]):
        use = recorded.graph.get_operation_by_name(race.use)
        yield Hit(
            use, f"nothing orders {race.use!r} with {race.write!r}, a write of {race.variable!r}"
        )
