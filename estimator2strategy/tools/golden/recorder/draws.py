"""Random numbers (dropout, noise): fed, so that they are the same in every TensorFlow."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


# Random op -> how numpy draws the same distribution. uint -> [0, 1), never rounded up to 1.
def _uniform(random, shape, dtype):
    bits = {"float16": 10, "bfloat16": 7}.get(dtype, 23)
    return random.randint(0, 1 << bits, shape) / float(1 << bits)


def _normal(random, shape, dtype):
    return random.standard_normal(shape)


def _truncated(random, shape, dtype):
    values = random.standard_normal(shape)
    while np.any(np.abs(values) > 2):
        values = np.where(np.abs(values) > 2, random.standard_normal(shape), values)
    return values


_DRAWS = {
    "Uniform": _uniform,
    "StandardNormal": _normal,
    "Normal": _normal,
    "TruncatedNormal": _truncated,
}
_KINDS = {"Random" + kind: kind for kind in _DRAWS}
_KINDS.update(
    {"StatelessRandom" + kind + version: kind for kind in _DRAWS for version in ("", "V2")}
)
_KINDS.update({"TruncatedNormal": "TruncatedNormal"})
_KINDS.update({"StatelessTruncatedNormal" + version: "TruncatedNormal" for version in ("", "V2")})
_OTHER_RANDOM = ("Random", "Stateless", "Multinomial", "ParameterizedTruncatedNormal")


class Draws:
    """The numbers that random ops are fed in place of their own: the same everywhere.

    Args:
        ends: Operations; the random ops that these need are fed.
    """

    def __init__(self, ends):
        needed = _needed(ends)
        self.ops, self.uncontrolled = [], []
        for op in tf1.get_default_graph().get_operations():  # in the order of their creation
            if op not in needed:
                continue
            context = op._get_control_flow_context()
            inside_loop = context is not None and not context.IsXLAContext()
            if op.type in _KINDS and not inside_loop:
                self.ops.append(op)
            elif op.type in _KINDS or _is_random(op):
                self.uncontrolled.append(op.name)
        self.shapes = []

    def feed(self, session, step, feed):
        """The values for one step, whose batch is `feed`."""
        if not self.ops:
            return {}
        shapes = session.run([op.inputs[0] for op in self.ops], feed_dict=feed)
        self.shapes = self.shapes or [[int(dim) for dim in shape] for shape in shapes]
        fed = {}
        for i, (op, shape) in enumerate(zip(self.ops, shapes)):
            random = np.random.RandomState([step, i])
            output = op.outputs[0]
            value = _DRAWS[_KINDS[op.type]](random, tuple(shape), output.dtype.base_dtype.name)
            fed[output] = value.astype(output.dtype.as_numpy_dtype)
        return fed

    def about(self):
        shapes = self.shapes or [None] * len(self.ops)
        return [
            {"kind": _KINDS[o.type], "op": o.name, "shape": s} for o, s in zip(self.ops, shapes)
        ]


def _is_random(op):
    is_random = op.type.startswith(_OTHER_RANDOM) and "Seed" not in op.type
    return is_random and bool(op.outputs) and "Dataset" not in op.type


def _needed(ends):
    found, left = set(), list(ends)
    while left:
        op = left.pop()
        if op not in found:
            found.add(op)
            left += [tensor.op for tensor in op.inputs]
            left += op.control_inputs
    return found
