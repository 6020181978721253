"""Functions of `tf.contrib.data`."""


def _all(tf, dataset, **given):
    """Each window of a Dataset."""
    windows = dataset.apply(tf.contrib.data.sliding_window_batch(**given))
    return [tf.data.make_one_shot_iterator(windows.batch(100)).get_next()]


def windows_of_each_element(tf):
    return _all(tf, tf.data.Dataset.range(7), window_size=3)


def windows_of_every_second_element_and_far_apart(tf):
    return _all(tf, tf.data.Dataset.range(12), window_size=3, window_shift=4, window_stride=2)


def windows_by_the_older_name_of_their_shift(tf):
    return _all(tf, tf.data.Dataset.range(8), window_size=3, stride=2)


def windows_of_features_and_labels(tf):
    dataset = tf.data.Dataset.range(6).map(lambda i: ({"x": [i, i * i]}, i + 1))
    return _all(tf, dataset, window_size=tf.constant(2, tf.int64), window_shift=2)


def windows_of_sparse_rows(tf):
    rows = tf.SparseTensor([[0, 0], [1, 1], [3, 0]], [1, 2, 3], [4, 2])
    dataset = tf.data.Dataset.from_tensor_slices((rows,))
    windows = dataset.apply(tf.contrib.data.sliding_window_batch(2))
    ((window,),) = [tf.data.make_one_shot_iterator(windows).get_next()]
    return [tf.sparse.to_dense(window)] * 3


def windows_that_are_none(tf):
    windows = tf.data.Dataset.range(2).apply(tf.contrib.data.sliding_window_batch(3))
    return [windows.reduce(tf.constant(0), lambda count, _: count + 1)]


def the_size_of_a_window_is_not_static(tf):
    windows = tf.data.Dataset.range(4).apply(tf.contrib.data.sliding_window_batch(3))
    shape = tf.data.make_one_shot_iterator(windows).get_next().shape
    return [tf.constant([size is None for size in shape.as_list()])]
