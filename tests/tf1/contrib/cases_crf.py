"""Cases for `tf.contrib.crf`."""

from parity import values


def _inputs(tf, steps=4):
    inputs = tf.constant(values([3, steps, 5], "inputs"), tf.float32)
    tags = tf.constant([[1, 0, 4, 2], [2, 2, 0, 0], [3, 0, 0, 0]], tf.int32)[:, :steps]
    lengths = tf.constant([steps, min(steps, 2), 0])
    return inputs, tags, lengths


def log_likelihood(tf):
    inputs, tags, lengths = _inputs(tf)
    with tf.variable_scope("loss"):
        likelihood, transitions = tf.contrib.crf.crf_log_likelihood(inputs, tags, lengths)
    gradient = tf.gradients(-tf.reduce_mean(likelihood), transitions)[0]
    return {"likelihood": likelihood, "gradient": gradient}


def log_likelihood_of_single_steps(tf):
    inputs, tags, lengths = _inputs(tf, steps=1)
    return {"likelihood": tf.contrib.crf.crf_log_likelihood(inputs, tags, lengths)[0]}


def log_likelihood_of_any_length(tf):
    inputs, tags, lengths = _inputs(tf, steps=1)
    inputs = tf.placeholder_with_default(inputs, [None, None, 5])
    tags = tf.placeholder_with_default(tf.cast(tags, tf.int64), [None, None])
    return {"likelihood": tf.contrib.crf.crf_log_likelihood(inputs, tags, lengths)[0]}


def scores(tf):
    inputs, tags, lengths = _inputs(tf)
    transitions = tf.constant(values([5, 5], "transitions"), tf.float32)
    crf = tf.contrib.crf
    bitmap = tf.one_hot(tags, 5, True, False) | tf.one_hot((tags + 1) % 5, 5, True, False)
    return {
        "unary": crf.crf_unary_score(tags, lengths, inputs),
        "binary": crf.crf_binary_score(tags, lengths, transitions),
        "sequence": crf.crf_sequence_score(inputs, tags, lengths, transitions),
        "multitag": crf.crf_multitag_sequence_score(inputs, bitmap, lengths, transitions),
        "log_norm": crf.crf_log_norm(inputs, lengths, transitions),
    }


def decode(tf):
    inputs, _, lengths = _inputs(tf)
    transitions = tf.get_variable("transitions", [5, 5])
    tags, score = tf.contrib.crf.crf_decode(inputs, transitions, lengths)
    return {"tags": tags, "score": score}


def decode_of_single_steps(tf):
    inputs, _, lengths = _inputs(tf, steps=1)
    inputs = tf.placeholder_with_default(inputs, [None, None, 5])
    transitions = tf.get_variable("transitions", [5, 5])
    tags, score = tf.contrib.crf.crf_decode(inputs, transitions, lengths)
    return {"tags": tags, "score": score}


def cells(tf):
    inputs, _, lengths = _inputs(tf)
    cell = tf.contrib.crf.CrfForwardRnnCell(tf.constant(values([5, 5], "t"), tf.float32))
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)
    return {"outputs": outputs, "state": state}


def viterbi(tf):
    score, transitions = values([6, 5], "score"), values([5, 5], "t")
    tags, best = tf.contrib.crf.viterbi_decode(score, transitions)
    return {"tags": tf.constant([int(t) for t in tags]), "score": tf.constant(best)}
