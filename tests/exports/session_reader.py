"""Loads exports in a Session, and prints the greatest difference of each to its predictions.

    python3.7 tests/exports/session_reader.py FOLDER

It is Python 3.7 and needs TensorFlow alone: 1.15, 2.15 or today's. The last line of its output is
JSON: kind -> difference, or the first line of the error.
"""

import json
import os
import sys

import tensorflow

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases

tf = tensorflow.compat.v1


def answers(folder, case):
    """The results of the signature that a case names."""
    with tf.Graph().as_default(), tf.Session() as session:
        graph = tf.saved_model.load(session, ["serve"], os.path.join(folder, "export"))
        signature = graph.signature_def[case["signature"]]
        fed = {signature.inputs[name].name: value for name, value in cases.inputs_of(case).items()}
        return session.run(signature.outputs[case["output"]].name, fed)


if __name__ == "__main__":
    print(json.dumps(cases.differences(sys.argv[1], answers)))
