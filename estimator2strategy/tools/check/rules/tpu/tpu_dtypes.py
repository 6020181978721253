"""Types of tensors that a TPU has not."""

from estimator2strategy.tools.check.rule import Hit

# Of tensors that are no data, but handles of something on the host or on a core.
_HANDLES = frozenset({"resource", "variant"})
# Ops that hand a text on, in a cond say, to the assertion in it.
_ON_THE_WAY = frozenset({"Identity", "Switch", "Merge"})
# `kTpuAllTypes`, tensorflow/core/tpu/tpu_defs.h of TensorFlow 2.21.
_OF_TPU = frozenset(
    (
        *("bool", "int4", "int8", "int16", "int32", "int64", "qint8", "qint32"),
        *("uint4", "uint8", "uint16", "uint32", "uint64", "quint8"),
        *("bfloat16", "float16", "float32", "float64", "complex64"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz"),
    )
)


def find(recorded, subject):
    if not subject.model.for_tpu:
        return
    # Cores refuse strings, so the input is looked at where it is recorded for one device.
    for name, tensor in recorded.fed_by_name.items():
        if tensor.dtype.name not in _OF_TPU:
            yield Hit(
                subject.inputs[recorded.mode],
                f"{recorded.mode}: input_fn feeds {name} as {tensor.dtype.name} to the cores",
            )
    for op in recorded.core_ops if recorded.on_cores else ():
        made = [t for t in op.outputs if t.dtype.base_dtype.name not in _OF_TPU | _HANDLES]
        for dtype in sorted({t.dtype.base_dtype.name for t in made if not _is_for_asserts(t)}):
            yield Hit(op, f"{op.type} makes a {dtype} tensor on a core")


def _is_for_asserts(tensor) -> bool:
    """True if a text is for the messages of assertions alone: compilers leave those out."""
    if tensor.dtype.base_dtype.name != "string" or not tensor.consumers():
        return False
    waiting, seen = [tensor], set()
    while waiting:
        for op in waiting.pop().consumers():
            if op.type in _ON_THE_WAY and op not in seen:
                seen.add(op)
                waiting.extend(op.outputs)
            elif op.type not in _ON_THE_WAY and op.type != "Assert":
                return False
    return True
