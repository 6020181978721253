"""Every private TensorFlow symbol the runtime leans on, each with the reason it cannot be public.

`tests/test_tf_private.py` exercises each one, so that a TensorFlow release that moves or changes
one of them fails there, by name, and not somewhere in a training loop.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, SimpleNamespace
from typing import TypeAlias

import tensorflow as tf
from keras.src.backend.common import global_state as _keras_state
from tensorflow.compiler.xla.service import hlo_pb2 as _hlo_pb2
from tensorflow.python.checkpoint import graph_view as _graph_view
from tensorflow.python.client import session as _session
from tensorflow.python.distribute import one_device_strategy as _one_device_strategy
from tensorflow.python.eager import context as _context
from tensorflow.python.feature_column import feature_column as _feature_column_v1
from tensorflow.python.feature_column import feature_column_v2 as _feature_column
from tensorflow.python.feature_column import sequence_feature_column as _sequence_feature_column
from tensorflow.python.framework import config as _config
from tensorflow.python.framework import function as _function
from tensorflow.python.framework import kernels as _kernels
from tensorflow.python.framework import op_def_registry as _op_def_registry
from tensorflow.python.framework import ops as _ops
from tensorflow.python.framework import stack as _stack
from tensorflow.python.framework import tensor as _tensor
from tensorflow.python.framework import tensor_shape as _tensor_shape
from tensorflow.python.ops import clustering_ops as _clustering_ops
from tensorflow.python.ops import control_flow_ops as _control_flow_ops
from tensorflow.python.ops import control_flow_util as _control_flow_util
from tensorflow.python.ops import control_flow_v2_func_graphs as _control_flow_v2_func_graphs
from tensorflow.python.ops import gen_tpu_ops as _gen_tpu_ops
from tensorflow.python.ops import resource_variable_ops as _resource_variable_ops
from tensorflow.python.ops import resource_variables_toggle as _resource_variables_toggle
from tensorflow.python.ops import script_ops as _script_ops
from tensorflow.python.tpu import feature_column as _tpu_feature_column_v1
from tensorflow.python.tpu import feature_column_v2 as _tpu_feature_column
from tensorflow.python.tpu import tpu as _tpu
from tensorflow.python.tpu import tpu_function as _tpu_function
from tensorflow.python.training import coordinator as _coordinator
from tensorflow.python.training import evaluation as _evaluation
from tensorflow.python.training import saver as _saver
from tensorflow.python.training import training_util as _training_util
from tensorflow.tsl.profiler.protobuf import xplane_pb2 as _xplane_pb2

# What `Session.run` makes of nested fetches and feeds (names, variables, SparseTensors, dicts):
# the public API offers it only inside a real Session, and ours is not one.
FetchHandler = _session._FetchHandler
# `Saver.save` and `Saver.restore` accept any session that implements this interface.
SessionInterface: TypeAlias = _session.SessionInterface

# What a Saver makes its ops with: `tf.compat.v1.train.Saver(builder=)` is public, the class to
# derive a builder from is not. It alone says which variables go into one file.
BulkSaverBuilder = _saver.BulkSaverBuilder

# Where Keras 3 counts the names that it has given.
_KERAS_NAMES = "object_name_uids"

# The graph of `tf.compat.v1.estimator.experimental.KMeans`: only the Estimator around it was
# public.
KMeans = _clustering_ops.KMeans

# A variable without a value yet, as TF1 had them until an init op or a Saver ran. The public
# `tf.Variable` would first fill every variable with zeros.
UninitializedVariable = _resource_variable_ops.UninitializedVariable
BaseResourceVariable: TypeAlias = _resource_variable_ops.BaseResourceVariable

# The context that makes `CrossShardOptimizer` believe it is one of N shards. Its public way in,
# `tf.compat.v1.tpu.replicate`, would build TPU-only nodes around the model.
tpu_shard_context = _tpu_function.tpu_shard_context

# What a graph for serving on TPUs is built with: a function in which `get_variable` makes variables
# of the graph around it, as in a `tf.function` it does not; the context that keeps control flow
# functional; the removal of nodes that `tpu.rewrite` leaves behind and that a TPU compiler refuses.
Defun = _function.Defun
TPUInferenceContext = _tpu._TPUInferenceContext
prune_unconnected_ops_from_xla = _tpu.prune_unconnected_ops_from_xla

# What `tf.compat.v1.tpu.experimental.embedding_column` and its kin return: only the functions are
# public. The first two are those that still can be made, the others what a spec takes beside them.
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
# What `tf.feature_column.numeric_column` returns: weights of examples must be one.
NumericColumn = _feature_column.NumericColumn
# What the layers of columns are made of: which kind columns are, what they are checked for, what
# their variable scopes are called, and their weighted sums. tf-keras has copies of some, and none
# of the last; the public `linear_model` does not take all columns.
CategoricalColumn = _feature_column.CategoricalColumn
is_feature_column_v2 = _feature_column.is_feature_column_v2
normalize_feature_columns = _feature_column._normalize_feature_columns
check_batch_sizes = _feature_column._verify_static_batch_size_equality
variable_scope_of_column = _feature_column._sanitize_column_name_for_variable_scope
weighted_sum = _feature_column._create_weighted_sum
# What `tf.contrib.feature_column.sequence_input_layer` was made of: the class of its columns, what
# they are checked by, and what they look features up in. The public layer of today, Keras's, makes
# other variables, and refuses old columns.
SequenceDenseColumnV1 = _feature_column_v1._SequenceDenseColumn
SequenceNumericColumn = _sequence_feature_column.SequenceNumericColumn
normalize_feature_columns_v1 = _feature_column_v1._normalize_feature_columns
LazyBuilder = _feature_column_v1._LazyBuilder
# The collection in which TPU embedding columns leave {table: (variable scope, variable name)} on
# cores, and what they append to a feature's name for its lengths. No public function reads either.
EMBEDDING_SCOPES = _tpu_feature_column_v1._TPU_FC_TO_SCOPE
SEQUENCE_LENGTH_SUFFIX = _tpu_feature_column_v1._SEQUENCE_FEATURE_LENGTH_POSTFIX

# A strategy of one device, to derive the one from under which model_fn is recorded.
OneDeviceExtended = _one_device_strategy.OneDeviceExtended

# The counter that `tf.compat.v1.train`'s evaluation loop increments, and the hook that reads it.
get_or_create_eval_step = _evaluation._get_or_create_eval_step
StopAfterNEvalsHook = _evaluation._StopAfterNEvalsHook

# The format of XLA's programs, which `experimental_get_compiler_ir` returns serialised.
HloModule = _hlo_pb2.HloModuleProto

# The format of what `tf.profiler.experimental.stop` writes: TensorFlow offers no reader of it.
XSpace = _xplane_pb2.XSpace

# Eager execution while a `tf.Graph` is the default one; `tf.init_scope` does not lift out of it.
eager_mode = _context.eager_mode


def register_function(function_def) -> None:
    """Makes a library function of a recorded graph callable from functions of this process.

    `import_graph_def` inside a `tf.function` does not do so by itself ("Op type not registered").
    """
    context = _context.context()
    if not context.has_function(function_def.signature.name):
        context.add_function_def(function_def)


def function_def(name: str):
    """The FunctionDef of a function of this process that a graph calls, and does not hold."""
    return _context.context().get_function_def(name)


@contextlib.contextmanager
def tensor_shapes(*, v2: bool) -> Iterator[None]:
    """Dimensions of shapes as ints (v2) or as Dimension objects (v1) while the body runs.

    `tf.compat.v1.disable_v2_tensorshape()` sets the same flag, but nothing public reads it, so
    that it could not be put back as it was.
    """
    before = _tensor_shape._TENSORSHAPE_V2_OVERRIDE
    _tensor_shape._TENSORSHAPE_V2_OVERRIDE = v2
    try:
        yield
    finally:
        _tensor_shape._TENSORSHAPE_V2_OVERRIDE = before


_GRAPH_SWITCHES = (
    (_resource_variables_toggle, "_DEFAULT_USE_RESOURCE"),
    (_control_flow_util, "ENABLE_CONTROL_FLOW_V2"),
)
# One for each body that runs now with switches of its own.
_switched: list[object] = []


@contextlib.contextmanager
def _graph_switches(*values: bool) -> Iterator[None]:
    before = [getattr(module, flag) for module, flag in _GRAPH_SWITCHES]
    _switched.append(values)
    for (module, flag), value in zip(_GRAPH_SWITCHES, values, strict=True):
        setattr(module, flag, value)
    try:
        yield
    finally:
        _switched.pop()
        for (module, flag), value in zip(_GRAPH_SWITCHES, before, strict=True):
            setattr(module, flag, value)


def _of_the_process() -> list[bool]:
    values = [getattr(module, flag) for module, flag in _GRAPH_SWITCHES]
    return [value._otherwise if isinstance(value, _ByUser) else value for value in values]


def graphs_of_the_process() -> contextlib.AbstractContextManager:
    """Variables and control flow are what the process's own switches say while the body runs."""
    return _graph_switches(*_of_the_process())


def control_flow_v2() -> contextlib.AbstractContextManager:
    """Functional `While` and `If` nodes while the body runs, also after `disable_v2_behavior()`."""
    return _graph_switches(_of_the_process()[0], True)


@contextlib.contextmanager
def xla_control_flow_context(name: str) -> Iterator[None]:
    """What `tpu.replicate` gave model_fn: gradients of conds and loops that XLA can lower."""
    control_flow_context = _control_flow_ops.XLAControlFlowContext()
    control_flow_context._name = name
    control_flow_context.Enter()
    try:
        yield
    finally:
        control_flow_context.Exit()


@contextlib.contextmanager
def sums_over_one_core() -> Iterator[None]:
    """Sums over cores are their input while the body runs: no CPU has a kernel for the op."""
    before = _gen_tpu_ops.cross_replica_sum
    _gen_tpu_ops.cross_replica_sum = lambda x, group_assignment, name=None: tf.identity(x, name)
    try:
        yield
    finally:
        _gen_tpu_ops.cross_replica_sum = before


def abort_collectives(message: str) -> None:
    """Ends what waits for another process, from any thread; all later collectives fail too.

    The error is an InternalError: a MonitoredSession would try others anew, and wait again.
    """
    _context.context().abort_collective_ops(tf.errors.INTERNAL, message)


def is_stateful(op: str) -> bool:
    """Whether TensorFlow takes ops of this type to have state, or effects.

    An `Operation` says so, but not a node of a function.
    """
    definition = _op_def_registry.get(op)
    return definition is None or definition.is_stateful


def ops_are_deterministic() -> bool:
    """Whether `enable_op_determinism`, or the environment, asked for equal results of equal runs.

    There is a public way to ask for it, and none to find out.
    """
    return _config.is_op_determinism_enabled()


def capture(tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` as seen from the function being traced.

    `import_graph_def` takes its `input_map` literally, without the capturing that ops do.
    """
    graph = _ops.get_default_graph()
    if isinstance(tensor, _ops.EagerTensor) or tensor.graph is not graph:
        return graph.capture(tensor)
    return tensor


def default_session(session: SessionInterface):
    """A context in which `tensor.eval()` uses `session`; public only as a method of Session."""
    return _stack.default_session(session)


def replica_context(strategy) -> contextlib.AbstractContextManager:
    """Code in the body runs as replica 0 of `strategy`.

    Public only as a call: `strategy.extended.call_for_each_replica(function)`.
    """
    return _one_device_strategy._OneDeviceReplicaContext(strategy)


def saveable_objects(checkpoint: tf.train.Checkpoint) -> list:
    """What a v1 Saver needs to read and write the object-based format of `checkpoint`.

    A Checkpoint saves itself, but the graph of a SavedModel names a Saver.
    """
    return _graph_view.ObjectGraphView(checkpoint).frozen_saveable_objects()


@contextlib.contextmanager
def fresh_keras_names() -> Iterator[None]:
    """Lets Keras name layers as in a new process: `dense`, then `dense_1`.

    Keras 2 counted by graph, so a model_fn that was called again got the same names, which are
    those in its checkpoint. Keras 3 counts by thread.
    """
    before = _keras_state.get_global_attribute(_KERAS_NAMES)
    _keras_state.set_global_attribute(_KERAS_NAMES, None)
    try:
        yield
    finally:
        _keras_state.set_global_attribute(_KERAS_NAMES, before)


def add_global_step_read(graph: tf.Graph) -> None:
    """Adds the tensor through which the stock hooks read the global step of a run.

    They would add one themselves, which asks in a cond whether the step has a value. It always has,
    and a cond in every step costs a small model a tenth of its speed.
    """
    with graph.as_default(), tf.control_dependencies(None):
        step = tf.compat.v1.train.get_global_step(graph)
        graph.add_to_collection(_training_util.GLOBAL_STEP_READ_KEY, step.read_value())


def rewrites_as_usual() -> bool:
    """Whether nobody has chosen what Grappler does with what this thread calls.

    How often it goes over a graph is no such choice: all Estimators have one.
    """
    config = tf.compat.v1.ConfigProto.FromString(
        _context.context().function_call_options.config_proto_serialized
    )
    chosen = config.graph_options.rewrite_options.ListFields()
    return {field.name for field, _ in chosen} <= {"meta_optimizer_iterations"}


@contextlib.contextmanager
def rewrite_options(options) -> Iterator[None]:
    """What this thread calls in the body is rewritten by Grappler as a `RewriterConfig` says.

    A function is rewritten when it is first called, and then stays as it is. The public
    `tf.config.optimizer.set_experimental_options` changes all threads, and has not all fields.
    """
    context = _context.context()
    before = context._thread_local_data.function_call_options
    config = tf.compat.v1.ConfigProto.FromString(
        context.function_call_options.config_proto_serialized
    )
    config.graph_options.rewrite_options.MergeFrom(options)
    ours = _context.FunctionCallOptions(context.function_call_options.executor_type, config)
    context.function_call_options = ours
    try:
        yield
    finally:
        if context._thread_local_data.function_call_options is ours:  # else a setting was changed
            context.function_call_options = before


def graph_mode() -> contextlib.AbstractContextManager:
    """Graph mode on the thread's own default graph, as all of TF 1.15 ran.

    Public are only `tf.Graph().as_default()`, in which `tf.compat.v1.reset_default_graph()` is an
    error, and `tf.compat.v1.disable_eager_execution()`, which changes all threads and has no end.
    """
    return _context.graph_mode()


class _ModeOfThreads:
    """How a thread starts: in graph mode, where legacy code or a Coordinator runs in it."""

    def __init__(self, is_legacy: Callable[[FrameType], bool], otherwise: int):
        self._is_legacy = is_legacy
        self._otherwise = otherwise

    def __eq__(self, mode: object) -> bool:
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code is not _coordinator.LooperThread.run.__code__:
            if self._is_legacy(frame):
                break
            frame = frame.f_back
        return mode == (_context.GRAPH_MODE if frame else self._otherwise)

    __hash__ = None  # type: ignore[assignment]


def threads_in_graph_mode(is_legacy: Callable[[FrameType], bool]) -> None:
    """New threads are in graph mode where `is_legacy(frame)` of what runs in them.

    So are the threads of a `Coordinator`, as a Supervisor has them. The public
    `tf.compat.v1.disable_eager_execution` changes all threads of the process.
    """
    before = _context.default_execution_mode
    if not isinstance(before, _ModeOfThreads):
        _context.default_execution_mode = _ModeOfThreads(is_legacy, before)


class _ByCaller:
    """A flag that is what the caller of the function that reads it expects."""

    def __init__(self, is_legacy: Callable[[FrameType], bool], otherwise: bool):
        self._is_legacy = is_legacy
        self._otherwise = otherwise

    def __bool__(self) -> bool:
        # 0 is here, 1 the method of TensorShape, 2 who called that.
        return self._otherwise and not self._is_legacy(sys._getframe(2))


def tensor_shapes_by_caller(is_legacy: Callable[[FrameType], bool]) -> None:
    """Dimensions are Dimension objects where `is_legacy(frame of the code that asks)`.

    The public switches change the whole process: with v1 shapes on, Keras 3 fails in `fit`.
    """
    before = _tensor_shape._TENSORSHAPE_V2_OVERRIDE
    if not isinstance(before, _ByCaller):
        otherwise = tf.__internal__.tf2.enabled() if before is None else before
        _tensor_shape._TENSORSHAPE_V2_OVERRIDE = _ByCaller(is_legacy, otherwise)


def _caller_outside_of(*packages: str) -> FrameType | None:
    """The innermost frame above the caller whose module is in none of `packages`."""
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith(packages):
        frame = frame.f_back
    return frame


class _ByUser:
    """A flag that is what the code which uses some packages expects."""

    def __init__(self, is_legacy: Callable[[FrameType], bool], otherwise: bool, *packages: str):
        self._is_legacy = is_legacy
        self._otherwise = otherwise
        self._packages = packages

    def __bool__(self) -> bool:
        frame = _caller_outside_of(*self._packages)
        return self._otherwise and not (frame and self._is_legacy(frame))

    # TensorFlow hands the flag out: `tf.compat.v1.control_flow_v2_enabled() == True`.
    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))


def tensor_equality_by_caller(is_legacy: Callable[[FrameType], bool]) -> None:
    """Tensors and variables are equal to themselves alone, and keys of dicts, in legacy code.

    That is so in every graph but those of functions, which v1 control flow did not have: loops and
    conds. The public `tf.compat.v1.disable_tensor_equality` changes the whole process.
    """
    before = _tensor.Tensor._USE_EQUALITY
    if not isinstance(before, _ByUser):
        _tensor.Tensor._USE_EQUALITY = _ByUser(is_legacy, bool(before), "tensorflow.")


def graphs_by_caller(*is_legacy: Callable[[FrameType], bool]) -> None:
    """Reference variables, and the control flow that takes them, in v1 graphs of legacy code.

    The public `tf.compat.v1.disable_resource_variables` and `disable_control_flow_v2` change the
    whole process. Within a recording nothing changes yet.

    Args:
        *is_legacy: For variables and for control flow, whether a frame's code expects TF 1's.
    """
    if _switched:
        return
    for (module, flag), whose in zip(_GRAPH_SWITCHES, is_legacy, strict=True):
        before = getattr(module, flag)
        if not isinstance(before, _ByUser):
            setattr(module, flag, _ByUser(whose, bool(before), "tensorflow."))


def keras_dtypes_by_caller(is_legacy: Callable[[FrameType], bool]) -> None:
    """Keras 2 layers that `is_legacy(frame of the code that makes one)` infer their dtype.

    That is the dtype of the first input, as in TF 1; the others cast their input to float32. The
    public switch, `tf.keras.layers.disable_v2_dtype_behavior`, changes the whole process.
    """
    from tf_keras.src.engine import base_layer_utils

    before = base_layer_utils.V2_DTYPE_BEHAVIOR
    if not isinstance(before, _ByUser):
        otherwise = tf.__internal__.tf2.enabled() if before is None else before
        base_layer_utils.V2_DTYPE_BEHAVIOR = _ByUser(
            is_legacy, otherwise, "tf_keras.", "tensorflow."
        )


def give_variables_an_initialized_value() -> None:
    """`variable.initialized_value()` for resource variables too, as in TF 1.15.

    In TF 2 only reference variables have it; it is not implemented for the others.
    """
    if BaseResourceVariable.initialized_value is tf.Variable.initialized_value:
        BaseResourceVariable.initialized_value = tf.compat.v1.Variable.initialized_value


@contextlib.contextmanager
def names_in_branches_by_scope(wanted: bool) -> Iterator[None]:
    """In v1 graphs too, ops in branches and loops are named after the name scope around them.

    TF 1.15 did so, and TF 2 does so in its own functions. Names of summaries show it, and programs
    ask the scope whether they are in a loop. Nothing changes where it is not `wanted`.
    """
    branch = _control_flow_v2_func_graphs.ControlFlowFuncGraph
    make = branch.__init__

    @functools.wraps(make)
    def make_with_scope(graph, *args, **kwargs):
        make(graph, *args, **kwargs)
        if wanted and _in_v1_graph():
            graph._name_stack = graph.outer_graph.get_name_scope()

    branch.__init__ = make_with_scope
    try:
        yield
    finally:
        branch.__init__ = make


def _in_v1_graph() -> bool:
    return not tf.compat.v1.executing_eagerly_outside_functions()


class _InitializersByGraph(dict):
    """Keras 2's initializers by name: those of TF 1 where a variable would be a v1 graph's."""

    def __init__(self, modern: dict, of_tf_1: dict):
        super().__init__(modern)
        self._of_tf_1 = of_tf_1

    def __getitem__(self, name):
        modern = super().__getitem__(name)
        return self._of_tf_1.get(name, modern) if _in_v1_graph() else modern

    def get(self, name, default=None):
        modern = super().get(name, default)
        return self._of_tf_1.get(name, modern) if _in_v1_graph() else modern

    def values(self):
        return [*super().values(), *self._of_tf_1.values()]


def keras_initializers_by_graph() -> None:
    """Keras 2 layers in v1 graphs draw their first weights from the graph's seed, as in TF 1.

    Those of TF 2 draw from Python's random numbers. Keras has both, and chooses by a switch of the
    whole process.
    """
    from tf_keras.api._v1.keras import initializers as of_tf_1
    from tf_keras.src import initializers

    initializers.populate_deserializable_objects()
    table, modern = initializers.LOCAL, initializers.LOCAL.ALL_OBJECTS
    if not isinstance(modern, _InitializersByGraph):
        snake_case = {name: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in modern}
        old = {name: getattr(of_tf_1, of, None) for name, of in snake_case.items()}
        initializers.LOCAL = SimpleNamespace(
            ALL_OBJECTS=_InitializersByGraph(modern, {n: cls for n, cls in old.items() if cls}),
            GENERATED_WITH_V2=table.GENERATED_WITH_V2,
        )


def keras_metric_names_by_caller(is_legacy: Callable[[FrameType], bool]) -> None:
    """Keras 2 models that legacy code compiles name their metrics as in TF 1: "acc", "mean_...".

    TF 2 keeps the words that `compile` was given. Keras chooses by a switch of the whole process.
    """
    from tf_keras.src.engine import training_utils_v1

    modern = training_utils_v1.get_metric_name
    if hasattr(modern, "of_tf_2"):
        return

    def get_metric_name(metric, weighted=False):
        frame = _caller_outside_of("tf_keras.", "tensorflow.", "estimator2strategy.")
        if not (frame and is_legacy(frame)):
            return modern(metric, weighted)
        name = _SHORT_METRICS.get(metric) if isinstance(metric, str) else None
        if name is None:
            found = training_utils_v1.metrics_module.get(metric)
            name = getattr(found, "name", None) or found.__name__
        return f"weighted_{name}" if weighted else name

    get_metric_name.of_tf_2 = modern  # type: ignore[attr-defined]
    training_utils_v1.get_metric_name = get_metric_name


_SHORT_METRICS = {"accuracy": "acc", "acc": "acc", "crossentropy": "ce", "ce": "ce"}


def keras_layer_names_by_caller(is_legacy: Callable[[FrameType], bool]) -> None:
    """Keras 2 layers that legacy code makes have TF 1's names: `gp_t2layer` for a `GPT2Layer`.

    Later versions tell digits from letters: `gpt2_layer`.
    """
    from tf_keras.src.engine import base_layer_v1
    from tf_keras.src.utils import generic_utils

    modern = generic_utils.to_snake_case
    if hasattr(modern, "of_tf_2"):
        return

    def to_snake_case(name):
        frame = _caller_outside_of("tf_keras.", "tensorflow.", "estimator2strategy.")
        if not (frame and is_legacy(frame)):
            return modern(name)
        words = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
        snake_case = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
        return f"private{snake_case}" if snake_case[0] == "_" else snake_case

    to_snake_case.of_tf_2 = modern  # type: ignore[attr-defined]
    generic_utils.to_snake_case = base_layer_v1.to_snake_case = to_snake_case


@contextlib.contextmanager
def keras_classes_kept(model) -> Iterator[None]:
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


def set_captured(function, captured: Sequence[tf.Tensor]) -> None:
    """Gives a ConcreteFunction other captured tensors than it was traced with.

    `set_external_captures` has no underscore, but no documentation either: SavedModels are loaded
    with it.
    """
    function.set_external_captures(list(captured))


def rebind(function, replaced: dict[int, tf.Tensor]) -> None:
    """The same for those captured tensors that are in `replaced`, by the old one's id."""
    captured = function.captured_inputs
    set_captured(function, [replaced.get(id(tensor), tensor) for tensor in captured])


def xla_kernels() -> list:
    """KernelDefs of what XLA can compile on a CPU; the public registry has no reader.

    They are registered when something is compiled for the first time.
    """
    compiled = tf.function(lambda: tf.constant(0), autograph=False, jit_compile=True)
    compiled.experimental_get_compiler_ir()(stage="hlo")
    registered = _kernels.get_all_registered_kernels().kernel
    return [kernel for kernel in registered if kernel.device_type == "XLA_CPU_JIT"]
