"""Models of sequences: recurrent, attending and of strings."""

import functools

from shared import arrays, classified, records, texts


def recurrent(tf, cell="LSTMCell", form="dynamic"):
    x, n, y = texts(tf)
    made = functools.partial(getattr(tf.nn.rnn_cell, cell), 8)
    net = tf.nn.embedding_lookup(tf.get_variable("words", [50, 6]), x)
    if form == "dynamic":
        outputs, _ = tf.nn.dynamic_rnn(made(), net, n, dtype=tf.float32)
        last = tf.gather_nd(outputs, tf.stack([tf.range(tf.shape(n)[0]), n - 1], 1))
    elif form == "time_major":
        net = tf.transpose(net, [1, 0, 2])
        outputs, _ = tf.nn.dynamic_rnn(made(), net, dtype=tf.float32, time_major=True)
        last = outputs[-1]
    elif form == "both_ways":
        outputs, _ = tf.nn.bidirectional_dynamic_rnn(made(), made(), net, n, dtype=tf.float32)
        last = tf.reduce_max(tf.concat(outputs, 2), 1)
    elif form == "static":
        outputs, _ = tf.nn.static_rnn(made(), tf.unstack(net, axis=1), dtype=tf.float32)
        last = outputs[-1]
    else:
        cells = [tf.nn.rnn_cell.DropoutWrapper(made(), 0.5) for _ in range(2)]
        cells = tf.nn.rnn_cell.MultiRNNCell(cells)
        zero = cells.zero_state(tf.shape(x)[0], tf.float32)
        outputs, _ = tf.nn.dynamic_rnn(cells, net, n, zero)
        last = tf.reduce_mean(outputs, 1)
    return classified(tf, y, last)


def language_model(tf):
    x, n, _ = texts(tf)
    words = tf.get_variable("words", [50, 8])
    cell = tf.nn.rnn_cell.BasicLSTMCell(8)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(words, x), n, dtype=tf.float32)
    logits = tf.tensordot(outputs, words, [[2], [1]])
    mask = tf.sequence_mask(n, tf.shape(x)[1], tf.float32)
    return tf.contrib.seq2seq.sequence_loss(logits, x, mask)


def translated(tf, beam=False):
    x, n, _ = texts(tf)
    seq2seq, words = tf.contrib.seq2seq, tf.get_variable("words", [50, 8])
    net = tf.nn.embedding_lookup(words, x)
    encoded, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(8), net, n, dtype=tf.float32)
    size = tf.shape(x)[0]
    if beam:
        encoded, n, state = (seq2seq.tile_batch(part, 3) for part in (encoded, n, state))
    attention = seq2seq.LuongAttention(8, encoded, n)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(8), attention, 8)
    start = cell.zero_state(size * (3 if beam else 1), tf.float32).clone(cell_state=state)
    output = tf.layers.Dense(50, use_bias=False)
    if beam:
        decoder = seq2seq.BeamSearchDecoder(
            cell, words, tf.fill([size], 1), 2, start, 3, output_layer=output
        )
        made, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
        return made.predicted_ids
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(net, n), start, output)
    made, _, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    mask = tf.sequence_mask(lengths, dtype=tf.float32)
    return seq2seq.sequence_loss(made.rnn_output, x[:, : tf.shape(mask)[1]], mask)


def speech(tf):
    spec = {"x": tf.FixedLenFeature([20, 4], tf.float32), "y": tf.VarLenFeature(tf.int64)}
    batch = records(tf, spec)
    logits = tf.layers.dense(batch["x"], 6)
    n = tf.fill([tf.shape(logits)[0]], 20)
    labels = tf.cast(batch["y"], tf.int32)
    by_time = tf.transpose(logits, [1, 0, 2])
    found, _ = tf.nn.ctc_greedy_decoder(by_time, n)
    tf.metrics.mean(tf.edit_distance(tf.cast(found[0], tf.int32), labels))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, by_time, n))


def tagged(tf):
    batch = arrays(tf, x=("int32", [9]), n=("int32", []), y=("int32", [9]))
    net = tf.nn.embedding_lookup(tf.get_variable("words", [50, 5]), batch["x"])
    scores = tf.layers.conv1d(net, 4, 3, padding="same")
    likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, batch["y"], batch["n"])
    tags, _ = tf.contrib.crf.crf_decode(scores, transitions, batch["n"])
    tf.metrics.accuracy(batch["y"], tags, tf.sequence_mask(batch["n"], 9))
    return -tf.reduce_mean(likelihood)


def text_convolutions(tf):
    x, _, y = texts(tf)
    net = tf.expand_dims(tf.nn.embedding_lookup(tf.get_variable("words", [50, 6]), x), -1)
    pooled = []
    for size in (2, 3):
        weights = tf.get_variable("weights" + str(size), [size, 6, 1, 4])
        found = tf.nn.relu(tf.nn.conv2d(net, weights, [1, 1, 1, 1], "VALID"))
        pooled.append(tf.nn.max_pool(found, [1, 13 - size, 1, 1], [1, 1, 1, 1], "VALID"))
    return classified(tf, y, tf.nn.dropout(tf.reshape(tf.concat(pooled, 3), [-1, 8]), 0.5))


def attended(tf):
    x, n, y = texts(tf)
    net = tf.nn.embedding_lookup(tf.get_variable("words", [50, 8]), x)
    heads = tf.concat(tf.split(net, 2, axis=2), 0)
    scores = tf.matmul(heads, heads, transpose_b=True) / 2.0
    mask = tf.tile(tf.sequence_mask(n, 12, tf.float32)[:, tf.newaxis], [2, 1, 1])
    weights = tf.nn.softmax(scores + (1.0 - mask) * -1e9)
    net += tf.concat(tf.split(tf.matmul(weights, heads), 2, axis=0), 2)
    mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
    net = (net - mean) * tf.rsqrt(variance + 1e-6)
    return classified(tf, y, tf.squeeze(net[:, 0:1], axis=1))


def remembered(tf):
    batch = arrays(tf, x=("int32", [5, 7]), q=("int32", [7]), y=("int64", []))
    words = tf.get_variable("words", [50, 6])
    memory = tf.reduce_sum(tf.nn.embedding_lookup(words, batch["x"]), 2)
    question = tf.reduce_sum(tf.nn.embedding_lookup(words, batch["q"]), 1)
    for _ in range(2):
        weights = tf.nn.softmax(tf.einsum("bmd,bd->bm", memory, question))
        question += tf.reduce_sum(memory * tf.expand_dims(weights, -1), 1)
    return classified(tf, batch["y"], question)


def looked_up(tf):
    text = arrays(tf, x=("S20", []), y=("int64", []))
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b", "c"], num_oov_buckets=2)
    words = tf.string_split(text["x"])
    ids = tf.SparseTensor(words.indices, table.lookup(words.values), words.dense_shape)
    dense = tf.sparse_tensor_to_dense(ids, default_value=-1)
    net = tf.nn.embedding_lookup_sparse(
        tf.get_variable("words", [5, 4]), ids, None, combiner="mean"
    )
    return classified(tf, text["y"], net) + tf.reduce_mean(tf.cast(dense, tf.float32))
