"""Observing metric calls changes nothing, for anybody, and misses none."""

from __future__ import annotations

import cProfile
import functools
import inspect
import sys
import threading

import pytest
import tensorflow as tf

from estimator2strategy.engine.metrics import observe_metric_calls, rows
from estimator2strategy.engine.metrics.observe import _metric_functions

v1 = tf.compat.v1
by_profiler = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="sys.setprofile is used on Python 3.10 and 3.11 only"
)
by_monitoring = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="sys.monitoring needs Python 3.12"
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default(), v1.variable_scope("", use_resource=True):
        yield


def _floats() -> tf.Tensor:
    return v1.placeholder(tf.float32, [None])


def _names(calls) -> list[str]:
    return [call.function for call in calls]


def test_every_metric_function_is_where_and_what_we_think_it_is() -> None:
    functions = {name: code for code, name in _metric_functions().values()}

    assert set(functions) == {row.function for row in rows()}
    for row in rows():
        code = functions[row.function]
        assert code.co_filename.endswith("metrics_impl.py"), row.function
        parameters = inspect.signature(getattr(v1.metrics, row.function)).parameters
        assert list(parameters) == list(code.co_varnames[: code.co_argcount])
        own = {"shape"} if row.function == "mean_tensor" else set()
        effects = {"metrics_collections", "updates_collections", "name"}
        assert {*row.tensors, *row.options} - own == set(parameters) - effects


def test_notes_arguments_defaults_and_result_of_a_call() -> None:
    labels, predictions = _floats(), _floats()

    with observe_metric_calls() as calls:
        value, update = v1.metrics.auc(labels, predictions=predictions, curve="PR")

    (call,) = calls
    assert call.function == "auc"
    assert call.arguments["labels"] is labels
    assert call.arguments["predictions"] is predictions
    assert call.arguments["weights"] is None
    assert call.arguments["curve"] == "PR"
    assert call.arguments["num_thresholds"] == 200
    assert (call.value, call.update) == (value, update)
    assert not call.controlled


def test_arguments_are_those_on_entry_not_what_the_function_made_of_them() -> None:
    labels = v1.placeholder(tf.int64, [None, 1])

    with observe_metric_calls() as calls:
        v1.metrics.accuracy(labels, _floats())

    assert calls[0].arguments["labels"] is labels


def test_of_nested_calls_with_the_same_tensors_the_outermost_is_listed() -> None:
    ids, scores = v1.placeholder(tf.int64, [None, 2]), v1.placeholder(tf.float32, [None, 5])

    with observe_metric_calls() as calls:
        v1.metrics.accuracy(_floats(), _floats())
        v1.metrics.sparse_precision_at_k(ids, scores, k=2)

    assert _names(calls) == ["accuracy", "sparse_precision_at_k"]


def test_nested_calls_with_other_tensors_are_listed_too() -> None:
    with observe_metric_calls() as calls:
        v1.metrics.root_mean_squared_error(_floats(), _floats())

    assert _names(calls) == ["mean_squared_error", "root_mean_squared_error"]


def test_calls_through_wrappers_are_seen() -> None:
    @functools.lru_cache
    def cached(predictions):
        return functools.partial(v1.metrics.mean, weights=None)(predictions)

    with observe_metric_calls() as calls:
        first = cached(_floats())

    assert _names(calls) == ["mean"]
    assert (calls[0].value, calls[0].update) == first


def test_a_call_that_raises_is_not_listed_and_raises_as_ever() -> None:
    with observe_metric_calls() as calls:
        with pytest.raises(ValueError, match="Curve must be"):
            v1.metrics.auc(_floats(), _floats(), curve="nonsense")
        v1.metrics.mean(_floats())

    assert _names(calls) == ["mean"]


def test_an_exception_of_the_users_code_passes_through() -> None:
    before = sys.getprofile()

    with pytest.raises(KeyError, match="theirs"), observe_metric_calls():
        raise KeyError("theirs")

    assert sys.getprofile() is before


def test_nothing_is_noted_outside_of_the_body() -> None:
    v1.metrics.mean(_floats())
    with observe_metric_calls() as calls:
        pass
    v1.metrics.mean(_floats())

    assert calls == []


def test_each_of_two_nested_observers_sees_its_calls() -> None:
    with observe_metric_calls() as outer:
        v1.metrics.mean(_floats())
        with observe_metric_calls() as inner:
            v1.metrics.accuracy(_floats(), _floats())
        v1.metrics.recall(_floats(), _floats())

    assert _names(inner) == ["accuracy"]
    assert [name for name in _names(outer) if name in {"mean", "accuracy", "recall"}] == [
        "mean",
        "accuracy",
        "recall",
    ]


def test_other_threads_are_not_observed() -> None:
    def theirs():
        with tf.Graph().as_default():
            v1.metrics.mean(_floats())

    with observe_metric_calls() as calls:
        thread = threading.Thread(target=theirs)
        thread.start()
        thread.join()
        v1.metrics.recall(_floats(), _floats())

    assert "mean" not in _names(calls)
    assert "recall" in _names(calls)


def test_threads_observe_independently() -> None:
    seen: dict[str, list[str]] = {}
    both_inside = threading.Barrier(2)

    def observe(function, *tensors):
        with tf.Graph().as_default(), observe_metric_calls() as calls:
            both_inside.wait(timeout=200)
            getattr(v1.metrics, function)(*(_floats() for _ in range(tensors[0])))
            both_inside.wait(timeout=200)
        seen[function] = _names(calls)

    threads = [threading.Thread(target=observe, args=a) for a in (("mean", 1), ("accuracy", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == {"mean": ["mean"], "accuracy": ["accuracy"]}


def test_calls_under_control_dependencies_are_marked() -> None:
    with observe_metric_calls() as calls, tf.control_dependencies([tf.no_op()]):
        v1.metrics.mean(_floats())

    assert calls[0].controlled


@by_profiler
def test_a_profiler_that_is_set_keeps_running_and_stays_set() -> None:
    events = []

    def theirs(frame, event, argument):
        events.append((event, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(theirs)
    try:
        with observe_metric_calls() as calls:
            v1.metrics.mean(_floats())
        after = sys.getprofile()
    finally:
        sys.setprofile(before)

    assert after is theirs
    assert ("call", "mean") in events
    assert ("return", "mean") in events
    assert _names(calls) == ["mean"]


@by_profiler
def test_a_profiler_that_the_program_sets_meanwhile_stays_set() -> None:
    def theirs(frame, event, argument):
        pass

    before = sys.getprofile()
    try:
        with observe_metric_calls():
            sys.setprofile(theirs)
        after = sys.getprofile()
    finally:
        sys.setprofile(before)

    assert after is theirs


def test_a_c_profiler_is_left_alone() -> None:
    def theirs():
        return len([1])

    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with observe_metric_calls() as calls:
            v1.metrics.mean(_floats())
        theirs()
    finally:
        profiler.disable()

    assert theirs.__code__ in {entry.code for entry in profiler.getstats()}
    # Python code cannot call cProfile's profiler: before 3.12 there is nothing to observe with.
    assert _names(calls) == (["mean"] if sys.version_info >= (3, 12) else [])


@by_monitoring
def test_no_monitoring_tool_remains_registered() -> None:
    tools = [sys.monitoring.get_tool(tool) for tool in range(6)]
    with observe_metric_calls():
        assert [sys.monitoring.get_tool(tool) for tool in range(6)] != tools

    assert [sys.monitoring.get_tool(tool) for tool in range(6)] == tools
    code = inspect.unwrap(v1.metrics.mean).__code__
    assert sys.monitoring.get_local_events(4, code) == 0


@by_monitoring
def test_without_a_free_monitoring_tool_the_profiler_is_used() -> None:
    for tool in (3, 4):
        sys.monitoring.use_tool_id(tool, "somebody else")
    try:
        with observe_metric_calls() as calls:
            v1.metrics.mean(_floats())
    finally:
        for tool in (3, 4):
            sys.monitoring.free_tool_id(tool)

    assert _names(calls) == ["mean"]


def test_an_error_of_our_own_costs_the_conversion_not_the_program(monkeypatch) -> None:
    def broken(frame):
        raise RuntimeError("ours")

    monkeypatch.setattr("estimator2strategy.engine.metrics.observe._arguments", broken)

    with observe_metric_calls() as calls:
        value, _ = v1.metrics.mean(_floats())

    assert calls == []
    assert value.dtype == tf.float32
