"""Runs one legacy metric twice over the same batches: in a v1 Session, and converted.

A `Case` is data: a function, its options, and the tensors of a batch. Every test asks its
question of all of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.metrics import ConvertedMetric, convert, observe_metric_calls

v1 = tf.compat.v1
Batch = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to call one function.

    Attributes:
        function: Name in `tf.compat.v1.metrics`.
        batch: `batch(rng, n)`: the tensors of a batch of n examples, without weights.
        options: Other arguments of the function.
        weights: Kinds of weights that the function takes for these shapes, see `WEIGHTS`.
        label: Distinguishes cases of one function.
        exact: Unweighted results are equal to the last bit.
    """

    function: str
    batch: Callable[[np.random.RandomState, int], Batch]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    weights: tuple[str, ...] = ("none", "scalar", "element", "zero")
    label: str = ""
    exact: bool = False

    def __str__(self) -> str:
        return "-".join(filter(None, (self.function, self.label)))

    def __hash__(self) -> int:
        return id(self)


def _levels(rng: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice(np.float32([0.0, 0.3, 1.0, 2.5]), shape)


# Kind of weights -> array for n examples of `width` values each (none: a vector of examples).
WEIGHTS: dict[str, Callable[[np.random.RandomState, int], Any]] = {
    "scalar": lambda rng, n: np.float32(rng.choice([0.5, 2.0])),
    "element": lambda rng, n: _levels(rng, (n,)),
    "column": lambda rng, n: _levels(rng, (n, 1)),
    "row": lambda rng, n: _levels(rng, (1, 3)),
    "full": lambda rng, n: _levels(rng, (n, 3)),
    "ints": lambda rng, n: rng.randint(0, 3, (n,)),
    "zero": lambda rng, n: np.zeros((n,), np.float32),
}


def batches_of(case: Case, kind: str, seed: int, sizes: Sequence[int]) -> list[Batch]:
    rng = np.random.RandomState(seed)
    made = []
    for size in sizes:
        batch = case.batch(rng, size)
        if kind != "none":
            batch["weights"] = WEIGHTS[kind](rng, size)
        made.append(batch)
    return made


@dataclasses.dataclass
class Recorded:
    """A metric function's graph, with what it takes to run it as a Session program."""

    session: Any
    placeholders: dict[str, Any]
    value: Any
    update: Any
    reset: Any
    converted: ConvertedMetric | None

    def legacy(self, batches: Sequence[Batch]) -> np.ndarray:
        self.session.run(self.reset)
        for batch in batches:
            self.session.run(self.update, self.feed(batch))
        return self.session.run(self.value)

    def feed(self, batch: Batch) -> dict[Any, Any]:
        return {self.placeholders[name]: array for name, array in batch.items()}

    def inputs(self, batch: Batch) -> list[Any]:
        """Values of the converted metric's inputs, as the runtime fetches them."""
        assert self.converted is not None
        return self.session.run(list(self.converted.inputs), self.feed(batch))

    def new(self, batches: Sequence[Batch]) -> np.ndarray:
        assert self.converted is not None
        metric = self.converted.build()
        for batch in batches:
            self.converted.update(metric, self.inputs(batch))
        return metric.result().numpy()


def record(function: str, batch: Batch, static: bool = False, **options: Any) -> Recorded:
    """Calls the function on placeholders for such a batch; sizes of first axes are unknown.

    Args:
        function: Name in `tf.compat.v1.metrics`.
        batch: Arrays or SparseTensorValues by parameter.
        static: All sizes are known, the first axis's too.
        **options: The function's other arguments.
    """
    with tf.Graph().as_default() as graph, v1.variable_scope("", use_resource=True):
        placeholders = {name: _placeholder(array, static) for name, array in batch.items()}
        with observe_metric_calls() as calls:
            value, update = getattr(v1.metrics, function)(**placeholders, **options)
        converted = convert(function, value, update, calls)
        reset = v1.local_variables_initializer()
        update = tf.convert_to_tensor(update)
    session = v1.Session(graph=graph)
    return Recorded(session, placeholders, value, update, reset, converted)


def _placeholder(array: Any, static: bool) -> Any:
    if isinstance(array, v1.SparseTensorValue):
        rank = len(array.dense_shape)
        return v1.sparse_placeholder(array.values.dtype, shape=[None] * rank)
    array = np.asarray(array)
    dtype = tf.string if array.dtype.kind in "OUS" else array.dtype
    free = 0 if static or array.shape[:1] == (1,) else 1
    return v1.placeholder(dtype, (None,) * min(free, array.ndim) + array.shape[free:])


@functools.cache
def recorded_case(case: Case, kind: str) -> Recorded:
    (batch,) = batches_of(case, kind, 0, [4])
    return record(case.function, batch, static=case.function == "mean_tensor", **case.options)


def assert_same(actual: Any, expected: Any, exact: bool = False) -> None:
    """Equal in dtype and shape, and in value to 1e-6 relative or to the last bit."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    # 1e-6: two float32 sums of the same terms in another order. No absolute tolerance that would
    # let a wrong small number pass.
    np.testing.assert_allclose(actual, expected, rtol=0 if exact else 1e-6, atol=0)
