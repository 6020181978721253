"""The switches between TF 1's behaviour and TF 2's: while a body runs, or by whose code asks.

Legacy code and TF 2's own, Keras's above all, run in one process, and each has to find what it
expects. The public switches (`tf.compat.v1.disable_v2_tensorshape` and its kin) change the whole
process, and few can be read and put back; some differences have none. So these change what is
behind, flags, tables and functions that are private: for as long as a context lasts, or to
something that looks at the frame of the code that asks.

`tests/engine/test_tf_switches.py` exercises each one, as `tests/engine/test_tf_private.py`
does what else of TensorFlow is private.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace

import tensorflow as tf
from keras.src.backend.common import global_state as _keras_state
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import tensor as _tensor
from tensorflow.python.framework import tensor_shape as _tensor_shape
from tensorflow.python.ops import control_flow_util as _control_flow_util
from tensorflow.python.ops import control_flow_v2_func_graphs as _control_flow_v2_func_graphs
from tensorflow.python.ops import resource_variables_toggle as _resource_variables_toggle
from tensorflow.python.training import coordinator as _coordinator

from estimator2strategy.engine._tf_private import BaseResourceVariable


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


# Where Keras 3 counts the names that it has given.
_KERAS_NAMES = "object_name_uids"


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


# Eager execution while a `tf.Graph` is the default one; `tf.init_scope` does not lift out of it.
eager_mode = _context.eager_mode


def graph_mode() -> contextlib.AbstractContextManager:
    """Graph mode on the thread's own default graph, as all of TF 1.15 ran.

    Public are only `tf.Graph().as_default()`, in which `tf.compat.v1.reset_default_graph()` is an
    error, and `tf.compat.v1.disable_eager_execution()`, which changes all threads and has no end.
    """
    return _context.graph_mode()


def give_variables_what_references_have() -> None:
    """`initialized_value()` and `_ref()` for resource variables too, as those of TF 1.15's models.

    In TF 2 only reference variables have the former; it is not implemented for the others. The
    latter is what TF 1 read and assigned: of a resource variable, the variable.
    """
    if BaseResourceVariable.initialized_value is tf.Variable.initialized_value:
        BaseResourceVariable.initialized_value = tf.compat.v1.Variable.initialized_value
    if not hasattr(BaseResourceVariable, "_ref"):
        BaseResourceVariable._ref = lambda variable: variable


class _ModeOfThreads:
    """Starts a thread in graph mode, where legacy code or a Coordinator runs in it."""

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


def _caller_outside_of(*packages: str) -> FrameType | None:
    """The innermost frame above the caller whose module is in none of `packages`."""
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith(packages):
        frame = frame.f_back
    return frame


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


def keras_moments_may_lack_a_mask() -> None:
    """Subclasses of Keras 2's batch norms may have a `_moments` of TF 1, which took no mask.

    Programs that average over cores have one. A mask is left out, as TF 1 knew none there.
    """
    from tf_keras.src.layers.normalization import batch_normalization

    base = batch_normalization.BatchNormalizationBase
    if "__init_subclass__" in vars(base):
        return

    def init_subclass(cls, **kwargs):
        super(base, cls).__init_subclass__(**kwargs)
        moments = vars(cls).get("_moments")
        if moments and "mask" not in inspect.signature(moments).parameters:
            cls._moments = _without_mask(moments)

    base.__init_subclass__ = classmethod(init_subclass)


def _without_mask(moments: Callable) -> Callable:
    @functools.wraps(moments)
    def call(self, inputs, reduction_axes, keep_dims, mask=None):
        del mask
        return moments(self, inputs, reduction_axes, keep_dims)

    return call
