"""Cases for `tf.contrib.rnn`."""

import importlib

from parity import values


def _steps(tf):
    """[time, batch, size]"""
    return tf.constant(values([4, 3, 2], "steps"), tf.float32), tf.constant([4, 2, 0])


def _gradients(tf, outputs):
    return tf.gradients(tf.reduce_sum(tf.square(outputs)), tf.trainable_variables())


def lstm_block_fused_cell(tf):
    steps, lengths = _steps(tf)
    forward = tf.contrib.rnn.LSTMBlockFusedCell(5)
    backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(5))
    with tf.variable_scope("bi"):
        first, state = forward(steps, dtype=tf.float32, sequence_length=lengths)
        second, other = backward(steps, dtype=tf.float32, sequence_length=lengths)
    outputs = tf.concat([first, second], -1)
    return {
        "outputs": outputs,
        "state": state,
        "other": other,
        "gradients": _gradients(tf, outputs),
    }


def lstm_block_fused_cell_with_peepholes(tf):
    steps, _ = _steps(tf)
    cell = tf.contrib.rnn.LSTMBlockFusedCell(3, 0.5, cell_clip=0.2, use_peephole=True, name="mine")
    start = (tf.ones([3, 3]), tf.zeros([3, 3]))
    outputs, state = cell(steps, initial_state=start)
    again, _ = tf.contrib.rnn.TimeReversedFusedRNN(cell)(steps, dtype=tf.float32)
    return {"outputs": outputs, "state": state, "again": again}


def lstm_block_cell(tf):
    steps, lengths = _steps(tf)
    cell = tf.contrib.rnn.LSTMBlockCell(4, use_peephole=True)
    outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32, time_major=True)
    return {"outputs": outputs, "state": state, "gradients": _gradients(tf, outputs)}


def layer_norm_lstm(tf):
    steps, lengths = _steps(tf)
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(3, norm_gain=0.9, norm_shift=0.1)
    with tf.variable_scope("net"):
        outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32, time_major=True)
    return {"outputs": outputs, "state": state}


def lstm_without_layer_norm(tf):
    steps, _ = _steps(tf)
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(3, layer_norm=False, activation=tf.nn.relu)
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(steps), dtype=tf.float32)
    return {"outputs": outputs}


def cells_of_tf_nn(tf):
    steps, lengths = _steps(tf)
    rnn = tf.contrib.rnn
    cell = rnn.MultiRNNCell(
        [
            rnn.DropoutWrapper(rnn.BasicLSTMCell(3), output_keep_prob=1.0),
            rnn.GRUCell(2),
            rnn.ResidualWrapper(rnn.BasicRNNCell(2)),
            rnn.LSTMCell(4, num_proj=2, use_peepholes=True),
        ]
    )
    outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32, time_major=True)
    last = rnn.LSTMStateTuple(state[0].c, state[0].h)
    return {"outputs": outputs, "last": last}


def stacks(tf):
    steps, lengths = _steps(tf)
    rnn = tf.contrib.rnn

    def cells():
        return [rnn.BasicLSTMCell(3), rnn.GRUCell(2)]

    outputs, fw, bw = rnn.stack_bidirectional_dynamic_rnn(
        cells(), cells(), steps, sequence_length=lengths, dtype=tf.float32, time_major=True
    )
    static, _, _ = rnn.stack_bidirectional_rnn(
        cells(), cells(), tf.unstack(steps), dtype=tf.float32, scope="static"
    )
    one, _, _ = rnn.static_bidirectional_rnn(
        rnn.GRUCell(2), rnn.GRUCell(2), tf.unstack(steps), dtype=tf.float32, scope="one"
    )
    return {"outputs": outputs, "fw": fw, "bw": bw, "static": static, "one": one}


def adaptor(tf):
    steps, lengths = _steps(tf)
    rnn = tf.contrib.rnn
    dynamic = rnn.FusedRNNCellAdaptor(rnn.BasicRNNCell(3), use_dynamic_rnn=True)
    static = rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(rnn.BasicRNNCell(3)))
    first, _ = dynamic(steps, dtype=tf.float32, sequence_length=lengths)
    second, _ = static(steps, dtype=tf.float32, scope="back")
    return {"first": first, "second": second, "transposed": rnn.transpose_batch_time(steps)}


def wrappers(tf):
    steps, lengths = _steps(tf)
    rnn = tf.contrib.rnn
    projected = rnn.InputProjectionWrapper(rnn.GRUCell(3), 2, activation=tf.tanh)
    cell = rnn.OutputProjectionWrapper(projected, 4)
    outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32, time_major=True)
    embedding = rnn.EmbeddingWrapper(rnn.BasicLSTMCell(2), 5, 3)
    ids = tf.constant([[0, 1, 4], [3, 3, 2]])
    embedded, _ = tf.nn.dynamic_rnn(embedding, ids[:, :, None], dtype=tf.float32, scope="ids")
    return {"outputs": outputs, "state": state, "embedded": embedded}


def linear(tf):
    try:
        core_rnn_cell = tf.contrib.rnn.python.ops.core_rnn_cell
    except AttributeError:  # TF 1.15 has it as a file alone
        core_rnn_cell = importlib.import_module("tensorflow.contrib.rnn.python.ops.core_rnn_cell")
    steps, _ = _steps(tf)
    with tf.variable_scope("one", initializer=tf.ones_initializer()):
        one = core_rnn_cell._linear([steps[0], steps[1]], 3, True, tf.constant_initializer(0.5))
    with tf.variable_scope("kept"):
        kept = core_rnn_cell._Linear(steps[0], 2, False)
        again = kept(steps[1]) + kept(steps[2])
    return {"one": one, "again": again}


def distributions(tf):
    tfd = tf.contrib.distributions
    normal, other = tfd.Normal([0.5, 1.0], 2.0), tfd.Normal([0.0, 3.0], [1.0, 1.5])
    chosen = tfd.Categorical(logits=[0.1, 0.5, -0.3])
    return {
        "log_prob": normal.log_prob([1.0, 2.0]),
        "divergence": tfd.kl_divergence(normal, other),
        "entropy": chosen.entropy(),
    }


def _unrolled(tf, cell, steps):
    with tf.variable_scope("net"):
        outputs, state = tf.nn.dynamic_rnn(cell, steps, dtype=tf.float32, time_major=True)
    gradients = [g for g in _gradients(tf, outputs) if g is not None]
    return {"outputs": outputs, "state": state, "gradients": gradients}


def attention_cell_wrapper(tf):
    cell = tf.contrib.rnn.AttentionCellWrapper(tf.nn.rnn_cell.LSTMCell(3), 2, attn_vec_size=4)
    return _unrolled(tf, cell, _steps(tf)[0])


def attention_cell_wrapper_of_one_tensor(tf):
    cell = tf.contrib.rnn.AttentionCellWrapper(
        tf.nn.rnn_cell.GRUCell(3), 2, attn_size=5, input_size=4, state_is_tuple=False
    )
    return _unrolled(tf, cell, _steps(tf)[0])


def highway_wrapper(tf):
    cells = [tf.contrib.rnn.HighwayWrapper(tf.nn.rnn_cell.GRUCell(2), c) for c in (True, False)]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), _steps(tf)[0])


def conv_lstm_cells(tf):
    images = tf.constant(values([3, 2, 4, 3, 2], "images"), tf.float32)
    flat = tf.contrib.rnn.Conv2DLSTMCell(
        input_shape=[4, 3, 2], output_channels=2, kernel_shape=[3, 2]
    )
    skipping = tf.contrib.rnn.ConvLSTMCell(
        1, [4, 6], 3, [2], use_bias=False, skip_connection=False, forget_bias=0.5
    )
    rows = tf.reshape(images, [3, 2, 4, 6])
    return [_unrolled(tf, flat, images), _unrolled(tf, skipping, rows)]


def nas_cell(tf):
    cell = tf.contrib.rnn.NASCell(4, num_proj=3, use_bias=True)
    return _unrolled(tf, cell, _steps(tf)[0])


def ugrnn_cell(tf):
    return _unrolled(tf, tf.contrib.rnn.UGRNNCell(3), _steps(tf)[0])


def vector_cells(tf):
    rnn, steps = tf.contrib.rnn, _steps(tf)[0]
    cells = [
        rnn.SRUCell(3),
        rnn.IndRNNCell(3, activation=tf.nn.relu),
        rnn.IndyGRUCell(2, bias_initializer=tf.constant_initializer(0.5)),
        rnn.IndyLSTMCell(3, forget_bias=0.5, name="mine"),
    ]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)


def gru_block_cells(tf):
    rnn, steps = tf.contrib.rnn, _steps(tf)[0]
    cells = [rnn.GRUBlockCell(3), rnn.GRUBlockCellV2(cell_size=2)]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)


def cells_like_those_of_cudnn(tf):
    cudnn, steps = tf.contrib.cudnn_rnn, _steps(tf)[0]
    gru = cudnn.CudnnCompatibleGRUCell(2, kernel_initializer=tf.ones_initializer())
    cells = [cudnn.CudnnCompatibleLSTMCell(3), gru, cudnn.CudnnCompatibleGRUCell(3)]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)


def coupled_lstm(tf):
    rnn, steps = tf.contrib.rnn, _steps(tf)[0]
    cells = [
        rnn.CoupledInputForgetGateLSTMCell(3, use_peepholes=True, num_unit_shards=2),
        rnn.CoupledInputForgetGateLSTMCell(
            4, num_proj=2, proj_clip=0.1, layer_norm=True, norm_gain=0.9, forget_bias=0.5
        ),
    ]
    flat = rnn.CoupledInputForgetGateLSTMCell(2, num_proj=3, state_is_tuple=False)
    with tf.variable_scope("flat"):
        one = _unrolled(tf, flat, steps)
    return [one, _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)]


def lstm_in_groups(tf):
    rnn, steps = tf.contrib.rnn, _steps(tf)[0]
    cells = [rnn.GLSTMCell(4, number_of_groups=2), rnn.GLSTMCell(6, None, 4, 2, 0.5, tf.nn.relu)]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)


def phased_lstm(tf):
    steps, _ = _steps(tf)
    times = tf.constant(10 * values([4, 3, 1], "times") + 20, tf.float64)
    runs = []
    for peepholes in (True, False):
        cell = tf.contrib.rnn.PhasedLSTMCell(3, peepholes, leak=0.01, trainable_ratio_on=peepholes)
        with tf.variable_scope(f"phased_{int(peepholes)}"):
            runs.append(_unrolled(tf, cell, (times, steps)))
    return runs


def intersection_rnn(tf):
    rnn, steps = tf.contrib.rnn, _steps(tf)[0]
    cells = [rnn.IntersectionRNNCell(3, num_in_proj=3), rnn.IntersectionRNNCell(3)]
    return _unrolled(tf, tf.nn.rnn_cell.MultiRNNCell(cells), steps)
