"""Writes the ops of the TensorFlow 1.15 that runs it, one a line with the attributes that it knows.

    /path/to/python3.7 tests/programs/ops_of_tf115.py \
        > estimator2strategy/engine/saved_models/ops_of_tf115.txt

`name=1,3` is an attribute that may only be one of these types.
"""

import sys

from tensorflow.core.framework import op_def_pb2
from tensorflow.python import pywrap_tensorflow


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tensorflow.TF_GetBuffer(pywrap_tensorflow.TF_GetAllOpList()))
    write = sys.stdout.write
    write("# By `python3.7 tests/programs/ops_of_tf115.py`: the ops of TensorFlow 1.15.5.\n")
    for op in sorted(ops.op, key=lambda op: op.name):
        write(" ".join([op.name, *sorted(described(attribute) for attribute in op.attr)]) + "\n")


def described(attribute):
    types = attribute.allowed_values.list.type
    if not types:
        return attribute.name
    return attribute.name + "=" + ",".join(str(number) for number in sorted(types))


if __name__ == "__main__":
    main()
