"""Feature columns of `tf.contrib.layers` say what is wrong; `cases_layers.py` has their numbers."""

from __future__ import annotations

import pytest

import estimator2strategy.tf1 as tf

layers = tf.contrib.layers


@pytest.fixture
def town():
    return layers.sparse_column_with_keys("town", ["Oslo", "Rome"])


@pytest.mark.parametrize(
    ("error", "match", "make"),
    [
        (TypeError, "dimension must be an integer", lambda: layers.real_valued_column("a", 1.5)),
        (ValueError, "greater than 0", lambda: layers.real_valued_column("a", 0)),
        (ValueError, "equal to dimension", lambda: layers.real_valued_column("a", 2, [1.0])),
        (
            TypeError,
            "compatible with dtype",
            lambda: layers.real_valued_column("a", default_value=0.5, dtype=tf.int64),
        ),
        (ValueError, "at least 1", lambda: layers.sparse_column_with_hash_bucket("a", 0)),
        (
            ValueError,
            "must be an integer",
            lambda: layers.sparse_column_with_integerized_feature("a", 3, dtype=tf.string),
        ),
        (TypeError, "_RealValuedColumn", lambda: layers.bucketized_column("a", [1.0])),
        (
            ValueError,
            "sorted",
            lambda: layers.bucketized_column(layers.real_valued_column("a"), [2, 1]),
        ),
    ],
)
def test_a_column_that_cannot_be_is_refused(error, match, make):
    with pytest.raises(error, match=match):
        make()


def test_columns_that_do_not_fit_to_a_model_are_refused(town):
    with tf.Graph().as_default():
        features = {"town": tf.constant([["Oslo"]])}
        with pytest.raises(ValueError, match="use embedding_column or one_hot_column"):
            layers.input_from_feature_columns(features, [town])
        embedded = layers.embedding_column(town, 2)
        with pytest.raises(ValueError, match="not supported in linear models"):
            layers.weighted_sum_from_feature_columns(features, [embedded], 1)
        with pytest.raises(ValueError, match="Duplicate feature column key"):
            layers.weighted_sum_from_feature_columns(features, [town, town], 1)
        with pytest.raises(ValueError, match=r"doesn't contain key \(town\)"):
            layers.weighted_sum_from_feature_columns({}, [town], 1)


def test_a_column_prints_as_in_tf_1_15_but_for_its_dtype(town):
    assert str(town) == (
        "_SparseColumnKeys(column_name='town', is_integerized=False, bucket_size=None, "
        "lookup_config=_SparseIdLookupConfig(vocabulary_file=None, keys=('Oslo', 'Rome'), "
        "num_oov_buckets=0, vocab_size=2, default_value=-1), combiner='sum', "
        f"dtype={tf.string!r})"
    )
