"""Products of int64 matrices, for which a TPU has no program."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.rule import Hit, rule

_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul"})
_SAMPLE = (
    "hidden += tf.cast(tf.matmul(tf.ones([4, 4], tf.{0}), tf.ones([4, 4], tf.{0})), tf.float32)[0]"
)


@rule(
    "E2S615",
    "no-int64-matmul",
    Severity.ERROR,
    title="A product of int64 matrices on a core",
    why="The TPU's compiler makes two 32-bit numbers of one of 64 bits, and cannot do so in a "
    "product of matrices. It adds int64, and multiplies matrices of int32 and of float64.",
    fix="Cast both to int32, or to float32 if no number is above 2**24.",
    bad=tpu_model(_SAMPLE.format("int64")),
    good=tpu_model(_SAMPLE.format("int32")),
    level=Evidence.RECORDED,
    guide="compiled.md",
)
def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        if op.type in _PRODUCTS and op.inputs[0].dtype.name in {"int64", "uint64"}:
            yield Hit(op, f"{op.type} of {op.inputs[0].dtype.name} on a core")
