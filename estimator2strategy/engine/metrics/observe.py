"""Notes which `tf.compat.v1.metrics` calls a program makes, without changing TensorFlow.

A legacy metric_fn returns `(value, update_op)` pairs. Neither tensor tells the function that made
the pair, or its arguments. So the interpreter reports the calls of those functions while the user's
code runs:

    with observe_metric_calls() as calls:
        pairs = metric_fn(**tensors)            # the user's code, unchanged
    calls[0].function, calls[0].arguments       # 'accuracy', {'labels': <tf.Tensor ...>, ...}

The reports come from `sys.monitoring` events that are local to the functions' code objects
(Python 3.12 and later: nothing else is slowed down) and from `sys.setprofile` before that.
Only calls of the thread that entered the `with` are noted.

This module is the only one about metrics that relies on private facts of TensorFlow. The metric
functions are plain Python functions below their decorators, they return `(value, update_op)`, and
the graph's open control dependencies have no public getter. A test in
`tests/engine/metrics/test_metrics_observe.py` fails by name when a TensorFlow version changes one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import patches


@dataclasses.dataclass(frozen=True)
class ObservedCall:
    """One call of a `tf.compat.v1.metrics` function.

    Attributes:
        function: Its public name, such as 'accuracy'.
        arguments: Parameter name to argument, defaults included, as they were on entry.
        value: First element of what it returned.
        update: Second element of what it returned; the update op.
        controlled: True if it ran inside `tf.control_dependencies`: its update then also makes
            other ops of the program run.
    """

    function: str
    arguments: Mapping[str, Any]
    value: Any
    update: Any
    controlled: bool


@contextlib.contextmanager
def observe_metric_calls() -> Iterator[list[ObservedCall]]:
    """Collects the metric calls that this thread makes in the body, in order of return.

    Of nested calls that return the same tensors (`accuracy` returns what `mean` made) only the
    outermost is listed. A call that raises is not listed. Nothing is raised into the user's code,
    and a profiler or monitoring tool that is active keeps working. Where the interpreter
    offers no place to listen (Python 3.10 and 3.11 under `cProfile`, whose profiler Python code
    cannot call), the list stays empty.

    Yields:
        The list that the calls are added to.
    """
    observer = _Observer(_metric_functions())
    with _listen(observer):
        yield observer.calls


@functools.cache
def _metric_functions() -> dict[int, tuple[CodeType, str]]:
    """Code object and public name of every function of `tf.compat.v1.metrics`, by `id(code)`.

    By id, because hashing a code object costs more than all else that is done per event.
    """
    functions = {}
    for name, member in inspect.getmembers(tf.compat.v1.metrics, callable):
        code = getattr(inspect.unwrap(member), "__code__", None)
        if code is not None:
            functions[id(code)] = (code, name)
    return functions


@dataclasses.dataclass(frozen=True)
class _OpenCall:
    frame: FrameType
    arguments: dict[str, Any]
    controlled: bool
    first_inner: int


class _Observer:
    """Turns "this frame starts" and "this frame returned that" into ObservedCalls."""

    def __init__(self, functions: dict[int, tuple[CodeType, str]]):
        self.functions = functions
        self.calls: list[ObservedCall] = []
        self.open_calls: list[_OpenCall] = []

    def start(self, frame: FrameType) -> None:
        # The user's program runs below us: an error here must cost a conversion, not the program.
        with contextlib.suppress(Exception):
            call = _OpenCall(frame, _arguments(frame), _controlled(), len(self.calls))
            self.open_calls.append(call)

    def end(self, frame: FrameType, returned: Any) -> None:
        with contextlib.suppress(Exception):
            # The frames above ours ended with an exception, and so without an end event.
            while self.open_calls and self.open_calls[-1].frame is not frame:
                self.open_calls.pop()
            if not self.open_calls:
                return
            call = self.open_calls.pop()
            if isinstance(returned, tuple) and len(returned) == 2:
                self._note(call, *returned)

    def _note(self, call: _OpenCall, value: Any, update: Any) -> None:
        inner = self.calls[call.first_inner :]
        self.calls[call.first_inner :] = [
            other for other in inner if not (other.value is value and other.update is update)
        ]
        name = self.functions[id(call.frame.f_code)][1]
        self.calls.append(ObservedCall(name, call.arguments, value, update, call.controlled))


def _arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = frame.f_locals
    return {name: values[name] for name in names}


def _controlled() -> bool:
    return bool(tf.compat.v1.get_default_graph()._current_control_dependencies())


def _listen(observer: _Observer) -> contextlib.AbstractContextManager[None]:
    if sys.version_info >= (3, 12) and _MONITOR.available():
        return _MONITOR.listen(observer)
    return _listen_as_profiler(observer)


@contextlib.contextmanager
def _listen_as_profiler(observer: _Observer) -> Iterator[None]:
    previous = sys.getprofile()
    if previous is not None and not callable(previous):
        # A profiler written in C: it could be neither called from ours nor put back afterwards.
        yield
        return
    profile = _profile_function(observer, previous)
    patches.noted("observed metrics")
    sys.setprofile(profile)
    try:
        yield
    finally:
        # When the user's code set another profiler meanwhile, that one is to stay.
        if sys.getprofile() is profile:
            sys.setprofile(previous)


def _profile_function(
    observer: _Observer, previous: Callable[..., Any] | None
) -> Callable[[FrameType, str, Any], None]:
    functions, open_calls = observer.functions, observer.open_calls

    # Called a million times while a large model is recorded, mostly for calls of C functions:
    # every branch asks its cheapest and rarest question first.
    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if id(frame.f_code) in functions:
                observer.start(frame)
        elif open_calls and event == "return" and id(frame.f_code) in functions:
            observer.end(frame, argument)  # None after an exception
        if previous is not None:
            previous(frame, event, argument)

    return profile


if sys.version_info >= (3, 12):

    class _Monitor:
        """The process-wide registration with `sys.monitoring`, shared by all observers."""

        # The ids that Python leaves to nobody in particular (0 to 2 and 5 have an owner by name).
        TOOL_IDS = (4, 3)
        NAME = "estimator2strategy.engine.metrics"

        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._tool: int | None = None
            self._users = 0
            self._thread = threading.local()

        def available(self) -> bool:
            with self._lock:
                return self._tool is not None or self._free_tool() is not None

        def _free_tool(self) -> int | None:
            free = [tool for tool in self.TOOL_IDS if sys.monitoring.get_tool(tool) is None]
            return free[0] if free else None

        @contextlib.contextmanager
        def listen(self, observer: _Observer) -> Iterator[None]:
            self._thread.observers = [*self._observers(), observer]
            self._register(observer.functions)
            try:
                yield
            finally:
                self._unregister(observer.functions)
                self._thread.observers = [o for o in self._observers() if o is not observer]

        def _observers(self) -> list[_Observer]:
            return getattr(self._thread, "observers", [])

        def _register(self, functions: dict[int, tuple[CodeType, str]]) -> None:
            with self._lock:
                self._users += 1
                if self._tool is not None:
                    return
                tool = self._free_tool()
                if tool is None:  # taken since `available` was asked
                    return
                events = sys.monitoring.events
                patches.noted("observed metrics")
                sys.monitoring.use_tool_id(tool, self.NAME)
                sys.monitoring.register_callback(tool, events.PY_START, self._started)
                sys.monitoring.register_callback(tool, events.PY_RETURN, self._returned)
                for code, _ in functions.values():
                    sys.monitoring.set_local_events(tool, code, events.PY_START | events.PY_RETURN)
                self._tool = tool

        def _unregister(self, functions: dict[int, tuple[CodeType, str]]) -> None:
            with self._lock:
                self._users -= 1
                if self._users or self._tool is None:
                    return
                events = sys.monitoring.events
                for code, _ in functions.values():
                    sys.monitoring.set_local_events(self._tool, code, events.NO_EVENTS)
                sys.monitoring.register_callback(self._tool, events.PY_START, None)
                sys.monitoring.register_callback(self._tool, events.PY_RETURN, None)
                sys.monitoring.free_tool_id(self._tool)
                self._tool = None

        def _started(self, code: CodeType, offset: int) -> None:
            for observer in self._observers():
                observer.start(sys._getframe(1))

        def _returned(self, code: CodeType, offset: int, returned: Any) -> None:
            for observer in self._observers():
                observer.end(sys._getframe(1), returned)

    _MONITOR = _Monitor()
