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
