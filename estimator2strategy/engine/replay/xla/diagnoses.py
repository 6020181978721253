"""Tables of messages of TensorFlow and XLA's compilers: their causes and remedies.

    diagnosis = diagnose(text)
    diagnosis.cause, diagnosis.fix

Each row of `_MESSAGES` comes from a program that was compiled and refused
(`tests/engine/xla/test_diagnoses.py`).
"""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Why something was refused.

    Attributes:
        cause: The cause in our words, or in theirs where we know none.
        fix: The remedy; "" if unknown.
    """

    cause: str
    fix: str = ""


# (what the message has in it, the cause, the fix); the first that matches counts.
_MESSAGES = (
    (
        r"Only support static input shape",
        "the batch has a shape that is not fixed",
        "Batch with drop_remainder=True in input_fn, and set_shape what tf.py_func returns.",
    ),
    (
        r"requires a fixed tensor list size",
        "a loop has no bound, and its gradient has to keep something of each turn",
        "Give tf.while_loop (or dynamic_rnn's loop) maximum_iterations=N.",
    ),
    (
        r"compile-time constant",
        "a shape, axis or size is computed from data; XLA needs it before it compiles",
        "Take it from static shapes or from params; or compute it in input_fn.",
    ),
    (
        r"inputs from different frames|\bEnter \(No registered",
        "a loop was made as TF1's control flow (Enter and Exit), by import_meta_graph for example",
        "Build the model in model_fn from its code; here loops become functional there.",
    ),
    (
        r"Unexpected operand type for FFT: c128",
        "the TPU has no Fourier transform of complex128",
        "Cast to complex64.",
    ),
    (
        r"OOM when allocating tensor|Failed to allocate",
        "a variable is larger than this machine's memory",
        "Check on a machine with more memory.",
    ),
    (
        r"CompileTimeHbmOom|exceeds available HBM|Ran out of memory on HBM",
        "the step needs more memory than a core has",
        "Take a smaller batch (--fit-batch finds the largest), bfloat16 activations, or an "
        "optimizer with fewer slots.",
    ),
    (
        r"Ran out of memory in memory space (vmem|smem)",
        "one operation needs more of the core's own fast memory than there is",
        "Split it: fewer channels, a smaller window, or several smaller concatenations.",
    ),
    (
        r"multi-process lockfile",
        "another process of this machine holds libtpu",
        "Wait for it, or end it.",
    ),
    (
        r"not done after [\d.]+ seconds",
        "the compiler was not done within the time limit",
        "Give it more with --tpu-time-limit, or check a smaller model (fewer layers).",
    ),
)

# Op -> what to use instead, or where it belongs; the beginning of a name ends in *.
_OPS = {
    "PyFunc*": "Do it in input_fn, or in a host_call.",
    "EagerPyFunc": "Do it in input_fn, or in a host_call.",
    "*Summary*": "Make summaries in a host_call.",
    "Print*": "Print in a host_call.",
    "String*": "Work on strings in input_fn, and give the model numbers.",
    "AsString": "Work on strings in input_fn, and give the model numbers.",
    "Decode*": "Decode in input_fn.",
    "Parse*": "Parse in input_fn.",
    "*HashTable*": "Look it up in input_fn, and give the model numbers.",
    "LookupTable*": "Look it up in input_fn, and give the model numbers.",
    "RandomGamma": "Draw it in input_fn.",
    "RandomPoisson*": "Draw it in input_fn.",
    "Segment*": "Use tf.math.unsorted_segment_sum and its kin, with a fixed num_segments.",
    "SparseSegment*": "Make it dense in input_fn, or use tf.math.unsorted_segment_sum.",
    "*MatrixDeterminant": "Use tf.linalg.cholesky or tf.linalg.qr: the diagonal has it.",
    "ResourceSparseApply*": "Make the gradient dense: CrossShardOptimizer does.",
    "OptionalFromValue": "It is from the gradient of a tf.cond; use tf.where, or a TPUEstimator, "
    "under which conds are recorded for XLA.",
    "Enter": "Build the loop in model_fn from its code; here it becomes functional.",
    "*Dataset*": "Datasets belong in input_fn.",
    "Iterator*": "Datasets belong in input_fn.",
    "Placeholder*": "Nobody feeds a step; take it from features or params.",
}


def diagnose(text: str) -> Diagnosis:
    """The cause and the fix of a message; its first line alone where no row matches."""
    for pattern, cause, fix in _MESSAGES:
        if re.search(pattern, text):
            return Diagnosis(cause, fix)
    return Diagnosis(first_line(text))


def first_line(text: str) -> str:
    """The first line of a message, without what TensorFlow puts around it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    return line.removeprefix("Failed getting HLO text: '").partition(" [[{{")[0]


def fix_of_op(op: str) -> str:
    """The remedy for an op that XLA does not have; "" if the table has none."""
    for pattern, fix in _OPS.items():
        if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), op):
            return fix
    return ""
