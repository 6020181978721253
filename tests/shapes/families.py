"""Small graphs of families of ops, with as little known of their inputs as a program may leave.

Each function takes TF 1.15's `tf` and gives the tensors whose static shapes are compared, by name.
"""


def _spec(tf):
    return {
        "x": tf.FixedLenFeature([4], tf.float32),
        "n": tf.FixedLenFeature([], tf.int64),
        "v": tf.VarLenFeature(tf.int64),
        "q": tf.FixedLenSequenceFeature([3], tf.float32, allow_missing=True),
        "s": tf.SparseFeature("i", "w", tf.float32, 10),
    }


def parse_example(tf):
    found = {}
    for name, shape in (("any", None), ("batch", [None]), ("three", [3])):
        parsed = tf.parse_example(tf.placeholder(tf.string, shape), _spec(tf))
        found.update({f"{name}/{key}": value for key, value in parsed.items()})
    return found


def parse_single_example(tf):
    spec = {key: value for key, value in _spec(tf).items() if key != "q"}
    found = {}
    for name, shape in (("any", None), ("scalar", [])):
        parsed = tf.parse_single_example(tf.placeholder(tf.string, shape), spec)
        found.update({f"{name}/{key}": value for key, value in parsed.items()})
    return found


def parse_sequence_examples(tf):
    context = {"n": tf.FixedLenFeature([2], tf.int64), "v": tf.VarLenFeature(tf.int64)}
    steps = {"x": tf.FixedLenSequenceFeature([3], tf.float32), "w": tf.VarLenFeature(tf.string)}
    found = {}
    one = tf.io.parse_single_sequence_example
    for function, shapes in ((one, (None, [])), (tf.io.parse_sequence_example, (None, [None]))):
        for shape in shapes:
            parsed = function(tf.placeholder(tf.string, shape), context, steps)
            for part in parsed:
                where = f"{function.__name__}/{shape}/{len(found)}"
                found.update({f"{where}/{key}": value for key, value in part.items()})
    return found


def parse_features_of_a_dataset(tf):
    records = tf.data.Dataset.from_tensor_slices(tf.placeholder(tf.string, [None])).batch(2)
    found = {}
    spec = {key: value for key, value in _spec(tf).items() if key != "s"}
    for name, made in (
        ("map", records.map(lambda r: tf.parse_example(r, spec))),
        ("apply", records.apply(tf.data.experimental.parse_example_dataset(spec))),
    ):
        item = tf.data.make_initializable_iterator(made).get_next()
        found.update({f"{name}/{key}": value for key, value in item.items()})
    return found


def decoders(tf):
    text = tf.placeholder(tf.string)
    return {
        "raw": tf.decode_raw(text, tf.uint8),
        "raw of rows": tf.decode_raw(tf.placeholder(tf.string, [None]), tf.float32),
        "csv": tf.decode_csv(text, [[1.0], [""]]),
        "csv of rows": tf.decode_csv(tf.placeholder(tf.string, [None]), [[1.0], [""]]),
        "json": tf.io.decode_json_example(text),
        "compressed": tf.io.decode_compressed(text),
        "base64": tf.io.decode_base64(text),
        "jpeg": tf.image.decode_jpeg(text, channels=3),
        "jpeg of any": tf.image.decode_jpeg(text),
        "png": tf.image.decode_png(text, channels=1),
        "gif": tf.image.decode_gif(text),
        "bmp": tf.image.decode_bmp(text, channels=3),
        "image": tf.image.decode_image(text, channels=3),
        "crop": tf.image.decode_and_crop_jpeg(text, [0, 0, 2, 3], channels=3),
        "size": tf.image.extract_jpeg_shape(text),
        "wav": tf.audio.decode_wav(text, desired_channels=1),
        "encoded": tf.image.encode_png(tf.placeholder(tf.uint8)),
        "encoded jpeg": tf.image.encode_jpeg(tf.placeholder(tf.uint8)),
        "tensor": tf.io.parse_tensor(text, tf.float32),
        "file": tf.read_file(text),
        "files": tf.matching_files(text),
    }


def python_functions(tf):
    x = tf.placeholder(tf.float32, [None, 3])
    made = tf.py_func(lambda x: x, [x], tf.float32)
    known = tf.py_func(lambda x: x, [x], tf.float32)
    known.set_shape([None, 3])
    return {
        "unknown": made,
        "set": known,
        "after": tf.reduce_sum(known, 1),
        "many": tf.py_func(lambda x: (x, x), [x], [tf.float32, tf.float32]),
    }


def strings(tf):
    text, row = tf.placeholder(tf.string), tf.placeholder(tf.string, [None])
    return {
        "split": tf.string_split(row),
        "split any": tf.string_split(text),
        "split v2": tf.strings.split(row, sep=",").to_sparse()
        if hasattr(tf.strings.split(row, sep=","), "to_sparse")
        else tf.strings.split(row, sep=","),
        "join": tf.string_join([row, row]),
        "join any": tf.string_join([text, row]),
        "reduce": tf.reduce_join(row, 0),
        "reduce any": tf.reduce_join(text, 0),
        "substr": tf.substr(row, 0, 2),
        "substr any": tf.substr(text, 0, 2),
        "hash": tf.string_to_hash_bucket_fast(text, 5),
        "number": tf.string_to_number(row),
        "length": tf.strings.length(text),
        "strip": tf.string_strip(row),
        "replace": tf.regex_replace(row, "a", "b"),
        "format": tf.strings.format("{}", [row]),
        "lower": tf.strings.lower(row),
        "script": tf.strings.unicode_script(tf.placeholder(tf.int32, [None])),
        "ngrams": tf.strings.ngrams(tf.ragged.constant([["a", "b"]]), 2),
        "unicode": tf.strings.unicode_decode(row, "UTF-8"),
        "as text": tf.as_string(tf.placeholder(tf.int32, [None, 2])),
    }


def readers(tf):
    queue = tf.FIFOQueue(3, [tf.string])
    key, value = tf.TextLineReader().read(queue)
    keys, values = tf.WholeFileReader().read_up_to(queue, 4)
    many = tf.FIFOQueue(3, [tf.float32, tf.int64], [[4], []])
    free = tf.FIFOQueue(3, [tf.float32, tf.int64])
    return {
        "read": [key, value],
        "up to": [keys, values],
        "dequeue": many.dequeue(),
        "dequeue many": many.dequeue_many(2),
        "dequeue up to": many.dequeue_up_to(2),
        "dequeue free": free.dequeue(),
        "size": many.size(),
        "batch": tf.train.batch([tf.placeholder(tf.float32, [3])], 2),
        "smaller": tf.train.batch(
            [tf.placeholder(tf.float32, [3])], 2, allow_smaller_final_batch=True
        ),
        "shuffled": tf.train.shuffle_batch([tf.placeholder(tf.float32, [3])], 2, 9, 3),
        "names": tf.train.string_input_producer(["a", "b"]).dequeue(),
        "slices": tf.train.slice_input_producer([tf.zeros([5, 2])]),
    }


def iterators(tf):
    data = tf.data
    rows = data.Dataset.from_tensor_slices((tf.zeros([6, 2]), tf.zeros([6], tf.int64)))
    made = {
        "batch": rows.batch(4),
        "dropped": rows.batch(4, drop_remainder=True),
        "padded": rows.padded_batch(4, ([3], [])),
        "repeat": rows.repeat().shuffle(3),
        "zip": data.Dataset.zip((rows, rows)),
        "window": rows.window(2).flat_map(lambda x, y: data.Dataset.zip((x.batch(2), y.batch(2)))),
        "generator": data.Dataset.from_generator(lambda: [1], tf.int64),
        "shaped": data.Dataset.from_generator(lambda: [[1]], tf.int64, [None]),
        "text": data.TextLineDataset(["a"]).batch(2),
        "records": data.TFRecordDataset(["a"]).batch(2),
        "fixed": data.FixedLengthRecordDataset(["a"], 4).batch(2),
        "csv": data.experimental.CsvDataset(["a"], [1.0, ""]).batch(2),
        "interleaved": data.Dataset.range(3).interleave(lambda i: rows, 2),
        "sparse": data.Dataset.from_tensors(tf.SparseTensor([[0, 1]], [1.0], [2, 3])).batch(2),
        "dense to sparse": rows.map(lambda x, y: x).apply(
            data.experimental.dense_to_sparse_batch(2, [3])
        ),
        "map and batch": rows.apply(data.experimental.map_and_batch(lambda x, y: x, 4)),
        "ragged": rows.map(lambda x, y: x).apply(data.experimental.unbatch()),
    }
    return {
        name: data.make_initializable_iterator(dataset).get_next() for name, dataset in made.items()
    }


def sparse_tensors(tf):
    sparse = tf.sparse_placeholder(tf.float32)
    known = tf.sparse_placeholder(tf.float32, [None, 5])
    values = tf.sparse_placeholder(tf.int64, [3, 4])
    return {
        "placeholder": sparse,
        "with shape": known,
        "dense": tf.sparse_tensor_to_dense(sparse),
        "dense known": tf.sparse_tensor_to_dense(values),
        "add": tf.sparse_add(sparse, known),
        "reorder": tf.sparse_reorder(known),
        "concat": tf.sparse_concat(1, [values, values]),
        "concat any": tf.sparse_concat(1, [sparse, known]),
        "slice": tf.sparse_slice(values, [0, 0], [2, 2]),
        "split": tf.sparse_split(sp_input=values, num_split=2, axis=1),
        "fill": tf.sparse_fill_empty_rows(known, 0.0),
        "reset": tf.sparse_reset_shape(known, [4, 5]),
        "reset any": tf.sparse_reset_shape(known),
        "reshape": tf.sparse_reshape(values, [2, 6]),
        "reshape any": tf.sparse_reshape(known, [-1]),
        "retain": tf.sparse_retain(known, tf.placeholder(tf.bool, [None])),
        "sum": tf.sparse_reduce_sum(known, 1),
        "sum known": tf.sparse_reduce_sum(tf.cast(values, tf.float32), 1),
        "max": tf.sparse_reduce_max(known, 1, keepdims=True),
        "softmax": tf.sparse_softmax(known),
        "matmul": tf.sparse_tensor_dense_matmul(known, tf.zeros([5, 2])),
        "transpose": tf.sparse_transpose(values),
        "transpose known": tf.sparse_transpose(known),
        "minimum": tf.sparse_minimum(values, values),
        "merge": tf.sparse_merge(values, values, 10),
        "indicator": tf.sparse_to_indicator(values, 10),
        "mask": tf.sparse_mask(tf.IndexedSlices(tf.zeros([2, 3]), tf.constant([0, 1])), [0]),
        "to dense": tf.sparse_to_dense([[0, 1]], [2, 3], 1.0),
        "serialize": tf.serialize_sparse(known),
        "serialize many": tf.serialize_many_sparse(known),
        "deserialize": tf.deserialize_many_sparse(tf.placeholder(tf.string, [None, 3]), tf.float32),
        "deserialize rank": tf.deserialize_many_sparse(
            tf.placeholder(tf.string, [None, 3]), tf.float32, rank=2
        ),
        "lookup": tf.nn.embedding_lookup_sparse(tf.zeros([9, 4]), values, None, combiner="sum"),
        "safe": tf.nn.safe_embedding_lookup_sparse(tf.zeros([9, 4]), values)
        if hasattr(tf.nn, "safe_embedding_lookup_sparse")
        else None,
        "union": tf.sets.set_union(values, values),
        "size": tf.sets.set_size(values),
    }


def ragged_tensors(tf):
    ragged = tf.RaggedTensor.from_row_splits(
        tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int64, [None])
    )
    ints = tf.ragged.constant([[1, 2], [3]])
    return {
        "itself": ragged,
        "dense": ragged.to_tensor(),
        "dense ints": ints.to_tensor(),
        "lengths": ragged.row_lengths(),
        "starts": ragged.row_starts(),
        "rows": ragged.nrows(),
        "sum": tf.reduce_sum(ragged, 1),
        "mean": tf.reduce_mean(ints, 1),
        "concat": tf.concat([ints, ints], 1),
        "gather": tf.gather(ragged, [0]),
        "sparse": ints.to_sparse(),
        "bounds": ints.bounding_shape(),
        "range": tf.ragged.range([1, 2]),
        "ids": ragged.value_rowids(),
        "slice": ints[:, :1],
        "stack": tf.stack([ints, ints]),
        "mask": tf.ragged.boolean_mask([[1, 2]], [[True, False]]),
        "segments": tf.ragged.segment_ids_to_row_splits(tf.placeholder(tf.int64, [None])),
        "map": tf.ragged.map_flat_values(tf.add, ints, 1),
    }


def lookups(tf):
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    vectors = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    row = tf.placeholder(tf.string, [None])
    static = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), -1
    )
    index = tf.contrib.lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=1)
    return {
        "find": table.lookup(row),
        "export": table.export(),
        "vectors": vectors.lookup(tf.placeholder(tf.int64, [None])),
        "export vectors": vectors.export(),
        "size": table.size(),
        "static": static.lookup(row),
        "index": index.lookup(row),
        "sparse": index.lookup(tf.sparse_placeholder(tf.string, [None, 2])),
        "strings": tf.contrib.lookup.index_to_string_table_from_tensor(["a"]).lookup(
            tf.placeholder(tf.int64, [None])
        ),
    }


def arrays(tf):
    x, any_ = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32)
    ids = tf.placeholder(tf.int32, [None])
    return {
        "unique": tf.unique(any_),
        "counts": tf.unique_with_counts(ids),
        "where": tf.where(any_ > 0),
        "where known": tf.where(x > 0),
        "masked": tf.boolean_mask(x, ids > 0),
        "mask": tf.sequence_mask(ids),
        "mask of 5": tf.sequence_mask(ids, 5),
        "one hot": tf.one_hot(ids, 4),
        "one hot any": tf.one_hot(tf.placeholder(tf.int32), 4),
        "top": tf.nn.top_k(x, 2),
        "solve": tf.matrix_triangular_solve(x, any_),
        "solve any": tf.matrix_triangular_solve(any_, x),
        "inverse": tf.matrix_inverse(any_),
        "cholesky": tf.cholesky(any_),
        "svd": tf.svd(x),
        "eig": tf.self_adjoint_eig(any_),
        "diag": tf.matrix_diag(x),
        "diag part": tf.matrix_diag_part(any_),
        "set diag": tf.matrix_set_diag(any_, x),
        "einsum": tf.einsum("ij,jk->ik", x, tf.zeros([3, 2])),
        "tensordot": tf.tensordot(x, tf.zeros([3, 2]), 1),
        "tensordot any": tf.tensordot(any_, tf.zeros([3, 2]), 1),
        "matmul": tf.matmul(any_, x, transpose_b=True),
        "segments": tf.segment_sum(x, ids),
        "unsorted": tf.unsorted_segment_sum(x, ids, 4),
        "partition": tf.dynamic_partition(x, ids, 2),
        "stitch": tf.dynamic_stitch([ids], [x]),
        "scatter": tf.scatter_nd(tf.placeholder(tf.int32, [None, 1]), x, [4, 3]),
        "reshape": tf.reshape(any_, [-1, 3]),
        "reshape of shape": tf.reshape(any_, tf.shape(x)),
        "tile": tf.tile(x, [1, 2]),
        "fill": tf.fill(tf.shape(x), 1.0),
        "zeros like": tf.zeros_like(x),
        "range": tf.range(tf.shape(x)[0]),
        "linspace": tf.lin_space(0.0, 1.0, 5),
        "bincount": tf.bincount(ids),
        "confusion": tf.confusion_matrix(ids, ids, 3),
        "meshgrid": tf.meshgrid(ids, ids),
        "space": tf.space_to_batch_nd(tf.zeros([2, 4, 1]), [2], [[0, 0]]),
        "setdiff": tf.setdiff1d(ids, ids),
        "edit": tf.edit_distance(
            tf.sparse_placeholder(tf.int64, [3, 4]), tf.sparse_placeholder(tf.int64, [3, 4])
        ),
        "histogram": tf.histogram_fixed_width(any_, [0.0, 1.0], 5),
        "cumsum": tf.cumsum(x),
        "reverse": tf.reverse_sequence(x, ids, 1, 0),
        "gather": tf.gather(x, ids),
        "gather nd": tf.gather_nd(x, tf.placeholder(tf.int32, [None, 1])),
        "multinomial": tf.multinomial(x, 2),
        "shuffle": tf.random_shuffle(x),
        "crop": tf.random_crop(x, [2, 3]),
        "gamma": tf.random_gamma([2], tf.cast(ids, tf.float32)),
        "poisson": tf.random_poisson(tf.cast(ids, tf.float32), [2]),
        "candidates": tf.nn.uniform_candidate_sampler(tf.zeros([2, 1], tf.int64), 1, 3, True, 9),
        "mean": tf.reduce_mean(any_, 0, keepdims=True),
        "moments": tf.nn.moments(x, [0]),
        "quantized": tf.quantize(x, 0.0, 1.0, tf.quint8),
        "map": tf.map_fn(lambda row: row * 2, x),
        "scan": tf.scan(lambda a, row: a + row, x),
        "while": tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y), [0, x]),
        "cond": tf.cond(tf.placeholder(tf.bool, []), lambda: x, lambda: tf.zeros([2, 3])),
        "array": tf.TensorArray(tf.float32, 3).unstack(tf.zeros([3, 2])).stack(),
        "array any": tf.TensorArray(tf.float32, ids[0], infer_shape=True).unstack(x).stack(),
        "array concat": tf.TensorArray(tf.float32, 3).unstack(tf.zeros([3, 2, 4])).concat(),
    }


def images(tf):
    image, batch = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.float32)
    known = tf.placeholder(tf.float32, [None, 8, 8, 3])
    i = tf.image
    return {
        "resize": i.resize_images(image, [4, 5]),
        "resize batch": i.resize_images(known, [4, 5]),
        "resize aspect": i.resize_images(known, [4, 5], preserve_aspect_ratio=True),
        "bilinear": i.resize_bilinear(known, [4, 5]),
        "nearest": i.resize_nearest_neighbor(known, tf.placeholder(tf.int32, [2])),
        "pad": i.resize_image_with_crop_or_pad(image, 4, 5),
        "pad batch": i.resize_image_with_pad(known, 4, 5),
        "central": i.central_crop(image, 0.5),
        "central batch": i.central_crop(known, 0.5),
        "flip": i.flip_left_right(image),
        "random flip": i.random_flip_left_right(image),
        "rot": i.rot90(known),
        "transpose": i.transpose_image(image),
        "brightness": i.random_brightness(image, 0.1),
        "contrast": i.random_contrast(image, 0.1, 0.2),
        "hue": i.random_hue(image, 0.1),
        "saturation": i.random_saturation(image, 0.1, 0.2),
        "standard": i.per_image_standardization(image),
        "grey": i.rgb_to_grayscale(known),
        "rgb": i.grayscale_to_rgb(tf.placeholder(tf.float32, [None, None, 1])),
        "hsv": i.rgb_to_hsv(image),
        "box": i.crop_to_bounding_box(known, 0, 0, 2, 3),
        "pad box": i.pad_to_bounding_box(known, 0, 0, 9, 9),
        "crops": i.crop_and_resize(known, tf.zeros([2, 4]), tf.zeros([2], tf.int32), [3, 3]),
        "glimpse": i.extract_glimpse(known, [2, 2], tf.zeros([1, 2])),
        "patches": i.extract_image_patches(
            known, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"
        ),
        "distorted": i.sample_distorted_bounding_box(
            [8, 8, 3], tf.zeros([1, 1, 4]), min_object_covered=0.1
        ),
        "suppressed": i.non_max_suppression(tf.zeros([5, 4]), tf.zeros([5]), 3),
        "boxes": i.draw_bounding_boxes(known, tf.zeros([1, 2, 4])),
        "type": i.convert_image_dtype(image, tf.uint8),
        "sobel": i.sobel_edges(known),
        "psnr": i.psnr(known, known, 1.0),
        "gradients": i.image_gradients(tf.zeros([2, 4, 4, 1])),
        "variation": i.total_variation(known),
        "unknown": batch,
    }


def networks(tf):
    known, any_ = tf.placeholder(tf.float32, [None, 8, 8, 3]), tf.placeholder(tf.float32)
    kernel = tf.zeros([3, 3, 3, 4])
    rows = tf.placeholder(tf.float32, [None, 5])
    labels = tf.placeholder(tf.int64, [None])
    steps = tf.placeholder(tf.float32, [None, None, 5])
    n = tf.nn
    return {
        "conv": n.conv2d(known, kernel, [1, 2, 2, 1], "SAME"),
        "conv any": n.conv2d(any_, kernel, [1, 1, 1, 1], "VALID"),
        "transposed": n.conv2d_transpose(
            known, tf.zeros([3, 3, 4, 3]), tf.stack([tf.shape(known)[0], 16, 16, 4]), [1, 2, 2, 1]
        ),
        "depthwise": n.depthwise_conv2d(known, kernel, [1, 1, 1, 1], "SAME"),
        "atrous": n.atrous_conv2d(known, kernel, 2, "VALID"),
        "convolution": n.convolution(known, kernel, "SAME", dilation_rate=[2, 2]),
        "pool": n.max_pool(known, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        "pool any": n.pool(known, [2, 2], "AVG", "VALID"),
        "fractional": n.fractional_max_pool(known, [1.0, 1.5, 1.5, 1.0]),
        "argmax": n.max_pool_with_argmax(known, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        "lrn": n.local_response_normalization(known),
        "dropout": n.dropout(rows, 0.5),
        "dropout any": n.dropout(any_, tf.placeholder(tf.float32)),
        "bias": n.bias_add(any_, tf.zeros([5])),
        "softmax": n.softmax(any_),
        "loss": n.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=rows),
        "loss v2": n.softmax_cross_entropy_with_logits_v2(labels=rows, logits=rows),
        "sigmoid": n.sigmoid_cross_entropy_with_logits(labels=rows, logits=rows),
        "lookup": n.embedding_lookup(tf.zeros([9, 4]), labels),
        "lookup parts": n.embedding_lookup([tf.zeros([5, 4]), tf.zeros([4, 4])], labels),
        "normalized": n.l2_normalize(rows, 1),
        "fused": n.fused_batch_norm(known, tf.ones([3]), tf.zeros([3])),
        "in top": n.in_top_k(rows, labels, 2),
        "ctc": n.ctc_loss(tf.sparse_placeholder(tf.int32), steps, tf.placeholder(tf.int32, [None])),
        "greedy": n.ctc_greedy_decoder(steps, tf.placeholder(tf.int32, [None])),
        "beam": n.ctc_beam_search_decoder(steps, tf.placeholder(tf.int32, [None])),
        "nce": n.nce_loss(tf.zeros([9, 5]), tf.zeros([9]), tf.zeros([2, 1], tf.int64), rows, 3, 9),
        "sampled": n.sampled_softmax_loss(
            tf.zeros([9, 5]), tf.zeros([9]), tf.placeholder(tf.int64, [None, 1]), rows, 3, 9
        ),
        "rnn": n.dynamic_rnn(n.rnn_cell.LSTMCell(4), steps, dtype=tf.float32),
        "both ways": n.bidirectional_dynamic_rnn(
            n.rnn_cell.GRUCell(4), n.rnn_cell.GRUCell(4), steps, dtype=tf.float32
        )[0],
        "dense": tf.layers.dense(rows, 3),
        "dense 3": tf.layers.dense(steps, 3),
        "flatten": tf.layers.flatten(known),
        "flatten any": tf.layers.flatten(tf.placeholder(tf.float32, [None, None, 3])),
        "layer norm": tf.layers.batch_normalization(known, training=True),
        "crf": tf.contrib.crf.crf_log_likelihood(
            steps, tf.placeholder(tf.int32, [None, None]), labels, tf.zeros([5, 5])
        )[0],
        "stft": tf.signal.stft(tf.placeholder(tf.float32, [None, 100]), 20, 10),
        "frames": tf.signal.frame(tf.placeholder(tf.float32, [None, 100]), 20, 10),
        "fft": tf.spectral.rfft(rows),
    }


def columns(tf):
    c = tf.feature_column
    spec = {
        "a": tf.sparse_placeholder(tf.string, [None, None]),
        "n": tf.placeholder(tf.float32, [None, 2]),
    }
    words = c.categorical_column_with_hash_bucket("a", 9)
    linear = c.linear_model(spec, [words, c.numeric_column("n", [2])])
    return {
        "input": c.input_layer(
            spec,
            [c.embedding_column(words, 4), c.numeric_column("n", [2]), c.indicator_column(words)],
        ),
        "linear": linear,
    }


def losses_and_metrics(tf):
    rows, any_ = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32)
    losses = tf.losses
    row = tf.placeholder(tf.float32, [None])
    none = losses.Reduction.NONE
    return {
        "mse": losses.mean_squared_error(any_, rows),
        "each": losses.mean_squared_error(rows, rows, reduction=none),
        "weighted": losses.absolute_difference(
            rows, rows, tf.placeholder(tf.float32), reduction=none
        ),
        "hinge": losses.hinge_loss(rows, rows, reduction=none),
        "accuracy": tf.metrics.accuracy(any_, any_),
        "mean": tf.metrics.mean(any_),
        "iou": tf.metrics.mean_iou(
            tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None]), 3
        ),
        "auc": tf.metrics.auc(tf.placeholder(tf.bool, [None]), row),
        "recall": tf.metrics.recall_at_thresholds(tf.placeholder(tf.bool, [None]), row, [0.3, 0.6]),
        "per class": tf.metrics.mean_per_class_accuracy(
            tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None]), 3
        ),
    }
