"""Edges of functions, renamed."""

from __future__ import annotations

from tensorflow.core.framework import function_pb2

from estimator2strategy.engine.plan.calls import rename_edges


def test_each_edge_to_a_result_is_renamed():
    """In processes where protobuf's map has another order, too: its order is that of a hash."""
    for trial in range(50):
        function = function_pb2.FunctionDef()
        function.node_def.add(name="sum", input=["x", "^x"])
        function.ret.update({f"result_{trial}_{place}": "x" for place in range(5)})
        rename_edges(function, lambda edge: edge.replace("x", "y"))
        assert set(function.ret.values()) == {"y"}
        assert function.node_def[0].input == ["y", "^y"]
