"""Functions of `keras.ops` that stage 8 writes compute what those of TensorFlow 1 computed."""

from __future__ import annotations

import ast

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator2strategy.tools.migrate.model_class import rewriting
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter
from estimator2strategy.tools.migrate.module import Module

A = np.array([[0.5, -1.5, 2.5], [3.0, 0.25, -0.75]], np.float32)
B = np.array([[1.5, 2.0, 0.5], [3.0, -2.0, 0.75]], np.float32)
IDS = np.array([1, 0])
# By function; all others are called with `a`, or with `a` and `b`.
CALLS = {
    "tf.log": "tf.log(tf.abs(a))",
    "tf.sqrt": "tf.sqrt(tf.square(a))",
    "tf.rsqrt": "tf.rsqrt(tf.abs(b))",
    "tf.log1p": "tf.log1p(tf.exp(a))",
    "tf.pow": "tf.pow(a, 2.0)",
    "tf.logical_not": "tf.logical_not(a > b)",
    "tf.logical_and": "tf.logical_and(a > 0, b > 0)",
    "tf.logical_or": "tf.logical_or(a > 0, b > 0)",
    "tf.shape": "tf.shape(a)[1]",
    "tf.matmul": "tf.matmul(a, tf.transpose(b))",
    "tf.reduce_any": "tf.reduce_any(a > 1, axis=1)",
    "tf.reduce_all": "tf.reduce_all(a > -1, axis=0, keepdims=True)",
    "tf.reduce_sum": "tf.reduce_sum(a, 1, True)",
    "tf.reduce_mean": "tf.reduce_mean(a, reduction_indices=[0], keep_dims=True)",
    "tf.reduce_max": "tf.reduce_max(input_tensor=a, axis=-1, name='most')",
    "tf.concat": "tf.concat([a, b], 1)",
    "tf.stack": "tf.stack([a, b], axis=2)",
    "tf.squeeze": "tf.squeeze(a[:, :1], [1])",
    "tf.expand_dims": "tf.expand_dims(a, -1)",
    "tf.reshape": "tf.reshape(a, [-1, 2])",
    "tf.transpose": "tf.transpose(a, perm=[1, 0])",
    "tf.cast": "tf.cast(a, tf.int32)",
    "tf.where": "tf.where(a > b, a, b)",
    "tf.clip_by_value": "tf.clip_by_value(a, -1.0, 1.0)",
    "tf.one_hot": "tf.one_hot(ids, 4)",
    "tf.gather": "tf.gather(a, ids)",
    "tf.tile": "tf.tile(a, [2, 1])",
    "tf.argmax": "tf.argmax(a)",
    "tf.argmin": "tf.argmin(a, dimension=1)",
}


def rewritten(text):
    module = Module.parse("program.py", f"import tensorflow as tf\n\ny = {text}\n")
    node = next(n for n in ast.walk(module.source.tree) if isinstance(n, ast.Assign)).value
    return Rewriter(module, (rewriting.keras_op,)).text(node)


@pytest.mark.parametrize("name", rewriting.ROWS)
def test_an_op_gives_the_same_values_and_dtype(name):
    row = rewriting.ROWS[name]
    arguments = "a, b" if row.first == 2 else "a"
    before = CALLS.get(name, f"{name}({arguments})")
    after = rewritten(before)
    assert "tf." not in after
    known = {"a": tf.constant(A), "b": tf.constant(B), "ids": tf.constant(IDS), "tf": tf}
    there, here = eval(before, known), eval(after, {**known, "keras": keras})
    assert np.asarray(here).dtype == np.asarray(there).dtype or name == "tf.shape"
    np.testing.assert_allclose(np.asarray(here), np.asarray(there), rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "tf.where(a)",
        "tf.matmul(a, b, transpose_b=True)",
        "tf.one_hot(ids, 4, on_value=2.0)",
        "tf.gather(a, ids, axis=1)",
        "tf.reduce_sum(*given)",
        "tf.nn.l2_normalize(a, 1)",
    ],
)
def test_what_keras_has_not_stays(text):
    assert rewritten(text) == text
