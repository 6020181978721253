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


def test_columns_that_cannot_share_their_vectors_are_refused(town):
    hashed = layers.sparse_column_with_hash_bucket("home", 7)
    more = layers.sparse_column_with_hash_bucket("job", 8)
    with pytest.raises(ValueError, match="at least one element"):
        layers.shared_embedding_columns([], 2)
    with pytest.raises(TypeError, match="must be _SparseColumn"):
        layers.shared_embedding_columns([layers.real_valued_column("age")], 2)
    with pytest.raises(ValueError, match="not compatible"):
        layers.shared_embedding_columns([hashed, more], 2)
    shared = [
        layers.shared_embedding_columns([c, c], 2, shared_embedding_name="s")[0]
        for c in (hashed, more)
    ]
    with tf.Graph().as_default():
        features = {name: tf.constant([["Oslo"]]) for name in ("home", "job")}
        with pytest.raises(ValueError, match="already exists, but its shape"):
            layers.input_from_feature_columns(features, shared)


def test_columns_that_are_not_for_sequences_are_refused(town):
    age = layers.real_valued_column("age")
    crossed = layers.one_hot_column(layers.crossed_column([town, town], 5))
    with tf.Graph().as_default():
        features = {"age": tf.ones([2]), "town": tf.constant([["Oslo"]])}
        for columns, match in (
            ([town], "_SparseColumnKeys is not currently supported"),
            ([crossed], "_CrossedColumn, which is not currently supported"),
            ([age], r"Rank of input Tensor \(1\)"),
        ):
            with pytest.raises(ValueError, match=match):
                layers.sequence_input_from_feature_columns(features, columns)


def test_a_feature_that_is_not_of_numbers_has_no_column():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Non integer or non floating"):
            layers.infer_real_valued_columns({"town": tf.constant([["Oslo"]])})
        sparse = tf.SparseTensor([[0, 0]], [1.0], [1, 1])
        with pytest.raises(ValueError, match="SparseTensor is not supported"):
            layers.infer_real_valued_columns(sparse)


def test_placeholders_are_those_of_the_features(town):
    with tf.Graph().as_default():
        columns = [town, layers.real_valued_column("age", 2)]
        made = layers.make_place_holder_tensors_for_base_features(columns)
        assert isinstance(made["town"], tf.SparseTensor)
        assert made["age"].shape.as_list() == [None, 2]


def test_what_columns_made_of_features_is_taken_in_their_place(town):
    """As `features.update(transform_features(features, columns))` of programs has it."""
    age = layers.bucketized_column(layers.real_valued_column("age", 2), [20.0, 40.0])
    weighted = layers.weighted_sparse_column(town, "share")
    columns = [
        age,
        layers.one_hot_column(town),
        layers.embedding_column(weighted, 2, initializer=tf.ones_initializer()),
    ]
    with tf.Graph().as_default():
        places = [[0, 0], [1, 0], [1, 1]]
        features = {
            "age": tf.constant([[10.0, 30.0], [50.0, 25.0]]),
            "town": tf.SparseTensor(places, tf.constant(["Oslo", "Rome", "Oslo"]), [2, 2]),
            "share": tf.SparseTensor(places, [0.5, 2.0, 1.0], [2, 2]),
        }
        expected = layers.input_from_feature_columns(features, columns)
        features.update(layers.transform_features(features, columns))
        found = layers.input_from_feature_columns(features, columns)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            assert session.run(found).tolist() == session.run(expected).tolist()
