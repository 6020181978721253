"""The rows of `migration_guide/compiled.md`: ops that compiled code computes otherwise.

Each case is a function of its arguments, so that nothing is folded into a constant. `compiled.py`
runs it eagerly, in a graph and compiled, and asks the TPU's compiler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

NAN, INF = float("nan"), float("inf")
TABLE = np.array([10, 11, 12, 13], np.float32)


@dataclasses.dataclass(frozen=True)
class Case:
    """A row.

    Attributes:
        op: The op and its arguments, as the page shows them.
        function: Computes it.
        args: The arguments of the function, as arrays.
        ours: The column "what we do", besides leaving the op to the host.
        says: True if the values are worth showing; else only that there are some, and if they are
            equal.
    """

    op: str
    function: Callable[..., Any]
    args: Sequence[Any]
    ours: str
    says: bool = True


def _floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def _tenths(count: int) -> Callable[[], Any]:
    return lambda: np.full([count], 0.1, np.float32)


def _gather_gradient(table: Any, ids: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(table)
        rows = tf.gather(table, ids)
    return tf.convert_to_tensor(tape.gradient(rows, table))


def _added_rows(ids: Any, rows: Any) -> Any:
    return tf.tensor_scatter_nd_add(tf.zeros([3]), ids, rows)


def _asserted(x: Any) -> Any:
    with tf.control_dependencies([tf.debugging.Assert(x > 2.0, [x])]):
        return x * 2.0


def _first_of_loop(x: Any) -> Any:
    return tf.while_loop(lambda x: tf.reduce_sum(x) < 100.0, lambda x: [x * 2.0], [x])[0]


def _batch_mean(x: Any) -> Any:
    x, none = tf.reshape(x, [1, 1, -1, 1]), tf.zeros([0])
    normed = tf.raw_ops.FusedBatchNormV3(x=x, scale=[1.0], offset=[0.0], mean=none, variance=none)
    return normed.batch_mean


def _dot(a: Any, b: Any) -> Any:
    return tf.matmul(a, b)


_IDS = "told with `check_compiled=True`; [see above](#ids-beyond-a-table)"
_ROWS = "nothing"
_DRAWS = ""
_CHECKED = "TPUs leave it out, as they always did"
_MAX = "[E2S614](rules/e2s6.md#e2s614-nan-lost-in-max)"
_SUMS = "taken in float64 with `jit_compile=True`"
_INPUT = "[E2S602](rules/e2s6.md#e2s602-no-xla-kernel) for a TPU"

IDS = (
    Case("`gather([10, 11, 12, 13], [1, 7])`", tf.gather, (TABLE, _ints(1, 7)), _IDS),
    Case("`gather([10, 11, 12, 13], [1, -1])`", tf.gather, (TABLE, _ints(1, -1)), _IDS),
    Case("gradient of `gather(..., [1, 7])`", _gather_gradient, (TABLE, _ints(1, 7)), _IDS),
    Case("gradient of `gather(..., [1, -1])`", _gather_gradient, (TABLE, _ints(1, -1)), _IDS),
    Case("`gather_nd([10, 11, 12, 13], [[-1]])`", tf.gather_nd, (TABLE, _ints(-1)[None]), _IDS),
    Case(
        "`sparse_softmax_cross_entropy_with_logits`, a label of 3 for 3 classes",
        lambda labels, logits: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits),
        (_ints(1, 3), np.zeros([2, 3], np.float32)),
        "NanTensorHook stops at the NaN",
    ),
    Case(
        "`unsorted_segment_sum([1, 2, 4], [0, 5, -1], 2)`",
        lambda x, ids: tf.math.unsorted_segment_sum(x, ids, 2),
        (_floats(1, 2, 4), _ints(0, 5, -1)),
        _IDS,
    ),
    Case(
        "`tensor_scatter_nd_add(zeros(3), [[0], [3]], [1, 1])`",
        _added_rows,
        (_ints(0, 3)[:, None], _floats(1, 1)),
        _IDS,
    ),
    Case(
        "`tensor_scatter_nd_add(zeros(3), [[0], [-1]], [1, 1])`",
        _added_rows,
        (_ints(0, -1)[:, None], _floats(1, 1)),
        _IDS,
    ),
    Case(
        "the same, `[[0], [0], [1]]`, rows `[1, 2, 4]`",
        _added_rows,
        (_ints(0, 0, 1)[:, None], _floats(1, 2, 4)),
        _ROWS,
    ),
    Case(
        "`slice(x, [7], [2])` of four",
        lambda x, at: tf.slice(x, at, [2]),
        (TABLE, _ints(7)),
        _ROWS,
    ),
    Case(
        "`slice(x, [7], [2])`, a constant",
        lambda x: tf.raw_ops.Slice(input=x, begin=tf.constant([7]), size=[2]),
        (TABLE,),
        _ROWS,
    ),
    Case("`x[at:7]` of four, `at` = 5", lambda x, at: x[at:7], (TABLE, np.int32(5)), _ROWS),
)

NOT_A_NUMBER = (
    Case("`reduce_max([nan, 1])`", tf.reduce_max, (_floats(NAN, 1),), _MAX),
    Case("`reduce_min([1, nan])`", tf.reduce_min, (_floats(1, NAN),), _MAX),
    Case("`maximum(1, nan)`", tf.maximum, (_floats(1), _floats(NAN)), _MAX),
    Case("`maximum(nan, 1)`", tf.maximum, (_floats(NAN), _floats(1)), _MAX),
    Case("`minimum(1, nan)`", tf.minimum, (_floats(1), _floats(NAN)), _MAX),
    Case("`relu([nan, -1])`", tf.nn.relu, (_floats(NAN, -1),), _ROWS),
    Case(
        "`clip_by_value([nan], 0, 1)`",
        lambda x: tf.clip_by_value(x, 0.0, 1.0),
        (_floats(NAN),),
        _ROWS,
    ),
    Case(
        "`max_pool([nan, 1])`, one window",
        lambda x: tf.reshape(
            tf.nn.max_pool2d(tf.reshape(x, [1, 1, 2, 1]), [1, 2], 1, "VALID"), [-1]
        ),
        (_floats(NAN, 1),),
        _ROWS,
    ),
    Case("`argmax([nan, 1, nan])`", tf.argmax, (_floats(NAN, 1, NAN),), _ROWS),
    Case("`argmax([1, nan, 2])`", tf.argmax, (_floats(1, NAN, 2),), _ROWS),
    Case("`argmin([1, nan, 2])`", tf.argmin, (_floats(1, NAN, 2),), _ROWS),
    Case(
        "`top_k([nan, 1, 2, nan], 2)`",
        lambda x: tf.math.top_k(x, 2),
        (_floats(NAN, 1, 2, NAN),),
        _ROWS,
    ),
    Case("`sort([nan, 1, 2, -inf])`", tf.sort, (_floats(NAN, 1, 2, -INF),), _ROWS),
    Case(
        "`cast([nan, inf, -inf, 3e9, -1.5], int32)`",
        lambda x: tf.cast(x, tf.int32),
        (_floats(NAN, INF, -INF, 3e9, -1.5),),
        _ROWS,
    ),
    Case(
        "`cast([nan, inf, -inf, 300, -1.5], uint8)`",
        lambda x: tf.cast(x, tf.uint8),
        (_floats(NAN, INF, -INF, 300, -1.5),),
        _ROWS,
    ),
)

NUMBERS = (
    Case("`reduce_sum` of 10^6 times 0.1", tf.reduce_sum, (_tenths(10**6),), _SUMS),
    Case("`reduce_sum` of 10^7 times 0.1", tf.reduce_sum, (_tenths(10**7),), _SUMS),
    Case("`reduce_mean` of 10^7 times 0.1", tf.reduce_mean, (_tenths(10**7),), _SUMS),
    Case("`l2_loss` of 10^7 times 0.1", tf.nn.l2_loss, (_tenths(10**7),), _ROWS),
    Case(
        "batch norm's mean of 10^7 times 0.1",
        _batch_mean,
        (_tenths(10**7),),
        _ROWS,
    ),
    Case(
        "`matmul` of 10^7 times 0.1 with ones",
        lambda x: tf.matmul(tf.reshape(x, [1, -1]), tf.ones([10**7, 1]))[0, 0],
        (_tenths(10**7),),
        "nothing; sum with `reduce_sum`",
    ),
    Case(
        "the last of `cumsum` of 2 * 10^7 ones",
        lambda x: tf.cumsum(x)[-1],
        (lambda: np.ones([2 * 10**7], np.float32),),
        _ROWS,
    ),
    Case("`7 // 0`, int32", lambda x, y: x // y, (_ints(7), _ints(0)), _ROWS),
    Case("`7 % 0`, int32", lambda x, y: x % y, (_ints(7), _ints(0)), _ROWS),
    Case("`truncatediv(-7, 0)`, int32", tf.truncatediv, (_ints(-7), _ints(0)), _ROWS),
    Case("`1e-40 * 2`, float32", lambda x, y: x * y, (_floats(1e-40), _floats(2)), _ROWS),
    Case("`identity(1e-40)`", tf.identity, (_floats(1e-40),), _ROWS),
    Case("`log(1e-40)`", tf.math.log, (_floats(1e-40),), "nothing; an epsilon of 1e-30 is seen"),
    Case(
        "`matmul`, bfloat16, 256 x 256",
        lambda a, b: tf.matmul(tf.cast(a, tf.bfloat16), tf.cast(b, tf.bfloat16)),
        (_normal(256, 256), _normal(256, 256)[::-1].copy()),
        _ROWS,
        says=False,
    ),
    Case(
        "`inv([[1, 2], [2, 4]])`, singular",
        tf.linalg.inv,
        (np.array([[1, 2], [2, 4]], np.float32),),
        _ROWS,
    ),
    Case(
        "`svd`, U, 4 x 3",
        lambda x: tf.linalg.svd(x)[1],
        (_normal(4, 3),),
        _ROWS,
        False,
    ),
    Case(
        "`eigh`, vectors, 4 x 4",
        lambda x: tf.linalg.eigh(x + tf.transpose(x))[1],
        (_normal(4, 4),),
        _ROWS,
        False,
    ),
    Case("`qr`, Q, 4 x 3", lambda x: tf.linalg.qr(x)[0], (_normal(4, 3),), _ROWS, False),
    Case(
        "`argsort(stable=True)` of 1000 with repeats",
        lambda x: tf.argsort(x, stable=True),
        ((np.arange(1000) % 7).astype(np.float32),),
        _ROWS,
        False,
    ),
)

_SEED = _ints(1, 2)

RANDOM = (
    Case(
        "`stateless_uniform([3], [1, 2])`, float32",
        lambda seed: tf.random.stateless_uniform([3], seed),
        (_SEED,),
        _DRAWS,
    ),
    Case(
        "the same, the seed a constant",
        lambda: tf.random.stateless_uniform([3], [1, 2], alg="philox"),
        (),
        _DRAWS,
    ),
    Case(
        "`stateless_uniform([3], [1, 2], 0, 100)`, int32",
        lambda seed: tf.random.stateless_uniform([3], seed, 0, 100, tf.int32),
        (_SEED,),
        "",
    ),
    Case(
        "`stateless_normal([3], [1, 2])`",
        lambda seed: tf.random.stateless_normal([3], seed),
        (_SEED,),
        _DRAWS,
    ),
    Case(
        "`stateless_truncated_normal([3], [1, 2])`",
        lambda seed: tf.random.stateless_truncated_normal([3], seed),
        (_SEED,),
        _DRAWS,
    ),
    Case(
        "`stateless_categorical`, 5 of 4 classes",
        lambda seed: tf.random.stateless_categorical(tf.zeros([1, 4]), 5, seed)[0],
        (_SEED,),
        _DRAWS,
    ),
    Case(
        "`split([1, 2])` of a seed",
        lambda seed: tf.random.split(seed)[0],
        (_SEED,),
        "",
    ),
    Case(
        "`fold_in([1, 2], 3)`",
        lambda seed: tf.random.fold_in(seed, 3),
        (_SEED,),
        "",
    ),
    Case(
        "`stateless_shuffle`",
        lambda x, seed: tf.random.experimental.stateless_shuffle(x, seed),
        (TABLE, _SEED),
        _INPUT,
    ),
    Case(
        '`stateless_uniform`, `alg="threefry"`',
        lambda seed: tf.random.stateless_uniform([3], seed, alg="threefry"),
        (_SEED,),
        "take Philox, the default",
    ),
    Case(
        "`random.uniform(seed=7)`, two ops of one seed: equal?",
        lambda x: tf.reduce_all(_seeded() == _seeded()) & (x > 0.0),
        (_floats(1),),
        "a replay draws as a Session did",
    ),
)


def _seeded() -> Any:
    return tf.raw_ops.RandomUniform(shape=[3], dtype=tf.float32, seed=1, seed2=7)


CHECKS = (
    Case("a failing `Assert`", _asserted, (_floats(1),), _CHECKED),
    Case(
        "`check_numerics([nan])`",
        lambda x: tf.debugging.check_numerics(x, "x"),
        (_floats(NAN),),
        _CHECKED,
    ),
    Case(
        "`tf.print`",
        lambda x: _printed(x),
        (_floats(1),),
        _INPUT,
        False,
    ),
)


def _printed(x: Any) -> Any:
    with tf.control_dependencies([tf.print(x, output_stream="file:///dev/null")]):
        return x * 2.0


COMPILES = (
    Case("`unique`", lambda x: tf.unique(x)[0], (_ints(1, 2, 1),), _ROWS),
    Case("`where(mask)`", lambda x: tf.where(x > 1.0), (_floats(1, 2, 3),), _ROWS),
    Case("`boolean_mask`", lambda x: tf.boolean_mask(x, x > 1.0), (_floats(1, 2, 3),), _ROWS),
    Case("`while_loop` whose condition reads data", _first_of_loop, (_floats(1, 2),), _ROWS),
    Case(
        "`segment_sum`",
        lambda x, ids: tf.math.segment_sum(x, ids),
        (_floats(1, 2, 4), _ints(0, 0, 1)),
        _INPUT,
    ),
    Case(
        "`linalg.det`",
        tf.linalg.det,
        (np.array([[2, 0], [0, 3]], np.float32),),
        _INPUT,
    ),
    Case(
        "`nn.ctc_loss` (v2)",
        lambda labels, logits, sizes: tf.nn.ctc_loss(
            labels, logits, sizes, sizes * 3, blank_index=0
        ),
        (np.ones([1, 1], np.int32), _normal(3, 1, 4), _ints(1)),
        _ROWS,
        False,
    ),
    Case(
        "`tf.compat.v1.nn.ctc_loss`",
        lambda indices, values, logits, sizes: (
            tf.raw_ops.CTCLoss(
                inputs=logits, labels_indices=indices, labels_values=values, sequence_length=sizes
            ).loss
        ),
        (np.zeros([1, 2], np.int64), _ints(1), _normal(3, 1, 4), _ints(3)),
        _INPUT,
        False,
    ),
    Case(
        "`fractional_max_pool`",
        lambda x: tf.nn.fractional_max_pool(x, 1.5, seed=1)[0],
        (_normal(1, 6, 6, 1),),
        _INPUT,
        False,
    ),
    Case(
        "`non_max_suppression_padded`",
        lambda boxes, scores: tf.image.non_max_suppression_padded(
            boxes, scores, 2, pad_to_max_output_size=True
        )[0],
        (_normal(4, 4), _normal(4)),
        _ROWS,
        False,
    ),
    Case(
        "`resize` bilinear",
        lambda x: tf.image.resize(x, [5, 5]),
        (_normal(1, 3, 3, 1),),
        _ROWS,
        False,
    ),
    Case(
        "`resize` nearest",
        lambda x: tf.image.resize(x, [5, 5], "nearest"),
        (_normal(1, 3, 3, 1),),
        _ROWS,
        False,
    ),
    Case(
        "`resize` bicubic",
        lambda x: tf.image.resize(x, [5, 5], "bicubic"),
        (_normal(1, 3, 3, 1),),
        _INPUT,
        False,
    ),
    Case(
        "`top_k(k=100)` of 1000", lambda x: tf.math.top_k(x, 100)[0], (_normal(1000),), _ROWS, False
    ),
    Case(
        "`cholesky`, 8 x 8",
        lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(8)),
        (_normal(8, 8),),
        _ROWS,
        False,
    ),
    Case(
        "`fft` of 101",
        lambda x: tf.math.real(tf.signal.fft(tf.cast(x, tf.complex64))),
        (_normal(101),),
        _ROWS,
        False,
    ),
)

_X64 = "[E2S615](rules/e2s6.md#e2s615-no-int64-matmul)"


def _typed(op: str, dtype: str, function: Callable[..., Any], ours: str) -> Case:
    array = np.ones([8, 8], dtype)
    return Case(f"`{op}`, {dtype}", function, (array, array), ours, False)


TYPES = (
    _typed("matmul", "float64", _dot, _ROWS),
    _typed("add", "int64", tf.add, _ROWS),
    _typed("matmul", "int64", _dot, _X64),
    _typed("matmul", "int32", _dot, _ROWS),
    _typed(
        "add",
        "complex128",
        tf.add,
        "[E2S603](rules/e2s6.md#e2s603-no-tpu-dtype): TensorFlow's list for TPUs lacks it",
    ),
    _typed("matmul", "complex128", _dot, "E2S603"),
    Case(
        "`fft`, complex128",
        lambda x: tf.signal.fft(x),
        (np.ones([8, 8], np.complex128),),
        "E2S603",
        False,
    ),
)

SECTIONS = {
    "Ids and places": IDS,
    "Not a number, infinity": NOT_A_NUMBER,
    "Sums and numbers": NUMBERS,
    "Random numbers": RANDOM,
    "Checks and prints": CHECKS,
    "What compiles at all": COMPILES,
    "Types of 64 bits": TYPES,
}
