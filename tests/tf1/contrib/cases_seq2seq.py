"""Cases for `tf.contrib.seq2seq`."""

from parity import deep, values


def _target(tf):
    inputs = tf.constant(values([3, 4, 2], "target"), tf.float32)
    return inputs, tf.constant([4, 2, 0])


def _memory(tf):
    return tf.constant(values([3, 5, 6], "memory"), tf.float32), tf.constant([5, 3, 1])


def _decoded(tf, outputs, state, lengths, *more):
    loss = tf.reduce_sum(tf.square(outputs.rnn_output))
    gradients = [g for g in tf.gradients(loss, tf.trainable_variables()) if g is not None]
    return {
        "outputs": outputs.rnn_output,
        "ids": outputs.sample_id,
        "state": state,
        "lengths": lengths,
        "gradients": gradients,
        "more": list(more),
    }


def training(tf):
    seq2seq = tf.contrib.seq2seq
    inputs, lengths = _target(tf)
    helper = seq2seq.TrainingHelper(inputs, lengths)
    cell = tf.nn.rnn_cell.GRUCell(3)
    layer = tf.layers.Dense(5, use_bias=False, name="projection")
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), layer)
    return _decoded(tf, *seq2seq.dynamic_decode(decoder, impute_finished=True))


def training_time_major(tf):
    seq2seq = tf.contrib.seq2seq
    inputs, lengths = _target(tf)
    helper = seq2seq.TrainingHelper(tf.transpose(inputs, [1, 0, 2]), lengths, time_major=True)
    cell = tf.nn.rnn_cell.BasicLSTMCell(3)
    with tf.variable_scope("net"):
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
        made = seq2seq.dynamic_decode(
            decoder, output_time_major=True, maximum_iterations=3, scope="mine"
        )
    return _decoded(tf, *made)


def greedy(tf):
    seq2seq = tf.contrib.seq2seq
    embedding = tf.get_variable("embedding", [7, 2])
    helper = seq2seq.GreedyEmbeddingHelper(embedding, [1, 2, 5], 3)
    cell = tf.nn.rnn_cell.GRUCell(4)
    layer = tf.layers.Dense(7)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), layer)
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    return {"ids": outputs.sample_id, "outputs": outputs.rnn_output, "lengths": lengths}


def custom_and_inference_helpers(tf):
    seq2seq = tf.contrib.seq2seq
    start = tf.constant(values([3, 2], "start"), tf.float32)
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    helper = seq2seq.InferenceHelper(
        lambda outputs: outputs,
        [2],
        tf.float32,
        start,
        lambda ids: ids[:, 0] > 0.4,
        next_inputs_fn=lambda ids: 2.0 * ids,
    )
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    first, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4, scope="first")
    custom = seq2seq.CustomHelper(
        lambda: (tf.constant([False, False, True]), start),
        lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32),
        lambda time, outputs, state, sample_ids: (tf.equal(sample_ids, time), outputs, state),
    )
    decoder = seq2seq.BasicDecoder(tf.nn.rnn_cell.GRUCell(2), custom, tf.zeros([3, 2]))
    second, _, other = seq2seq.dynamic_decode(decoder, maximum_iterations=4, scope="second")
    return {
        "first": first.sample_id,
        "lengths": lengths,
        "second": second.sample_id,
        "other": other,
    }


def _attend(tf, mechanism, **kwargs):
    seq2seq = tf.contrib.seq2seq
    inputs, lengths = _target(tf)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), mechanism, **kwargs)
    helper = seq2seq.TrainingHelper(inputs, lengths)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder)
    more = [state.alignments, state.attention, state.time]
    if kwargs.get("alignment_history"):
        more.append(state.alignment_history.stack())
    return _decoded(tf, outputs, state.cell_state, lengths, *more)


def luong(tf):
    memory, lengths = _memory(tf)
    attention = tf.contrib.seq2seq.LuongAttention(4, memory, lengths)
    return _attend(tf, attention, attention_layer_size=3, alignment_history=True)


def luong_scaled(tf):
    memory, _ = _memory(tf)
    attention = tf.contrib.seq2seq.LuongAttention(4, memory, scale=True)
    return _attend(tf, attention, output_attention=False)


def bahdanau(tf):
    memory, lengths = _memory(tf)
    attention = tf.contrib.seq2seq.BahdanauAttention(5, memory, lengths, normalize=True)
    return _attend(tf, attention, attention_layer_size=3)


def two_mechanisms(tf):
    memory, lengths = _memory(tf)
    first = tf.contrib.seq2seq.BahdanauAttention(5, memory, lengths)
    second = tf.contrib.seq2seq.LuongAttention(4, memory, probability_fn=tf.sigmoid)
    return _attend(tf, [first, second], attention_layer_size=[3, 2])


def _beams(tf, cell, state, start=None, **kwargs):
    embedding = tf.constant(values([7, 4], "embedding"), tf.float32)
    decoder = tf.contrib.seq2seq.BeamSearchDecoder(
        cell,
        embedding,
        start_tokens=tf.fill([3], 1) if start is None else start,
        end_token=2,
        initial_state=state,
        beam_width=4,
        output_layer=tf.layers.Dense(7, name="words"),
        **kwargs,
    )
    outputs, state, counts = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    made = outputs.beam_search_decoder_output
    found = {"ids": outputs.predicted_ids, "counts": counts, "lengths": state.lengths}
    steps = {"scores": made.scores, "step_ids": made.predicted_ids, "parents": made.parent_ids}
    return {**found, **steps, "log_probs": state.log_probs, "finished": state.finished}, state


def beam_search(tf):
    cell = tf.nn.rnn_cell.GRUCell(5)
    start = tf.constant(values([3, 5], "state"), tf.float32)
    state = tf.contrib.seq2seq.tile_batch(start, 4)
    return _beams(tf, cell, state, length_penalty_weight=0.8)[0]


def beam_search_attends(tf):
    memory, lengths = tf.contrib.seq2seq.tile_batch(_memory(tf), 4)
    attention = tf.contrib.seq2seq.LuongAttention(4, memory, lengths)
    cell = tf.nn.rnn_cell.LSTMCell(4)
    cell = tf.contrib.seq2seq.AttentionWrapper(
        cell, attention, attention_layer_size=4, alignment_history=True
    )
    state = cell.zero_state(12, tf.float32)
    found, state = _beams(tf, cell, state, coverage_penalty_weight=0.3)
    return {**found, "attended": state.accumulated_attention_probs}


def beam_search_orders_the_alignments(tf):
    start = tf.placeholder_with_default([1, 1, 1], [None])
    memory, lengths = tf.contrib.seq2seq.tile_batch(_memory(tf), 4)
    memory = tf.placeholder_with_default(memory, [None, 5, 6])
    attention = tf.contrib.seq2seq.LuongAttention(4, memory, lengths)
    cell = tf.nn.rnn_cell.GRUCell(4)
    cell = tf.contrib.seq2seq.AttentionWrapper(cell, attention, alignment_history=True)
    found, state = _beams(tf, cell, cell.zero_state(tf.size(start) * 4, tf.float32), start)
    return {**found, "history": state.cell_state.alignment_history}


def gather_tree(tf):
    ids = tf.constant([[[1, 2, 3], [4, 5, 6]], [[7, 9, 8], [1, 9, 2]], [[3, 4, 5], [6, 7, 8]]])
    parents = tf.constant([[[0, 0, 0]] * 2, [[0, 0, 2], [1, 2, 0]], [[2, 1, 0], [0, 1, 2]]])
    found = tf.contrib.seq2seq.gather_tree(ids, parents, [3, 2], 9)
    return {"whole": found}


def hardmax(tf):
    return {"hardmax": tf.contrib.seq2seq.hardmax(_memory(tf)[0])}


def tile_batch(tf):
    memory, lengths = _memory(tf)
    tiled = tf.contrib.seq2seq.tile_batch({"memory": memory, "lengths": lengths}, 2)
    assert tiled["memory"].shape.as_list() == [6, 5, 6]
    return tiled


def sequence_loss(tf):
    logits = tf.constant(values([3, 4, 5], "logits"), tf.float32)
    targets = tf.constant([[0, 1, 2, 3], [4, 0, 1, 1], [2, 2, 0, 0]])
    weights = tf.constant([[1.0, 1.0, 2.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    loss = tf.contrib.seq2seq.sequence_loss
    ways = {
        "mean": {},
        "per_step": {"average_across_timesteps": False},
        "per_example": {"average_across_batch": False},
        "each": {"average_across_timesteps": False, "average_across_batch": False},
        "total": {
            "average_across_timesteps": False,
            "average_across_batch": False,
            "sum_over_timesteps": True,
            "sum_over_batch": True,
        },
        "total_per_step": {
            "average_across_timesteps": False,
            "average_across_batch": False,
            "sum_over_batch": True,
        },
        "mixed": {"average_across_batch": False, "sum_over_batch": True},
    }
    return {name: loss(logits, targets, weights, **how) for name, how in ways.items()}


def parts_of_attention(tf):
    wrapper = deep(tf, "seq2seq.python.ops.attention_wrapper")
    memory = tf.constant(values([2, 3, 4], "memory"), tf.float32)
    query = tf.constant(values([2, 4], "query"), tf.float32)
    score = tf.constant(values([2, 3], "score"), tf.float32)
    v, b = (tf.constant(values([4], name), tf.float32) for name in "vb")
    mask = tf.constant([[True, False, True], [True, True, False]])
    return {
        "luong": wrapper._luong_score(query, memory, None),
        "scaled": wrapper._luong_score(query, memory, tf.constant(2.0)),
        "bahdanau": wrapper._bahdanau_score(query, memory, v),
        "normalized": wrapper._bahdanau_score(query, memory, v, tf.constant(3.0), b),
        "all": wrapper._maybe_mask_score(score),
        "masked": wrapper._maybe_mask_score(score, [2, 3], score_mask_value=-5.0),
        "by_mask": wrapper._maybe_mask_score(score, None, mask, -5.0),
        "memory": wrapper._prepare_memory(memory, [1, 3]),
        "memories": list(wrapper._prepare_memory((memory, memory[..., None]), None, mask)),
    }


def attention_of_a_program(tf):
    wrapper = deep(tf, "seq2seq.python.ops.attention_wrapper")

    class Dot(wrapper._BaseAttentionMechanism):
        def __init__(self, units, memory, lengths):
            super(Dot, self).__init__(  # noqa: UP008 - also for Python 3.7, as programs say it
                query_layer=_projection(tf, units, "q"),
                memory_layer=_projection(tf, units, "m"),
                memory=memory,
                probability_fn=lambda score, before: tf.nn.softmax(score + before),
                memory_sequence_length=lengths,
                name="Dot",
            )

        def __call__(self, query, state):
            score = tf.reduce_sum(self.keys * self.query_layer(query)[:, None], 2)
            alignments = self._probability_fn(score, state)
            return alignments, state + alignments

    memory = tf.constant(values([2, 3, 4], "memory"), tf.float32)
    query = tf.constant(values([2, 5], "query"), tf.float32)
    mechanism = Dot(6, memory, [2, 3])
    state = mechanism.initial_state(2, tf.float32)
    layer = _projection(tf, 3, "a")
    first = wrapper._compute_attention(mechanism, query, state, None)
    return {
        "first": list(first),
        "second": list(wrapper._compute_attention(mechanism, query, first[2], layer)),
        "values": mechanism.values,
    }


def _projection(tf, units, name):
    return tf.layers.Dense(units, name=name, use_bias=False, dtype=tf.float32)


def monotonic(tf):
    attention = tf.contrib.seq2seq.monotonic_attention
    scores = tf.constant(values([3, 5], "scores"), tf.float32)
    p, first = tf.sigmoid(4.0 * scores), tf.one_hot([0, 0, 0], 5)
    found = {}
    for mode in ("recursive", "parallel", "hard"):
        chosen = tf.cast(scores > 0, tf.float32) if mode == "hard" else p
        once = attention(chosen, first, mode)
        twice = attention(chosen, once, mode)
        found[mode] = [once, twice]
        if mode != "hard":
            found[mode] += tf.gradients(tf.reduce_sum(twice * scores), scores)
    # As Python numbers, with no static shape, and where a product underflows.
    found["numbers"] = attention([[0.0, 1.0, 0.5]], [[1.0, 0.0, 0.0]], "parallel")
    free = tf.placeholder_with_default(p, [None, None])
    found["free"] = attention(free, tf.placeholder_with_default(first, [None, None]), "recursive")
    found["long"] = attention(tf.fill([1, 400], 0.5), tf.one_hot([0], 400), "parallel")[:, -20:]
    return found


def monotonic_modes(tf):
    seq2seq = tf.contrib.seq2seq
    try:
        seq2seq.monotonic_attention([[0.5]], [[1.0]], "soft")
    except ValueError as error:
        return {"error": tf.constant(str(error))}


def safe_cumprod(tf):
    x = tf.constant([[0.5, 0.0, 0.25, 2.0], [1.0, 1e-30, 1e-30, 0.5]])
    product = tf.contrib.seq2seq.safe_cumprod
    found = {
        "first": product(x),
        "axis": product(x, axis=1),
        "exclusive": product(x, 1, True),
        "reverse": product(x, axis=1, reverse=True, name="mine"),
        "double": product([0.5, 1e-300, 1e-300]),
        "half": tf.cast(product(tf.constant([0.5, 0.25], tf.float16)), tf.float32),
    }
    found["gradient"] = tf.gradients(found["axis"], x)
    return found


def bahdanau_monotonic(tf):
    memory, lengths = _memory(tf)
    attention = tf.contrib.seq2seq.BahdanauMonotonicAttention(
        5, memory, lengths, normalize=True, score_bias_init=-1.5
    )
    return _attend(tf, attention, attention_layer_size=3, alignment_history=True)


def bahdanau_monotonic_with_noise(tf):
    memory, _ = _memory(tf)
    attention = tf.contrib.seq2seq.BahdanauMonotonicAttention(
        5, memory, sigmoid_noise=1.0, sigmoid_noise_seed=7, mode="recursive"
    )
    query = tf.constant(values([3, 4], "queries"), tf.float32)
    # Not in a loop: its steps would draw their noise in any order.
    return dict(
        zip(("alignments", "state"), attention(query, attention.initial_state(3, query.dtype)))
    )


def luong_monotonic(tf):
    memory, lengths = _memory(tf)
    attention = tf.contrib.seq2seq.LuongMonotonicAttention(
        4, memory, lengths, scale=True, score_mask_value=-3.0
    )
    return _attend(tf, attention, attention_layer_size=3)


def luong_monotonic_hard(tf):
    memory, lengths = _memory(tf)
    attention = tf.contrib.seq2seq.LuongMonotonicAttention(
        4, memory, lengths, score_bias_init=-4.0, mode="hard"
    )
    query = tf.constant(values([3, 4], "queries") * 9, tf.float32)
    first, state = attention(query, attention.initial_state(3, tf.float32))
    second, state = attention(-query, state)
    return {"first": first, "second": second, "state": state}


def private_parts_of_monotonic(tf):
    wrapper = deep(tf, "seq2seq.python.ops.attention_wrapper")
    memory = tf.constant(values([2, 3, 4], "memory"), tf.float32)

    class Own(wrapper._BaseMonotonicAttentionMechanism):
        def __init__(self):
            super(Own, self).__init__(  # noqa: UP008 - also for Python 3.7, as programs say it
                query_layer=None,
                memory_layer=_projection(tf, 4, "m"),
                memory=memory,
                probability_fn=lambda score, before: wrapper._monotonic_probability_fn(
                    score, before, sigmoid_noise=0.0, mode="parallel"
                ),
            )

    own = Own()
    state = own.initial_state(2, tf.float32)
    score = tf.constant(values([2, 3], "score"), tf.float32)
    return {"state": state, "next": own._probability_fn(score, state)}
