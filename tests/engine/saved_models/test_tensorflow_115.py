"""Graphs of today's ops become graphs that TensorFlow 1.15 knows, or are refused with a remedy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.saved_models import model_files, tensorflow_115
from estimator2strategy.errors import SavedModelError
from tests.engine.saved_models.small_exports import (
    answers,
    exported,
    towns_and_numbers,
    two_examples,
)

tf1 = tf.compat.v1


def rewritten(tmp_path, build, **how):
    """The folder of an export for TF 1.15, and the one it was made of."""
    source = exported(tmp_path / "source", build, **how)
    model = model_files.read(source)
    tensorflow_115.rewrite(model)
    model_files.write(model, source, str(tmp_path / "target"))
    return str(tmp_path / "target"), source


def unknown(folder):
    """Whatever of an export TF 1.15 has not."""
    known = tensorflow_115._known()
    (graph,) = model_files.read(folder).meta_graphs
    functions = {function.signature.name for function in graph.graph_def.library.function}
    nodes = [*graph.graph_def.node]
    for function in graph.graph_def.library.function:
        nodes += function.node_def
    found = {node.op for node in nodes} - known.keys() - functions
    for node in nodes:
        if node.op in known:
            attrs = {name for name in node.attr if not name.startswith("_")}
            found |= {(node.op, name) for name in attrs - known[node.op].keys()}
    return found


@pytest.mark.parametrize("strip_default_attrs", [True, False])
def test_parsing_and_tables_are_told_in_ops_of_tf_1_15(tmp_path, strip_default_attrs):
    target, source = rewritten(tmp_path, towns_and_numbers, strip_default_attrs=strip_default_attrs)
    assert ("VarHandleOp", "debug_name") in unknown(source)
    assert "ParseExampleV2" in unknown(source)
    assert unknown(target) == set()
    found, expected = (answers(folder, examples=two_examples()) for folder in (target, source))
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def diagonals():
    x = tf1.placeholder(tf.float32, [3], "x")
    matrix = tf.linalg.diag(x)
    product = tf.raw_ops.BatchMatMulV3(x=matrix[None], y=matrix[None], Tout=tf.float32)
    replaced = tf.linalg.set_diag(matrix, x * 2)
    return {"x": x}, {"d": tf.linalg.diag_part(matrix), "p": product, "r": replaced}


def test_ops_that_were_renewed_become_those_before_them(tmp_path):
    target, source = rewritten(tmp_path, diagonals)
    assert {"MatrixDiagV3", "MatrixDiagPartV3", "BatchMatMulV3"} <= unknown(source)
    assert unknown(target) == set()
    found = answers(target, x=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found["d"], [1, 2, 3])
    np.testing.assert_array_equal(found["p"], [np.diag([1, 4, 9])])
    np.testing.assert_array_equal(found["r"], np.diag([2, 4, 6]))


def in_a_function():
    x = tf1.placeholder(tf.float32, [None], "x")
    spec = {"x": tf.io.FixedLenFeature([1], tf.float32)}
    parse = tf.function(lambda text: tf.io.parse_example(text, spec)["x"], autograph=False)
    examples = tf1.placeholder(tf.string, [None], "examples")
    return {"x": x, "examples": examples}, {"parsed": parse(examples), "y": x * 2}


def test_ops_in_functions_are_rewritten_too(tmp_path):
    target, _ = rewritten(tmp_path, in_a_function)
    assert unknown(target) == set()
    found = answers(target, x=[1.0], examples=two_examples()[:0])
    assert found["parsed"].shape == (0, 1)


def embeddings():
    """Rows 0, 1 and 2 of a table of three have 0 and 1, 2 and 3, 4 and 5."""
    ids = tf1.placeholder(tf.int64, [None], "ids")
    rows = tf.SparseTensor(tf.constant([[0, 0], [0, 1], [1, 0]], tf.int64), ids, [2, 2])
    params = tf.constant(np.arange(6.0).reshape(3, 2))

    def looked_up(combiner):
        return tf.nn.embedding_lookup_sparse(params, rows, None, combiner=combiner)

    called = tf.function(looked_up, autograph=False)
    sums = {combiner: looked_up(combiner) for combiner in ("mean", "sqrtn", "sum")}
    return {"ids": ids}, {**sums, "called": called("mean")}


def test_looked_up_embeddings_have_ids_that_tf_1_15_takes(tmp_path):
    target, source = rewritten(tmp_path, embeddings)
    assert ("SparseSegmentMean", "Tsegmentids") in unknown(source)
    assert unknown(target) == set()
    found = answers(target, ids=[0, 2, 1])
    np.testing.assert_array_equal(found["mean"], [[2, 3], [2, 3]])
    np.testing.assert_array_equal(found["called"], found["mean"])
    np.testing.assert_array_equal(found["sum"], [[4, 6], [2, 3]])
    np.testing.assert_allclose(found["sqrtn"][0], np.array([4, 6]) / np.sqrt(2))


REFUSED = {
    "DecodeImage, which 'DecodeImage' is: decode with tf.io.decode_jpeg": lambda s, x: (
        tf.raw_ops.DecodeImage(contents=s)
    ),
    "MatMul with grad_a = b: true": lambda s, x: tf.raw_ops.MatMul(a=x, b=x, grad_a=True),
    "MatMul of uint8": lambda s, x: tf.raw_ops.MatMul(
        a=tf.cast(x, tf.uint8), b=tf.cast(x, tf.uint8)
    ),
    "of float8_e5m2": lambda s, x: tf.cast(x, tf.dtypes.experimental.float8_e5m2),
    "MatrixDiagV3 of several diagonals": lambda s, x: tf.linalg.diag(x, k=(0, 1)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_tf_1_15_cannot_be_told_is_refused_with_the_remedy_and_the_users_line(message):
    with tf.Graph().as_default() as graph:
        REFUSED[message](tf1.placeholder(tf.string, []), tf1.placeholder(tf.float32, [2, 2]))
        with pytest.raises(SavedModelError) as error:
            tensorflow_115.check_graph(graph)
    assert message in str(error.value)
    assert "test_tensorflow_115.py:" in str(error.value)
