"""Effects of ops: the things that an op does beside computing its results.

TensorFlow calls more ops stateful than those that change something, so there are two questions:

- Does running the op change anything (`changes_something`)? A write does. A draw of random numbers
  does too: it moves a stream. A check, a lookup in a table and a read do not. An op that changes
  nothing may run sooner, twice, or side by side with others.
- May another op have to wait for it (`may_be_waited_for`)? It may for every op that changes
  something, and also for a check, which may end the step, a lookup in a table, a read that itself
  waits, and a stateful call of a function. Only where the answer is no is an edge cut. An op that
  is not known to be harmless therefore answers yes.

TensorFlow's registry decides about ops that are not named here, by whether they are stateful.
"""

from __future__ import annotations

from typing import Any

from estimator2strategy.engine import _tf_private

# Ops that write a variable.
WRITERS = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"})
# Ops that read one, or what is known of it.
READERS = frozenset({"ReadVariableOp", "VarIsInitializedOp", "ResourceGather", "VariableShape"})

# Further ops that are stateful to TensorFlow, but change nothing.
_LOOKS = frozenset(
    {"Assert", "LookupTableFindV2", "LookupTableSizeV2", "ResourceGatherNd", "VarHandleOp"}
)
# Nobody waits for these if they themselves wait for nothing.
_SOURCES = frozenset({"ReadVariableOp", "VarHandleOp"})
_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def changes_something(node: Any) -> bool:
    """True if running a node has an effect of its own that anything else can notice.

    Args:
        node: A NodeDef. A call of functions has what effects those have, and none of its own.
    """
    if node.op in READERS | _LOOKS or not _tf_private.is_stateful(node.op):
        return False
    return not any(attr.func.name or attr.list.func for attr in node.attr.values())


def may_be_waited_for(node: Any) -> bool:
    """True if something else may wait for a node for the sake of more than its results."""
    at_once = node.op in _SOURCES and len(node.input) < 2
    return _tf_private.is_stateful(node.op) and not at_once


def calls_python(node: Any) -> bool:
    """True if a node is a call of a Python function."""
    return node.op in _PYTHON
