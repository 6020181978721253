"""Cases for `tf.contrib.legacy_seq2seq`."""

from parity import values


def _sequence(tf, name, steps=3, width=4):
    return [tf.constant(values([2, width], name + str(i)), tf.float32) for i in range(steps)]


def decoder(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    state = cell.zero_state(2, tf.float32)
    outputs, last = tf.contrib.legacy_seq2seq.rnn_decoder(
        _sequence(tf, "inputs"), state, cell, scope="rnnlm"
    )
    return {"outputs": outputs, "last": list(last)}


def decoder_that_reads_its_outputs(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    with tf.variable_scope("rnn_decoder/loop_function"):
        tf.get_variable("twice", [4, 4])

    def read(output, step):
        return tf.matmul(output, tf.get_variable("twice", [4, 4])) + float(step)

    outputs, last = tf.contrib.legacy_seq2seq.rnn_decoder(
        _sequence(tf, "inputs"), cell.zero_state(2, tf.float32), cell, read
    )
    return {"outputs": outputs, "last": last}


def encoder_and_decoder(tf):
    outputs, last = tf.contrib.legacy_seq2seq.basic_rnn_seq2seq(
        _sequence(tf, "source"), _sequence(tf, "target"), tf.nn.rnn_cell.GRUCell(4)
    )
    return {"outputs": outputs, "last": last}


def losses(tf):
    logits = _sequence(tf, "logits", width=5)
    targets = [tf.constant([1, 4]), tf.constant([0, 2]), tf.constant([3, 3])]
    weights = [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0]), tf.constant([0.5, 0.0])]
    legacy = tf.contrib.legacy_seq2seq
    return {
        "each": legacy.sequence_loss_by_example(logits, targets, weights),
        "sums": legacy.sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps=False
        ),
        "mean": legacy.sequence_loss(logits, targets, weights),
        "sum": legacy.sequence_loss(logits, targets, weights, average_across_batch=False),
        "own": legacy.sequence_loss(
            logits,
            targets,
            weights,
            softmax_loss_function=lambda labels, logits: tf.to_float(labels) + logits[:, 0],
        ),
    }


def _symbols(tf, *steps):
    return [tf.constant(step) for step in steps]


def _source(tf):
    return _symbols(tf, [1, 3], [0, 2], [4, 4])


def _target(tf):
    return _symbols(tf, [0, 0], [2, 1])


def _both(made):
    outputs, state = made
    return {"outputs": outputs, "state": list(state) if isinstance(state, tuple) else state}


def attention(tf):
    states = tf.constant(values([2, 5, 3], "states"), tf.float32)
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    return _both(
        tf.contrib.legacy_seq2seq.attention_decoder(
            _sequence(tf, "inputs"),
            cell.zero_state(2, tf.float32),
            states,
            cell,
            output_size=6,
            num_heads=2,
            initial_state_attention=True,
        )
    )


def chatbot(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    legacy = tf.contrib.legacy_seq2seq
    return _both(
        legacy.embedding_attention_seq2seq(
            _source(tf), _target(tf), cell, 5, 4, 3, feed_previous=True
        )
    )


def chatbot_with_a_projection(tf):
    projection = (tf.get_variable("w", [4, 6]), tf.get_variable("b", [6]))
    cell = tf.nn.rnn_cell.GRUCell(4)
    legacy = tf.contrib.legacy_seq2seq
    made = legacy.embedding_attention_seq2seq(
        _source(tf), _target(tf), cell, 5, 6, 3, output_projection=projection, feed_previous=True
    )
    embedding = next(v for v in tf.trainable_variables() if "decoder/embedding" in v.name)
    loss = tf.add_n([tf.reduce_sum(output) for output in made[0]])
    slope = tf.convert_to_tensor(tf.gradients(loss, embedding)[0])
    return dict(_both(made), slope=slope)


def embedded(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    legacy = tf.contrib.legacy_seq2seq
    return _both(legacy.embedding_rnn_seq2seq(_source(tf), _target(tf), cell, 5, 4, 3))


def embedded_and_tied(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    legacy = tf.contrib.legacy_seq2seq
    return _both(
        legacy.embedding_tied_rnn_seq2seq(_source(tf), _target(tf), cell, 5, 3, feed_previous=True)
    )


def several_decoders(tf):
    cells = {name: tf.nn.rnn_cell.GRUCell(4) for name in ("de", "fr")}
    outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
        _source(tf),
        {"de": _target(tf), "fr": _target(tf)[:1]},
        tf.nn.rnn_cell.GRUCell(4),
        cells,
        5,
        {"de": 4, "fr": 3},
        2,
    )
    return {"de": outputs["de"], "fr": outputs["fr"], "last": states["fr"]}


def fed_by_a_tensor(tf):
    answers = tf.placeholder_with_default(True, [])
    cell = tf.nn.rnn_cell.GRUCell(4)
    legacy = tf.contrib.legacy_seq2seq
    return _both(
        legacy.embedding_rnn_seq2seq(_source(tf), _target(tf), cell, 5, 4, 3, feed_previous=answers)
    )


def buckets(tf):
    legacy = tf.contrib.legacy_seq2seq

    def model(source, target):
        cell = tf.nn.rnn_cell.GRUCell(4)
        return legacy.embedding_attention_seq2seq(source, target, cell, 5, 4, 3)

    weights = [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0])]
    given = (_source(tf), _target(tf), _target(tf), weights, [(2, 1), (3, 2)], model)
    outputs, losses = legacy.model_with_buckets(*given)
    return {"outputs": outputs[0] + outputs[1], "losses": losses}
