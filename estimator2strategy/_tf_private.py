"""Every private TensorFlow symbol the runtime leans on, each with the reason it cannot be public.

`tests/test_tf_private.py` exercises each one, so that a TensorFlow release that moves or changes
one of them fails there, by name, and not somewhere in a training loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeAlias

import tensorflow as tf
from tensorflow.python.client import session as _session
from tensorflow.python.distribute import one_device_strategy as _one_device_strategy
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import ops as _ops
from tensorflow.python.framework import stack as _stack
from tensorflow.python.framework import tensor_shape as _tensor_shape
from tensorflow.python.ops import control_flow_ops as _control_flow_ops
from tensorflow.python.ops import control_flow_util as _control_flow_util
from tensorflow.python.ops import resource_variable_ops as _resource_variable_ops
from tensorflow.python.tpu import tpu_function as _tpu_function
from tensorflow.python.training import evaluation as _evaluation
from tensorflow.python.training import training_util as _training_util

# What `Session.run` makes of nested fetches and feeds (names, variables, SparseTensors, dicts):
# the public API offers it only inside a real Session, and ours is not one.
FetchHandler = _session._FetchHandler
# `Saver.save` and `Saver.restore` accept any session that implements this interface.
SessionInterface: TypeAlias = _session.SessionInterface

# A variable without a value yet, as TF1 had them until an init op or a Saver ran. The public
# `tf.Variable` would first fill every variable with zeros.
UninitializedVariable = _resource_variable_ops.UninitializedVariable
BaseResourceVariable: TypeAlias = _resource_variable_ops.BaseResourceVariable

# The context that makes `CrossShardOptimizer` believe it is one of N shards. Its public way in,
# `tf.compat.v1.tpu.replicate`, would build TPU-only nodes around the model.
tpu_shard_context = _tpu_function.tpu_shard_context

# A strategy of one device, to derive the one from under which model_fn is recorded.
OneDeviceExtended = _one_device_strategy.OneDeviceExtended

# The counter that `tf.compat.v1.train`'s evaluation loop increments, and the hook that reads it.
get_or_create_eval_step = _evaluation._get_or_create_eval_step
StopAfterNEvalsHook = _evaluation._StopAfterNEvalsHook

# Eager execution while a `tf.Graph` is the default one; `tf.init_scope` does not lift out of it.
eager_mode = _context.eager_mode


def register_function(function_def) -> None:
    """Makes a library function of a recorded graph callable from functions of this process.

    `import_graph_def` inside a `tf.function` does not do so by itself ("Op type not registered").
    """
    context = _context.context()
    if not context.has_function(function_def.signature.name):
        context.add_function_def(function_def)


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


@contextlib.contextmanager
def control_flow_v2() -> Iterator[None]:
    """Functional `While` and `If` nodes while the body runs, also after `disable_v2_behavior()`."""
    before = _control_flow_util.ENABLE_CONTROL_FLOW_V2
    _control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
    try:
        yield
    finally:
        _control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


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


def add_global_step_read(graph: tf.Graph) -> None:
    """Adds the tensor through which the stock hooks read the global step of a run.

    They would add one themselves, which asks in a cond whether the step has a value. It always has,
    and a cond in every step costs a small model a tenth of its speed.
    """
    with graph.as_default(), tf.control_dependencies(None):
        step = tf.compat.v1.train.get_global_step(graph)
        graph.add_to_collection(_training_util.GLOBAL_STEP_READ_KEY, step.read_value() + 0)
