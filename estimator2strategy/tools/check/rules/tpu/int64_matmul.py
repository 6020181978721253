"""Products of int64 matrices, for which a TPU has no program."""

from estimator2strategy.tools.check.rule import Hit

_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul"})


def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        if op.type in _PRODUCTS and op.inputs[0].dtype.name in {"int64", "uint64"}:
            yield Hit(op, f"{op.type} of {op.inputs[0].dtype.name} on a core")
