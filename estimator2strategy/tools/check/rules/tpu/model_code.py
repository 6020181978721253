"""The parts of a model_fn for TPUs: hooks, host calls, optimizers, losses and parsed features."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import features
from estimator2strategy.tools.reader.estimator_programs import captured_tensors, is_optimizer_step
from estimator2strategy.tools.reader.project import ModelFunction, is_tf
from estimator2strategy.tools.reader.source import (
    Call,
    Function,
    LexicalScope,
    Source,
    kept,
    names_in,
    parents,
    walk,
)

_HOOKS = ("LoggingTensorHook", "SummarySaverHook", "FinalOpsHook", "NanTensorHook", "FeedFnHook")


def hooks_with_tensors(source: Source, context: Context) -> Iterator[Hit]:
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        given = {
            node.id
            for spec in model.specs
            if spec.last == "TPUEstimatorSpec"
            for keyword in spec.node.keywords
            if keyword.arg in ("training_hooks", "evaluation_hooks")
            for node in walk(keyword.value)
            if isinstance(node, ast.Name)
        }
        for call in context.project.device_calls(model.definition):
            if is_tf(call.name, *_HOOKS) and _is_given(call, given):
                yield Hit(call.node, f"{call.last} fetches tensors that the cores compute")


def _is_given(call: Call, names: set[str]) -> bool:
    for node in parents(call.node):
        if isinstance(node, ast.keyword) and node.arg in ("training_hooks", "evaluation_hooks"):
            return True
        if isinstance(node, ast.stmt):
            break
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(t, ast.Name) and t.id in names for t in targets)


_FIELDS = ("host_call", "eval_metrics")


def host_call_captures(source: Source, context: Context) -> Iterator[Hit]:
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        for function in _host_functions(model):
            for name, node in captured_tensors(function, model.node, source).items():
                what = getattr(function, "name", "the lambda")
                yield Hit(node, f"{what} runs on the host, and captures {name} of model_fn")


def _host_functions(model: ModelFunction) -> Iterator[ast.Lambda | Function]:
    """The functions in the pairs that the specs are given."""
    scope = model.source.scopes[model.node]
    for spec in model.specs:
        for field in _FIELDS:
            pair = spec.argument(field)
            if pair is None:
                continue
            pairs = [pair]
            if isinstance(pair, ast.Name):
                pairs = [v for v in scope.bindings.get(pair.id, ()) if isinstance(v, ast.expr)]
            for value in pairs:
                if isinstance(value, ast.Tuple) and value.elts:
                    yield from _functions(value.elts[0], scope)


def _functions(node: ast.expr, scope: LexicalScope) -> Iterator[ast.Lambda | Function]:
    if isinstance(node, ast.Lambda):
        yield node
    elif isinstance(node, ast.Name):
        for value in scope.bindings.get(node.id, ()):
            if isinstance(value, (ast.Lambda, Function)):
                yield value


_SUMS = {"CrossShardOptimizer", "cross_replica_sum", "all_reduce", "CrossReplicaSum"}
_TRAINS = {"minimize", "apply_gradients", "optimize_loss"}


def no_cross_shard(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    for model in project.model_functions:
        if not project.may_use_tpu(model) or _chooses(model):
            continue
        reached = project.reached_calls([model.definition])
        if any(map(_has_sum, {d.source for d, _ in reached})):
            continue
        for calls in (calls for d, calls in reached if d.source is source):
            for call in calls:
                if call.last in _TRAINS and is_optimizer_step(call, of_project=True):
                    yield Hit(call.node, "trains on TPU cores without a sum over the cores")


@kept
def _has_sum(source: Source) -> bool:
    return any(name in source.text for name in _SUMS)


def _chooses(model: ModelFunction) -> bool:
    """True if a spec gets a `use_tpu`: the model may then be for a TPU or not."""
    return any("use_tpu" in (k.arg or "") for spec in model.specs for k in spec.node.keywords)


def placed_device(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        for call in project.calls_of(model.definition):
            device = (
                call.value("device_name_or_function", 0) if is_tf(call.name, "device") else None
            )
            if isinstance(device, str) and any(w in device.lower() for w in ("gpu", "tpu")):
                yield Hit(call.node, f"the placement on {device} is dropped")


_CORES = {"num_replicas", "num_shards", "num_cores", "num_tpu_cores", "number_of_shards"}


def scaled_loss(source: Source, context: Context) -> Iterator[Hit]:
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        own = context.project.calls_of(model.definition)
        makers = [call for call in own if is_tf(call.name, "CrossShardOptimizer")]
        if not makers or any(call.argument("reduction", 1) is not None for call in makers):
            continue
        for node in walk(model.node):
            divided = None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                divided = node.left, node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                divided = node.target, node.value
            if divided is None or not isinstance(divided[0], ast.Name):
                continue
            if "loss" in divided[0].id.lower() and names_in(divided[1]) & _CORES:
                yield Hit(node, f"`{ast.unparse(node)}`: CrossShardOptimizer divides it again")


_SUMMARIES = {"scalar", "histogram", "image", "audio", "text", "tensor_summary"}


def summary_on_tpu(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    for model in project.model_functions:
        # A host_call may well collect them.
        collects = any(spec.argument("host_call") for spec in model.specs)
        if collects or not project.may_use_tpu(model):
            continue
        reached = project.reached_calls([model.definition])
        for calls in (calls for d, calls in reached if d.source is source):
            for call in calls:
                if (call.name or "").startswith("tf.summary.") and call.last in _SUMMARIES:
                    yield Hit(call.node, f"{call.name} is dropped on a TPU")


def text(source: Source, context: Context) -> Iterator[Hit]:
    """String features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.string":
            yield Hit(feature.node, f"the string {feature.key!r} is returned as it was parsed")


def int64(source: Source, context: Context) -> Iterator[Hit]:
    """int64 features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.int64":
            yield Hit(feature.node, f"the int64 {feature.key!r} is returned as it was parsed")


def sparse(source: Source, context: Context) -> Iterator[Hit]:
    """Sparse features that reach the TPU."""
    for feature in features.parsed_and_returned(source, context.project):
        if feature.kind == "VarLenFeature":
            yield Hit(feature.node, f"the sparse {feature.key!r} is returned as it was parsed")
