"""Replaces seeded random ops by stateless ones that return the same numbers.

A kernel such as `RandomUniform`'s keeps a Philox generator. Its key is `seed`, and the upper half
of its counter is `seed2`. Each call moves the lower half on by 256 for each number that it returns
(`GuardedPhiloxRandom::ReserveRandomOutputs`, tensorflow/core/util/guarded_philox_random.h). One
number is therefore the whole place in the stream, and can be kept longer than a kernel lives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from estimator2strategy.engine.plan.graph import NodeDef

# By how much one number that is drawn moves the counter on.
STRIDE = 256


# Of these an op of any version draws, by the seed that it is given.
_STATELESS = ("StatelessRandom", "StatelessTruncatedNormal", "StatelessMultinomial")


class _Twin(NamedTuple):
    op: str
    dtype: str  # the attribute of the stateful op that says what it returns


_TWINS = {
    "RandomUniform": _Twin("StatelessRandomUniformV2", "dtype"),
    "RandomUniformInt": _Twin("StatelessRandomUniformIntV2", "Tout"),
    "RandomStandardNormal": _Twin("StatelessRandomNormalV2", "dtype"),
    "TruncatedNormal": _Twin("StatelessTruncatedNormalV2", "dtype"),
}
# Stateless op, of a seed on an edge or (V2) of a key and a counter -> the op that draws the same
# numbers.
_DRAWN_AS = {
    f"{name}{version}": op
    for name, op in {
        "StatelessRandomUniform": "RandomUniform",
        "StatelessRandomUniformInt": "RandomUniformInt",
        "StatelessRandomNormal": "RandomStandardNormal",
        "StatelessTruncatedNormal": "TruncatedNormal",
    }.items()
    for version in ("", "V2")
} | {"StatelessMultinomial": "Multinomial"}
# Seeded ops without a twin, which a program that XLA compiles can draw for all the same.
_IN_XLA_ALONE = frozenset({"RandomShuffle", "Multinomial"})


class Drawn(NamedTuple):
    """The arguments of a stateless op beside its shape.

    Attributes:
        op: The stateful op that it was.
        seed, seed2: Those of that op.
        key, counter, algorithm: The edges on which it expects `[seed]` (uint64), `[place, seed2]`
            (uint64), and the number of the Philox algorithm (int32 scalar); a call expects none of
            the last.
    """

    op: str
    seed: int
    seed2: int
    key: str
    counter: str
    algorithm: str = ""


def is_seeded(node: NodeDef) -> bool:
    """True if `node` is a random op with a seed, and with a twin."""
    return node.op in _TWINS and _has_seed(node)


def is_drawn_in_xla(node: NodeDef) -> bool:
    """True if `node` is a seeded random op that becomes a call in a program that XLA compiles."""
    return has_draw(node) and _has_seed(node)


def has_draw(node: NodeDef) -> bool:
    """True if `node` is a random op of a kind that such a program can draw for."""
    return node.op in _TWINS or node.op in _IN_XLA_ALONE


def drawn_as(node: NodeDef) -> str | None:
    """The op whose numbers the stateless op `node` draws; None if it is no such op."""
    return _DRAWN_AS.get(node.op)


def scrambles(node: NodeDef) -> bool:
    """True if `node` makes a key and a counter of a seed."""
    return bool(node.op == "StatelessRandomGetKeyCounter")


def is_stateful(node: NodeDef) -> bool:
    """True if `node` draws random numbers from a generator that its kernel keeps."""
    return bool("seed2" in node.attr) and "Dataset" not in node.op


def make_stateless(node: NodeDef) -> Drawn:
    """Turns a seeded op into its twin; the new edges come from outside of the graph."""
    drawn = _drawn(node)._replace(algorithm="random/algorithm")
    twin = _TWINS[node.op]
    dtype, shape_type = node.attr[twin.dtype].type, node.attr["T"].type
    shape, *rest = node.input
    node.op = twin.op
    node.input[:] = [shape, drawn.key, drawn.counter, drawn.algorithm, *rest]
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["Tshape"].type = shape_type
    return drawn


def make_call(node: NodeDef, function: Any) -> Drawn:
    """Turns a seeded op into a call; the new edges come from outside of the graph.

    Args:
        node: Changed in place.
        function: The OpDef of a function of the op's inputs, and of the edges `key` and `counter`.
    """
    drawn = _drawn(node)
    call(node, function, drawn.key, drawn.counter)
    return drawn


def call(node: NodeDef, function: Any, *more: str) -> None:
    """Turns an op into a call of a function of the same inputs.

    Args:
        node: Changed in place.
        function: The OpDef of the function.
        more: Edges of further inputs.
    """
    inputs = [edge for edge in node.input if not edge.startswith("^")]
    node.input[:] = [*inputs, *more, *node.input[len(inputs) :]]
    node.op = "StatefulPartitionedCall" if function.is_stateful else "PartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = function.name
    node.attr["Tin"].list.type.extend(arg.type for arg in function.input_arg)
    node.attr["Tout"].list.type.extend(arg.type for arg in function.output_arg)


def moved(op: str, shape: Any, size: Any) -> Any:
    """Returns how far a seeded op has moved on in its stream.

    Args:
        op: The stateful op.
        shape, size: Those of its result, as integers or as tensors.
    """
    if isinstance(size, int) and size == 0:
        return 0
    if op == "RandomShuffle":  # a number for each row but the last, four of them to a place
        return (shape[0] + 2) // 4
    if op == "Multinomial":  # samples of two numbers each, in fours
        return shape[0] * ((shape[1] + 3) // 4 * 4) * 2 * STRIDE
    return size * STRIDE


def draws(node: NodeDef) -> bool:
    """True if `node` draws random numbers, with a seed or without."""
    return "seed2" in node.attr or node.op.startswith(_STATELESS)


def _drawn(node: NodeDef) -> Drawn:
    seed, seed2 = node.attr["seed"].i, node.attr["seed2"].i
    counter = f"random/counter/{node.name}"
    return Drawn(node.op, seed, seed2, f"random/key_{seed}", counter)


def _has_seed(node: NodeDef) -> bool:
    return bool(node.attr["seed"].i or node.attr["seed2"].i)
