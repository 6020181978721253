"""The switches between TF 1's behaviour and TF 2's: for a context, a graph, or who asks.

Legacy code and TF 2's own, Keras's above all, run in one process, and each has to find what it
expects. The public switches (`tf.compat.v1.disable_v2_tensorshape` and its kin) change the whole
process, and few can be read and put back; some differences have none. So these change what is
behind, flags, tables and functions that are private, to something that asks a function for its
answer. Each is put in place once, and nothing here knows whose code is legacy: `engine/behavior.py`
answers for graphs, `engine/callers.py` for the code that asks.

`tests/engine/test_tf_switches.py` exercises each one, as `tests/engine/test_tf_private.py`
does what else of TensorFlow is private.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import re
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import tensorflow as tf
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import ops as _ops
from tensorflow.python.framework import random_seed as _random_seed
from tensorflow.python.framework import tensor as _tensor
from tensorflow.python.framework import tensor_shape as _tensor_shape
from tensorflow.python.ops import control_flow_util as _control_flow_util
from tensorflow.python.ops import resource_variables_toggle as _resource_variables_toggle
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph as _BranchGraph

from estimator2strategy.engine import patches
from estimator2strategy.engine._tf_private import BaseResourceVariable

_shapes_v2: contextvars.ContextVar[bool | None] = contextvars.ContextVar("shapes", default=None)


class _Shapes:
    """True if dimensions are ints: the context decides, then who asks, then the process."""

    def __init__(self, otherwise: bool):
        self.otherwise = otherwise
        self.asks_for_dimensions: Callable[[], bool] = lambda: False

    def __bool__(self) -> bool:
        v2 = _shapes_v2.get()
        if v2 is None:
            return self.otherwise and not self.asks_for_dimensions()
        return v2


def _installed_shapes() -> _Shapes:
    before = _tensor_shape._TENSORSHAPE_V2_OVERRIDE
    if not isinstance(before, _Shapes):
        before = _Shapes(tf.__internal__.tf2.enabled() if before is None else before)
        patches.put("shapes", _tensor_shape, "_TENSORSHAPE_V2_OVERRIDE", before)
    return before


@contextlib.contextmanager
def tensor_shapes(*, v2: bool) -> Iterator[None]:
    """Dimensions of shapes as ints (v2) or as Dimension objects (v1) while the body runs.

    So in this context only: `tf.compat.v1.disable_v2_tensorshape()` changes all threads, and
    nothing public reads it, so that it could not be put back as it was.
    """
    token = set_tensor_shapes(v2=v2)
    try:
        yield
    finally:
        put_back_tensor_shapes(token)


def set_tensor_shapes(*, v2: bool) -> contextvars.Token[bool | None]:
    """`tensor_shapes` from now on; what it returns is for `put_back_tensor_shapes`."""
    _installed_shapes()
    return _shapes_v2.set(v2)


put_back_tensor_shapes = _shapes_v2.reset


def tensor_shapes_by(asks_for_dimensions: Callable[[], bool]) -> None:
    """Elsewhere dimensions are Dimension objects where `asks_for_dimensions()`.

    The public switches change the whole process: with v1 shapes on, Keras 3 fails in `fit`.
    """
    _installed_shapes().asks_for_dimensions = asks_for_dimensions


_GRAPH_SWITCHES = (
    (_resource_variables_toggle, "_DEFAULT_USE_RESOURCE"),
    (_control_flow_util, "ENABLE_CONTROL_FLOW_V2"),
)


class _Asking:
    """A flag that is what `answer` says; it is given what the process's own switch says."""

    def __init__(self, answer: Callable[[bool], bool], otherwise: bool):
        self._answer = answer
        self._otherwise = otherwise

    def __bool__(self) -> bool:
        return self._answer(self._otherwise)

    # TensorFlow hands the flag out: `tf.compat.v1.resource_variables_enabled() == True`.
    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))


def _in_place_of(patch: str, owner: object, name: str) -> Callable[[Callable[..., Any]], None]:
    """Puts the decorated function in place of `name`, once. It is given the one before, too."""

    def put(function: Callable[..., Any]) -> None:
        modern = getattr(owner, name)
        if hasattr(modern, "of_tf_2"):
            return

        @functools.wraps(modern)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(modern, *args, **kwargs)

        call.of_tf_2 = modern  # type: ignore[attr-defined]
        patches.put(patch, owner, name, call)

    return put


def graphs_by(*answers: Callable[[bool], bool]) -> None:
    """`answers` say whether variables are resource variables, and control flow is in functions.

    The public `tf.compat.v1.disable_resource_variables` and `disable_control_flow_v2` change the
    whole process. A program that calls them takes the answers away: this puts them back, and they
    get what it has chosen.
    """
    for (module, flag), answer in zip(_GRAPH_SWITCHES, answers, strict=True):
        before = getattr(module, flag)
        if not isinstance(before, _Asking):
            patches.put("graph switches", module, flag, _Asking(answer, bool(before)))


def names_in_branches_by_scope(is_wanted: Callable[[tf.Graph], bool]) -> None:
    """Names ops in branches and loops after the name scope around them, in v1 graphs too.

    TF 1.15 did so, and TF 2 does so in its own functions. Names of summaries show it, and programs
    ask the scope whether they are in a loop. `is_wanted(graph)` is asked for the graph around.
    """

    @_in_place_of("names in branches", _BranchGraph, "__init__")
    def make_with_scope(make: Any, graph: tf.Graph, *args: Any, **kwargs: Any) -> None:
        make(graph, *args, **kwargs)
        if is_wanted(graph.outer_graph) and _in_v1_graph():
            graph._name_stack = graph.outer_graph.get_name_scope()


class _Seeds(weakref.WeakKeyDictionary[tf.Graph, int]):
    """TensorFlow's table of the same name: graph -> the number of its ops without an own seed."""

    def __init__(self, counts_all: Callable[[tf.Graph], bool], known: Mapping[tf.Graph, int]):
        super().__init__(known)
        self._counts_all = counts_all

    def setdefault(self, graph: tf.Graph, default: Any = None) -> Any:
        if self._counts_all(graph):
            return graph.num_operations()
        return super().setdefault(graph, default)

    def __getitem__(self, graph: tf.Graph) -> int:
        return 0 if self._counts_all(graph) else super().__getitem__(graph)


def seeds_by_number_of_ops(counts_all: Callable[[tf.Graph], bool]) -> None:
    """Makes an op's seed the number of ops before it, in graphs with a seed, as in TF 1.15.

    In TF 2 it is the number of random ops. `counts_all(graph)` says which it is.
    """
    before = _random_seed._graph_to_seed_dict
    if not isinstance(before, _Seeds):
        seeds = _Seeds(counts_all, before)
        patches.put("op seeds", _random_seed, "_graph_to_seed_dict", seeds)


def is_own_graph(graph: tf.Graph) -> bool:
    """True if it is the graph that this thread builds in where no other is the default one."""
    return _ops._default_graph_stack._global_default_graph is graph


def _in_v1_graph() -> bool:
    return not tf.compat.v1.executing_eagerly_outside_functions()


@contextlib.contextmanager
def fresh_keras_names() -> Iterator[None]:
    """Lets Keras name layers as in a new process: `dense`, then `dense_1`.

    Keras 2 counted by graph, so a model_fn that was called again got the same names, which are
    those in its checkpoint. Keras 3 counts by thread.
    """
    before = _named_by_keras(None)
    try:
        yield
    finally:
        _named_by_keras(before)


def _named_by_keras(names: Any) -> Any:
    """Sets the table of the names that Keras has given; returns the one before."""
    before = None
    if state := sys.modules.get("keras.src.backend.common.global_state"):  # it is imported
        patches.noted("keras names")
        before = state.get_global_attribute("object_name_uids")
        state.set_global_attribute("object_name_uids", names)
    return before


# Eager execution while a `tf.Graph` is the default one; `tf.init_scope` does not lift out of it.
eager_mode = _context.eager_mode


def graph_mode() -> contextlib.AbstractContextManager[None]:
    """Graph mode on the thread's own default graph, as all of TF 1.15 ran.

    Public are only `tf.Graph().as_default()`, in which `tf.compat.v1.reset_default_graph()` is an
    error, and `tf.compat.v1.disable_eager_execution()`, which changes all threads and has no end.
    """
    return cast("contextlib.AbstractContextManager[None]", _context.graph_mode())


def give_variables_what_references_have() -> None:
    """`initialized_value()`, `_ref()` and `bool()` for resource variables too, as in TF 1.15.

    In TF 2 only reference variables have the first; it is not implemented for the others. The
    second is what TF 1 read and assigned: of a resource variable, the variable.
    """
    cls, of_references = BaseResourceVariable, tf.compat.v1.Variable
    patches.put("references", cls, "__bool__", _is_true)
    if cls.initialized_value is tf.Variable.initialized_value:
        patches.put("references", cls, "initialized_value", of_references.initialized_value)
    if not hasattr(cls, "_ref"):
        patches.put("references", cls, "_ref", lambda variable: variable)


def _is_true(variable: tf.Variable) -> bool:
    """In a graph of TF 1 a variable is an object like any other: `average if average else v`."""
    return _in_v1_graph() or bool(variable.read_value())


class _ModeOfThreads:
    """Starts a thread in graph mode where TF 1.15's code runs in it."""

    def __init__(self, runs_tf115: Callable[[], bool], otherwise: int):
        self._runs_tf115 = runs_tf115
        self._otherwise = otherwise

    def __eq__(self, mode: object) -> bool:
        return mode == (_context.GRAPH_MODE if self._runs_tf115() else self._otherwise)

    __hash__ = None  # type: ignore[assignment]


def threads_in_graph_mode(runs_tf115: Callable[[], bool]) -> None:
    """New threads are in graph mode where `runs_tf115()`, which each asks at its first use of TF.

    The public `tf.compat.v1.disable_eager_execution` changes all threads of the process.
    """
    before = _context.default_execution_mode
    if not isinstance(before, _ModeOfThreads):
        mode = _ModeOfThreads(runs_tf115, before)
        patches.put("modes of threads", _context, "default_execution_mode", mode)


def tensor_equality_by(asks_for_identity: Callable[[], bool]) -> None:
    """Tensors and variables are equal to themselves alone, and keys of dicts, for who asks so.

    That is so in every graph but those of functions, which v1 control flow did not have: loops and
    conds. The public `tf.compat.v1.disable_tensor_equality` changes the whole process.
    """
    before = _tensor.Tensor._USE_EQUALITY
    if not isinstance(before, _Asking):
        asking = _Asking(lambda otherwise: otherwise and not asks_for_identity(), bool(before))
        patches.put("tensor equality", _tensor.Tensor, "_USE_EQUALITY", asking)


def keras_dtypes_by(asks_for_tf115: Callable[[], bool]) -> None:
    """Keras 2 layers infer their dtype where `asks_for_tf115()`, when one is made.

    That is the dtype of the first input, as in TF 1; the others cast their input to float32. The
    public switch, `tf.keras.layers.disable_v2_dtype_behavior`, changes the whole process.
    """
    from tf_keras.src.engine import base_layer_utils

    # No `_Asking`: layers keep the answer, and a SavedModel writes it as JSON.
    @_in_place_of("keras dtypes", base_layer_utils, "v2_dtype_behavior_enabled")
    def v2_dtype_behavior_enabled(modern: Callable[[], bool]) -> bool:
        return modern() and not asks_for_tf115()


def keras_saves_as_hdf5_by(asks_for_tf115: Callable[[], bool]) -> None:
    """Keras 2 saves as HDF5 where `asks_for_tf115()`, `.keras` files too, if no format is given."""
    from tf_keras.src.saving import saving_api

    @_in_place_of("keras files", saving_api, "get_save_format")
    def get_save_format(modern: Callable[..., Any], filepath: Any, save_format: Any) -> Any:
        return modern(filepath, save_format or ("h5" if asks_for_tf115() else None))


class _InitializersByGraph(dict[str, Any]):
    """Keras 2's initializers by name: those of TF 1 where a variable would be a v1 graph's."""

    def __init__(self, modern: dict[str, Any], of_tf_1: dict[str, Any], is_tf2: Callable[[], bool]):
        super().__init__(modern)
        self._of_tf_1 = of_tf_1
        self._is_tf2 = is_tf2

    def _names_of_tf_1(self) -> bool:
        return _in_v1_graph() and not self._is_tf2()

    def __getitem__(self, name: str) -> Any:
        modern = super().__getitem__(name)
        return self._of_tf_1.get(name, modern) if self._names_of_tf_1() else modern

    def get(self, name: str, default: Any = None) -> Any:
        modern = super().get(name, default)
        return self._of_tf_1.get(name, modern) if self._names_of_tf_1() else modern

    def values(self) -> Any:
        return [*super().values(), *self._of_tf_1.values()]


def keras_initializers_by_graph(is_tf2: Callable[[], bool]) -> None:
    """Keras 2 layers in v1 graphs draw their first weights from the graph's seed, as in TF 1.

    Those of TF 2 draw from Python's random numbers. Keras has both, and chooses by a switch of the
    whole process. `is_tf2()` is true where a v1 graph is for a program of TF 2 all the same.
    """
    from tf_keras.api._v1.keras import initializers as of_tf_1
    from tf_keras.src import initializers

    initializers.populate_deserializable_objects()
    table, modern = initializers.LOCAL, initializers.LOCAL.ALL_OBJECTS
    if not isinstance(modern, _InitializersByGraph):
        # Some are public under one spelling alone, `VarianceScaling` or `he_normal`.
        public = {_snake_case(name): cls for name, cls in sorted(vars(of_tf_1).items())}
        old = {name: public.get(_snake_case(name)) for name in modern}
        of_graphs = _InitializersByGraph(modern, {n: cls for n, cls in old.items() if cls}, is_tf2)
        both = SimpleNamespace(ALL_OBJECTS=of_graphs, GENERATED_WITH_V2=table.GENERATED_WITH_V2)
        patches.put("keras initializers", initializers, "LOCAL", both)


def _snake_case(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


def keras_metric_names_by(asks_for_tf115: Callable[[], bool]) -> None:
    """Keras 2 models that TF 1.15's code compiles name their metrics as in TF 1: "acc", "mean_...".

    TF 2 keeps the words that `compile` was given. Keras chooses by a switch of the whole process.
    """
    from tf_keras.src.engine import training_utils_v1

    @_in_place_of("keras metric names", training_utils_v1, "get_metric_name")
    def get_metric_name(modern: Callable[..., Any], metric: Any, weighted: bool = False) -> Any:
        if not asks_for_tf115():
            return modern(metric, weighted)
        name = _SHORT_METRICS.get(metric) if isinstance(metric, str) else None
        if name is None:
            metric_fn = training_utils_v1.metrics_module.get(metric)
            name = getattr(metric_fn, "name", None) or metric_fn.__name__
        return f"weighted_{name}" if weighted else name


_SHORT_METRICS = {"accuracy": "acc", "acc": "acc", "crossentropy": "ce", "ce": "ce"}


def keras_layer_names_by(asks_for_tf115: Callable[[], bool]) -> None:
    """Keras 2 layers that TF 1.15's code makes have TF 1's names: `gp_t2layer` for a `GPT2Layer`.

    Later versions tell digits from letters: `gpt2_layer`.
    """
    from tf_keras.src.engine import base_layer_v1
    from tf_keras.src.utils import generic_utils

    @_in_place_of("keras layer names", generic_utils, "to_snake_case")
    def to_snake_case(modern: Callable[[str], str], name: str) -> str:
        if not asks_for_tf115():
            return modern(name)
        words = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
        snake_case = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
        return f"private{snake_case}" if snake_case[0] == "_" else snake_case

    patches.put("keras layer names", base_layer_v1, "to_snake_case", generic_utils.to_snake_case)


def keras_loops_keep_all_outputs() -> None:
    """Keras 2's recurrent layers keep the output of each step where loops are v1's.

    Those of TF 2 write the last one only, step after step to one place, which v1's TensorArray
    refuses. Keras asks a switch of the whole process.
    """
    from tf_keras.src import backend

    @_in_place_of("keras loops", backend, "rnn")
    def rnn(modern: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not tf.compat.v1.control_flow_v2_enabled():
            kwargs["return_all_outputs"] = True
        return modern(*args, **kwargs)


def calls_build_as(
    cls: type,
    methods: Collection[str],
    maker: Callable[[object], _T],
    building_as: Callable[[_T], contextlib.AbstractContextManager[None]],
) -> None:
    """Makes `methods` of `cls` build ops with the behaviour of the code that made the object.

    Args:
        cls: A class of TensorFlow or Keras 2.
        methods: Methods that make variables, conds or loops.
        maker: Says whose code it is; it is given each object that is made.
        building_as: Around each call of the methods; it is given what `maker` has said.
    """
    if _MAKER in vars(cls):
        return
    patches.put("makers of layers", cls, _MAKER, None)
    modern_init = cls.__init__  # type: ignore[misc]

    @functools.wraps(modern_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        # Keras looks at each attribute that is set in the usual way.
        object.__setattr__(self, _MAKER, maker(self))
        modern_init(self, *args, **kwargs)

    def of_maker(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with building_as(getattr(self, _MAKER)):
                return method(self, *args, **kwargs)

        return call

    patches.put("makers of layers", cls, "__init__", init)
    for name in methods:
        patches.put("makers of layers", cls, name, of_maker(vars(cls)[name]))


def layers_of_tf1_build_as(
    maker: Callable[[object], _T],
    building_as: Callable[[_T], contextlib.AbstractContextManager[None]],
) -> None:
    """Layers and cells of `tf.layers` and `tf.nn.rnn_cell` build as the code that has made them.

    The classes that the others derive from are named in tf-keras's table of TF 1's Keras alone.
    The arguments are those of `calls_build_as`.
    """
    from tf_keras.api._v1.keras.__internal__.legacy import layers, rnn_cell

    calls_build_as(layers.Layer, ["__call__", "add_weight"], maker, building_as)
    calls_build_as(rnn_cell.RNNCell, ["__call__"], maker, building_as)


_T = TypeVar("_T")
_MAKER = "_estimator2strategy_maker"


def keras_moments_may_lack_a_mask() -> None:
    """Subclasses of Keras 2's batch norms may have a `_moments` of TF 1, which took no mask.

    Programs that average over cores have one. A mask is left out, as TF 1 knew none there.
    """
    from tf_keras.src.layers.normalization import batch_normalization

    base = batch_normalization.BatchNormalizationBase
    if "__init_subclass__" in vars(base):
        return

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        moments = vars(cls).get("_moments")
        if moments and "mask" not in inspect.signature(moments).parameters:
            cls._moments = _without_mask(moments)

    patches.put("keras moments", base, "__init_subclass__", classmethod(init_subclass))


def _without_mask(moments: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(moments)
    def call(self: Any, inputs: Any, reduction_axes: Any, keep_dims: bool, mask: Any = None) -> Any:
        return moments(self, inputs, reduction_axes, keep_dims)

    return call
