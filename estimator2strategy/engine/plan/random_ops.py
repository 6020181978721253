"""Replaces seeded random ops by stateless ones that return the same numbers.

A kernel such as `RandomUniform`'s keeps a Philox generator. Its key is `seed`, and the upper half
of its counter is `seed2`. Each call moves the lower half on by 256 for each number that it returns
(`GuardedPhiloxRandom::ReserveRandomOutputs`, tensorflow/core/util/guarded_philox_random.h). One
number is therefore the whole place in the stream, and can be kept longer than a kernel lives.
"""

from __future__ import annotations

from typing import NamedTuple

from estimator2strategy.engine.plan.graph import NodeDef

# By how much one number that is drawn moves the counter on.
STRIDE = 256


class _Twin(NamedTuple):
    op: str
    dtype: str  # the attribute of the stateful op that says what it returns


_TWINS = {
    "RandomUniform": _Twin("StatelessRandomUniformV2", "dtype"),
    "RandomUniformInt": _Twin("StatelessRandomUniformIntV2", "Tout"),
    "RandomStandardNormal": _Twin("StatelessRandomNormalV2", "dtype"),
    "TruncatedNormal": _Twin("StatelessTruncatedNormalV2", "dtype"),
}


class Drawn(NamedTuple):
    """The arguments of a stateless op beside its shape.

    Attributes:
        seed, seed2: Those of the op that it was.
        key, counter, algorithm: The edges on which it expects `[seed]` (uint64), `[place, seed2]`
            (uint64), and the number of the Philox algorithm (int32 scalar).
    """

    seed: int
    seed2: int
    key: str
    counter: str
    algorithm: str


def is_seeded(node: NodeDef) -> bool:
    """True if `node` is a random op with a seed, and with a twin."""
    return node.op in _TWINS and bool(node.attr["seed"].i or node.attr["seed2"].i)


def make_stateless(node: NodeDef) -> Drawn:
    """Turns a seeded op into its twin; the new edges come from outside of the graph."""
    seed, seed2 = node.attr["seed"].i, node.attr["seed2"].i
    drawn = Drawn(
        seed, seed2, f"random/key_{seed}", f"random/counter/{node.name}", "random/algorithm"
    )
    twin = _TWINS[node.op]
    dtype, shape_type = node.attr[twin.dtype].type, node.attr["T"].type
    shape, *rest = node.input
    node.op = twin.op
    node.input[:] = [shape, drawn.key, drawn.counter, drawn.algorithm, *rest]
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["Tshape"].type = shape_type
    return drawn


def draws(node: NodeDef) -> bool:
    """True if `node` draws random numbers, with a seed or without."""
    return "seed2" in node.attr or node.op.startswith("StatelessRandom")
