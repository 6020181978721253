"""Every private TensorFlow symbol the runtime leans on, each with the reason it cannot be public.

What switches between TF 1's behaviour and TF 2's is beside it, in `engine/_tf_switches.py`.
`tests/engine/test_tf_private.py` exercises each one, so that a TensorFlow release that moves
or changes one of them fails there, by name, and not somewhere in a training loop.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla as _xla
from tensorflow.compiler.xla.service import hlo_pb2 as _hlo_pb2
from tensorflow.python.checkpoint import checkpoint_management as _checkpoint_management
from tensorflow.python.checkpoint import graph_view as _graph_view
from tensorflow.python.client import session as _session
from tensorflow.python.distribute import one_device_strategy as _one_device_strategy
from tensorflow.python.eager import context as _context
from tensorflow.python.feature_column import feature_column as _feature_column_v1
from tensorflow.python.feature_column import feature_column_v2 as _feature_column
from tensorflow.python.feature_column import sequence_feature_column as _sequence_feature_column
from tensorflow.python.framework import config as _config
from tensorflow.python.framework import function as _function
from tensorflow.python.framework import function_def_to_graph as _function_def_to_graph
from tensorflow.python.framework import graph_to_function_def as _graph_to_function_def
from tensorflow.python.framework import kernels as _kernels
from tensorflow.python.framework import op_def_registry as _op_def_registry
from tensorflow.python.framework import ops as _ops
from tensorflow.python.framework import stack as _stack
from tensorflow.python.ops import clustering_ops as _clustering_ops
from tensorflow.python.ops import control_flow_ops as _control_flow_ops
from tensorflow.python.ops import control_flow_util_v2 as _control_flow_util_v2
from tensorflow.python.ops import gen_tpu_ops as _gen_tpu_ops
from tensorflow.python.ops import handle_data_util as _handle_data_util
from tensorflow.python.ops import lookup_ops as _lookup_ops
from tensorflow.python.ops import resource_variable_ops as _resource_variable_ops
from tensorflow.python.ops import script_ops as _script_ops
from tensorflow.python.saved_model import model_utils as _model_utils
from tensorflow.python.tpu import feature_column as _tpu_feature_column_v1
from tensorflow.python.tpu import feature_column_v2 as _tpu_feature_column
from tensorflow.python.tpu import tpu as _tpu
from tensorflow.python.tpu import tpu_function as _tpu_function
from tensorflow.python.tpu import tpu_strategy_util as _tpu_strategy_util
from tensorflow.python.training import evaluation as _evaluation
from tensorflow.python.training import saver as _saver
from tensorflow.python.training import training_util as _training_util
from tensorflow.python.training.saving import saveable_object as _saveable_object
from tensorflow.python.util import nest as _nest
from tensorflow.tsl.profiler.protobuf import xplane_pb2 as _xplane_pb2

from estimator2strategy.engine import patches

# Flattens nested fetches and feeds (names, variables, SparseTensors, dicts) for `Session.run`. The
# public API offers it only inside a real Session, and ours is not one.
FetchHandler = _session._FetchHandler


def parts_of_feed(key: Any, value: Any) -> Iterable[tuple[Any, Any]]:
    """The tensors, each with its value, that `Session.run` feeds for a key of `feed_dict`.

    TensorFlow and programs register how objects are fed: SparseTensors, RaggedTensors, their own.
    """
    for kind, _, feed, _ in _session._REGISTERED_EXPANSIONS:
        if isinstance(key, kind):
            parts: Iterable[tuple[Any, Any]] = feed(key, value)
            return parts
    raise TypeError(f"{key} in argument `feed_dict` has invalid type {type(key).__name__!r}")


# Takes the tuples among the keys of a `feed_dict` apart; `tf.nest` has no such function.
flatten_dict_items = _nest.flatten_dict_items

# `Saver.save` and `Saver.restore` accept any session that implements this interface.
SessionInterface: TypeAlias = _session.SessionInterface

# Makes the ops of a Saver, and alone says which variables go into one file.
# `tf.compat.v1.train.Saver(builder=)` is public, the class to derive a builder from is not.
BulkSaverBuilder = _saver.BulkSaverBuilder

# True if a checkpoint, or a folder, has this path: `Saver.restore` asks that first. The public
# `tf.compat.v1.train.checkpoint_exists` is the same, and warns of itself.
checkpoint_exists = _checkpoint_management.checkpoint_exists_internal

# The graph of `tf.compat.v1.estimator.experimental.KMeans`: only the Estimator was public.
KMeans = _clustering_ops.KMeans

# A variable without a value yet, as TF1 had them until an init op or a Saver ran. The public
# `tf.Variable` would first fill every variable with zeros.
UninitializedVariable = _resource_variable_ops.UninitializedVariable
BaseResourceVariable: TypeAlias = _resource_variable_ops.BaseResourceVariable


def let_grow(variable: Any) -> None:
    """Lets assignments change a variable's shape, as `tf.assign(validate_shape=False)` did.

    TensorFlow 2 asks the variable alone, which compares the shapes if its own has no unknown size.
    """
    variable._validate_shape = False


# The context that makes `CrossShardOptimizer` believe it is one of N shards. Its public way in,
# `tf.compat.v1.tpu.replicate`, would build TPU-only nodes around the model.
tpu_shard_context = _tpu_function.tpu_shard_context

# The parts of a graph for serving on TPUs. In this function `get_variable` makes variables of the
# graph around it, which it does not in a `tf.function`. The context keeps control flow functional.
# The last one removes nodes that `tpu.rewrite` leaves behind and that a TPU compiler refuses.
Defun = _function.Defun
TPUInferenceContext = _tpu._TPUInferenceContext
prune_unconnected_ops_from_xla = _tpu.prune_unconnected_ops_from_xla

# The classes of the columns that `tf.compat.v1.tpu.experimental.embedding_column` and its kin
# return: only the functions are public. The first two can still be made; a spec takes the others,
# too.
TPU_EMBEDDING_COLUMNS = (
    _tpu_feature_column._TPUEmbeddingColumnV2,
    _tpu_feature_column._TPUSharedEmbeddingColumnV2,
    _tpu_feature_column_v1._TPUEmbeddingColumn,
    _tpu_feature_column_v1._TPUSharedEmbeddingColumn,
)
EMBEDDING_SPEC_COLUMNS = (
    *TPU_EMBEDDING_COLUMNS,
    _feature_column.NumericColumn,
    _feature_column.EmbeddingColumn,
    _feature_column_v1._NumericColumn,
    _feature_column_v1._EmbeddingColumn,
    _feature_column_v1._SharedEmbeddingColumn,
)
# The class of `tf.feature_column.numeric_column`: weights of examples must be such a column.
NumericColumn = _feature_column.NumericColumn
# The parts of layers of columns: the kinds of columns, their checks, the names of their variable
# scopes, and their weighted sums. tf-keras has copies of some, but not of the last; the public
# `linear_model` does not take all columns.
CategoricalColumn = _feature_column.CategoricalColumn
is_feature_column_v2 = _feature_column.is_feature_column_v2
normalize_feature_columns = _feature_column._normalize_feature_columns
check_batch_sizes = _feature_column._verify_static_batch_size_equality
variable_scope_of_column = _feature_column._sanitize_column_name_for_variable_scope
weighted_sum = _feature_column._create_weighted_sum
# The bases of columns of the old kind, which those of `tf.contrib.layers` were too.
CategoricalColumnV1 = _feature_column_v1._CategoricalColumn
DenseColumnV1 = _feature_column_v1._DenseColumn
# The parts of `tf.contrib.feature_column.sequence_input_layer`: the class of its columns, their
# check, and their cache. Keras's public layer makes other variables, and refuses old columns.
SequenceDenseColumnV1 = _feature_column_v1._SequenceDenseColumn
SequenceNumericColumn = _sequence_feature_column.SequenceNumericColumn
normalize_feature_columns_v1 = _feature_column_v1._normalize_feature_columns
LazyBuilder = _feature_column_v1._LazyBuilder
# The collection in which TPU embedding columns leave {table: (variable scope, variable name)} on
# cores, and the suffix of a feature's name for its lengths. No public function reads either.
EMBEDDING_SCOPES = _tpu_feature_column_v1._TPU_FC_TO_SCOPE
SEQUENCE_LENGTH_SUFFIX = _tpu_feature_column_v1._SEQUENCE_FEATURE_LENGTH_POSTFIX
# The suffix that a column with embedding_lookup_device="tpu_tensor_core" gives a feature's name
# for the mask of its ids. Only the column reads it, and no public function tells the name.
TENSOR_CORE_MASK_SUFFIX = _tpu_feature_column._TENSOR_CORE_MASK_KEY_SUFFIX

# The number of the core, inside its program. No public name has made this op since tf.contrib went.
replica_id = _xla.replica_id


def tensor_core_length(column: Any) -> int:
    """The most ids of an example, in a column's `tensor_core_shape`; it tells nobody in public."""
    return int(column._tensor_core_shape[1])


# The output classes of a spec, and the code that turns them into signatures: TensorFlow still ships
# them, unchanged from 2.15 to 2.21, but has no public name for them since `tf.estimator.export`
# went. The very same classes are used, not copies: a spec made by code that imports them from
# TensorFlow itself (tensorflow_hub and TFX addons do) must pass for one made with ours.
model_utils = _model_utils

# The tables of indices that `tf.contrib.lookup` made: those of `tf.lookup` take other arguments.
lookup_ops = _lookup_ops

# A Saver of TF1 writes and restores it under names that are no variable's: cuDNN's layers need it.
SaveableObject = _saveable_object.SaveableObject
SaveSpec = _saveable_object.SaveSpec

# A strategy of one device, to derive the one from under which model_fn is recorded.
OneDeviceExtended = _one_device_strategy.OneDeviceExtended

# The counter that `tf.compat.v1.train`'s evaluation loop increments, and the hook that reads it.
get_or_create_eval_step = _evaluation._get_or_create_eval_step
StopAfterNEvalsHook = _evaluation._StopAfterNEvalsHook

# The format of XLA's programs, which `experimental_get_compiler_ir` returns serialised.
HloModule = _hlo_pb2.HloModuleProto

# The format of what `tf.profiler.experimental.stop` writes: TensorFlow offers no reader of it.
XSpace = _xplane_pb2.XSpace


def register_function(function_def: Any) -> None:
    """Makes a library function of a recorded graph callable from functions of this process.

    `import_graph_def` inside a `tf.function` does not do so by itself ("Op type not registered").
    """
    context = _context.context()
    if not context.has_function(function_def.signature.name):
        context.add_function_def(function_def)


def function_def(name: str) -> Any:
    """The FunctionDef of a function of this process that a graph calls, and does not hold."""
    return _context.context().get_function_def(name)


def func_graph(graph: tf.Graph, name: str) -> tf.Graph | None:
    """The graph of which TensorFlow made a function, or None; its ops know the lines of theirs."""
    return getattr(graph._get_function(name), "graph", None)


def set_branch(conditional: tf.Operation, name: str, branch: Any) -> None:
    """Makes a branch ("then_branch", "else_branch") of a `tf.cond` again of its changed graph."""
    conditional._set_func_attr(name, _control_flow_util_v2.create_new_tf_function(branch))


def forward_op(op: tf.Operation) -> tf.Operation | None:
    """The op that `op` is a part of the gradient of; None if of none."""
    return op._original_op


def gradient_names() -> list[str]:
    """The ops, and the names for `gradient_override_map`, that have a registered gradient."""
    return list(_ops.gradient_registry.list())


def forget_gradient(name: str) -> None:
    """Takes a gradient out of the registry, which refuses a second one."""
    patches.noted("gradients registered again")
    del _ops.gradient_registry._registry[name]


def graph_of_function(function_def: Any) -> tuple[Any, ...]:
    """(GraphDef of a function's body, inner tensor name -> tensor name there).

    Arguments are placeholders. The public API makes graphs of functions that it has traced itself.
    """
    with _context.eager_mode():  # where what it calls is looked up in the process
        return tuple(_function_def_to_graph.function_def_to_graph_def(function_def))


def function_of_graph(graph: tf.Graph, operations: Any, inputs: Any, outputs: Any) -> Any:
    """The FunctionDef of operations of a graph that is of no `tf.function`."""
    return _graph_to_function_def.graph_to_function_def(graph, operations, inputs, outputs)


@contextlib.contextmanager
def xla_control_flow_context(name: str) -> Iterator[None]:
    """The context of `tpu.replicate`: gradients of conds and loops that XLA can lower."""
    control_flow_context = _control_flow_ops.XLAControlFlowContext()
    control_flow_context._name = name
    control_flow_context.Enter()
    try:
        yield
    finally:
        control_flow_context.Exit()


def sums_over_one_core() -> contextlib.AbstractContextManager[None]:
    """Sums over cores are their input while the body runs: no CPU has a kernel for the op."""

    def alone(x: tf.Tensor, group_assignment: Any, name: str | None = None) -> tf.Tensor:
        return tf.identity(x, name)

    return patches.scope("sums over one core", _gen_tpu_ops, "cross_replica_sum", alone)


def abort_collectives(message: str) -> None:
    """Ends what waits for another process, from any thread; all later collectives fail too.

    The error is an InternalError: a MonitoredSession would try others anew, and wait again.
    """
    _context.context().abort_collective_ops(tf.errors.INTERNAL, message)


def run_in_any_order(op: tf.Operation) -> None:
    """`op`, of the function that is being traced, runs, but waits for no other one with effects.

    `tf.function` puts ops with effects in order; there is no public way to leave one out.
    """
    manager = op.graph.experimental_acd_manager
    if manager:
        manager.run_independently(op)


def has_started() -> bool:
    """True if TensorFlow has started its devices, and with them the server of a strategy."""
    return bool(_context.context()._initialized)


def is_stateful(op: str) -> bool:
    """True if TensorFlow takes ops of this type to have state, or effects.

    An `Operation` says so, but not a node of a function.
    """
    definition = _op_def_registry.get(op)
    return definition is None or definition.is_stateful


@functools.cache
def plain_attrs(op: str) -> frozenset[str]:
    """The attributes that ops of a registered type have, but for those that are functions."""
    attrs = getattr(_op_def_registry.get(op), "attr", ())
    return frozenset(attr.name for attr in attrs if attr.type not in ("func", "list(func)"))


def types_of(node: Any) -> set[tf.DType]:
    """The types of what a NodeDef takes and returns; none of an op that is not registered."""
    definition = _op_def_registry.get(node.op)
    ids: set[int] = set()
    for arg in (*definition.input_arg, *definition.output_arg) if definition else ():
        ids.add(arg.type or node.attr[arg.type_attr].type if not arg.type_list_attr else 0)
        ids.update(node.attr[arg.type_list_attr].list.type if arg.type_list_attr else ())
    return {tf.as_dtype(value) for value in ids if value}


def ops_are_deterministic() -> bool:
    """True if `enable_op_determinism`, or the environment, wants equal results of equal runs.

    There is a public way to ask for it, and none to find out.
    """
    return bool(_config.is_op_determinism_enabled())


def capture(tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` as seen from the function being traced.

    `import_graph_def` takes its `input_map` literally, without the capturing that ops do.
    """
    graph = _ops.get_default_graph()
    if isinstance(tensor, _ops.EagerTensor) or tensor.graph is not graph:
        return graph.capture(tensor)
    return tensor


def default_session(session: SessionInterface) -> contextlib.AbstractContextManager[Any]:
    """A context in which `tensor.eval()` uses `session`; public only as a method of Session."""
    return cast(contextlib.AbstractContextManager[Any], _stack.default_session(session))


def tpu_name(resolver: Any) -> str:
    """The TPU of a TPUClusterResolver: a name, addresses, or "local"."""
    return cast(str, resolver._tpu)


def started_tpu_system(resolver: Any) -> Any:
    """The topology of a TPUClusterResolver's TPU, if this process has started its system; or None.

    TensorFlow keeps the list to warn those who start a system twice; no public name reads it.
    """
    return _tpu_strategy_util.get_initialized_tpu_systems().get(tpu_name(resolver))


def resolver_of_tpu(strategy: Any) -> Any:
    """The cluster resolver of a TPUStrategy; that of TF 1 has no public property for it."""
    return strategy.extended._tpu_cluster_resolver


def replica_context(strategy: tf.distribute.Strategy) -> tf.distribute.ReplicaContext:
    """Code in the body runs as replica 0 of `strategy`.

    Public only as a call: `strategy.extended.call_for_each_replica(function)`.
    """
    return _one_device_strategy._OneDeviceReplicaContext(strategy)


def saveable_objects(checkpoint: tf.train.Checkpoint) -> list[Any]:
    """The objects with which a v1 Saver reads and writes the object-based format of `checkpoint`.

    A Checkpoint saves itself, but the graph of a SavedModel names a Saver.
    """
    return list(_graph_view.ObjectGraphView(checkpoint).frozen_saveable_objects())


# The collection of the tensor through which stock hooks read the global step of a run.
GLOBAL_STEP_READ = _training_util.GLOBAL_STEP_READ_KEY


def add_global_step_read(graph: tf.Graph) -> None:
    """Adds the tensor through which the stock hooks read the global step of a run.

    They would add one themselves, which asks in a cond whether the step has a value. It always has,
    and a cond in every step costs a small model a tenth of its speed.
    """
    with graph.as_default(), tf.control_dependencies(None):
        step = tf.compat.v1.train.get_global_step(graph)
        graph.add_to_collection(GLOBAL_STEP_READ, step.read_value())


def rewrites_as_usual() -> bool:
    """True if nobody has chosen what Grappler does with the calls of this thread.

    The number of times that it goes over a graph is no such choice: all Estimators have one.
    """
    return _rewrites_as_usual(_context.context().function_call_options.config_proto_serialized)


@functools.lru_cache(maxsize=16)
def _rewrites_as_usual(config_proto: bytes) -> bool:
    config = tf.compat.v1.ConfigProto.FromString(config_proto)
    chosen = config.graph_options.rewrite_options.ListFields()
    return {field.name for field, _ in chosen} <= {"meta_optimizer_iterations"}


@contextlib.contextmanager
def rewrite_options(options: Any) -> Iterator[None]:
    """Makes Grappler rewrite the calls of this thread, in the body, as a `RewriterConfig` says.

    A function is rewritten when it is first called, and then stays as it is. The public
    `tf.config.optimizer.set_experimental_options` changes all threads, and has not all fields.
    """
    context = _context.context()
    before = context.function_call_options
    ours = _with_rewrites(
        before.executor_type, before.config_proto_serialized, options.SerializeToString()
    )
    context.function_call_options = ours
    try:
        yield
    finally:
        if context._thread_local_data.function_call_options is ours:  # else a setting was changed
            context.function_call_options = before


@functools.lru_cache(maxsize=16)  # each batch of a prediction asks for the same
def _with_rewrites(executor_type: str, config_proto: bytes, rewrites: bytes) -> Any:
    config = tf.compat.v1.ConfigProto.FromString(config_proto)
    config.graph_options.rewrite_options.MergeFromString(rewrites)
    return _context.FunctionCallOptions(executor_type, config)


@contextlib.contextmanager
def keras_classes_kept(model: Any) -> Iterator[None]:
    """Leaves the classes of a Keras 2 model and of its layers as they were.

    A model that is made in a v1 graph gives its class, and those above it, other bases, and so
    changes all models that there are.
    """
    classes = {cls for layer in model._flatten_layers() for cls in type(layer).__mro__}
    before = {cls: cls.__bases__ for cls in classes if cls is not object}
    try:
        yield
    finally:
        for cls, bases in before.items():
            if cls.__bases__ != bases:
                cls.__bases__ = bases


def python_function(token: bytes) -> object:
    """The Python function that a `PyFunc` node calls, which its `token` stands for.

    A node has a token of its own each time it is made, also for a function that was there before;
    and so has the wrapper that keeps AutoGraph off it.
    """
    function = _script_ops._py_funcs._funcs.get(token.decode())
    return getattr(function, "__wrapped__", function)


def copy_handle_data(source: tf.Tensor, target: tf.Tensor) -> None:
    """Says of the handle `target` that its variable has the shape and dtype of that of `source`.

    `target` is of a graph. TensorFlow does not know by itself what handles in a tensor are of.
    """
    _handle_data_util.copy_handle_data(source, target)


def set_captured(function: Any, captured: Sequence[tf.Tensor]) -> None:
    """Gives a ConcreteFunction other captured tensors; the method is not documented."""
    function.set_external_captures(list(captured))


def rebind(function: Any, replaced: dict[int, tf.Tensor]) -> None:
    """The same for those captured tensors that are in `replaced`, by the old one's id."""
    captured = function.captured_inputs
    set_captured(function, [replaced.get(id(tensor), tensor) for tensor in captured])


def add_graph(writer: Any, graph: tf.Graph, graph_def: Any) -> None:
    """`writer.add_graph(graph)` of a FileWriter, with the GraphDef (and shapes) that there is.

    The public method makes it again, or warns that a GraphDef is deprecated.
    """
    writer._write_plugin_assets(graph)
    writer._add_graph_def(graph_def, None)


def xla_kernels() -> list[Any]:
    """KernelDefs of what XLA can compile on a CPU; the public registry has no reader.

    They are registered when something is compiled for the first time.
    """
    compiled = tf.function(lambda: tf.constant(0), autograph=False, jit_compile=True)
    compiled.experimental_get_compiler_ir()(stage="hlo")
    registered = _kernels.get_all_registered_kernels().kernel
    return [kernel for kernel in registered if kernel.device_type == "XLA_CPU_JIT"]
