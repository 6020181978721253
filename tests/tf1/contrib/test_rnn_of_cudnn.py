"""The layers of `tf.contrib.cudnn_rnn`: what cuDNN computed, and the checkpoints that it wrote.

TF 1.15 runs them on GPUs only. It says that its compatible cells compute the same from the same
checkpoint, so those, which are held against TF 1.15 in `cases_rnn.py`, are what is compared with.
The names and shapes are those that TF 1.15 gave such graphs.
"""

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy import emulate_tpu
from estimator2strategy.errors import UnsupportedError

cudnn = tf.contrib.cudnn_rnn
KINDS = {
    "CudnnLSTM": cudnn.CudnnCompatibleLSTMCell,
    "CudnnGRU": cudnn.CudnnCompatibleGRUCell,
    "CudnnRNNTanh": tf.nn.rnn_cell.BasicRNNCell,
    "CudnnRNNRelu": lambda units: tf.nn.rnn_cell.BasicRNNCell(units, tf.nn.relu),
}
SCOPES = {
    "CudnnLSTM": "cudnn_lstm",
    "CudnnGRU": "cudnn_gru",
    "CudnnRNNTanh": "cudnn_rnn_tanh",
    "CudnnRNNRelu": "cudnn_rnn_relu",
}
LAYERS, UNITS, STEPS, BATCH, COLUMNS = 2, 3, 5, 4, 2
LENGTHS = [5, 1, 3, 0]


def random(*shape):
    return np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32)


def layer_of(kind, direction="unidirectional", **options):
    start = tf.random_uniform_initializer(-1, 1, seed=3)
    make = getattr(cudnn, kind)
    initial = {"kernel_initializer": start, "bias_initializer": start}
    return make(LAYERS, UNITS, direction=direction, **initial, **options)


def saved(graph_of, folder):
    """The values of the tensors of `graph_of()`, with first weights, which are saved."""
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = graph_of()
        session.run(tf.global_variables_initializer())
        values = session.run(fetches)
        tf.train.Saver().save(session, str(folder / "model"))
    return values


def restored(graph_of, folder):
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = graph_of()
        tf.train.Saver().restore(session, str(folder / "model"))
        return session.run(fetches)


def by_cells(kind, direction, lengths):
    """The same network of compatible cells, in the scope of the layer: its outputs and states."""
    inputs = tf.constant(random(STEPS, BATCH, COLUMNS))
    cells = [[KINDS[kind](UNITS) for _ in range(LAYERS)] for _ in range(2)]
    with tf.variable_scope(SCOPES[kind]):
        if direction == "unidirectional":
            cell = tf.nn.rnn_cell.MultiRNNCell(cells[0])
            return tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32, time_major=True)
        outputs, forward, backward = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            *cells, inputs, sequence_length=lengths, dtype=tf.float32, time_major=True
        )
        return outputs, [state for pair in zip(forward, backward) for state in pair]


@pytest.mark.oldest
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["", "lengths"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_compatible_cells_compute_the_same_from_the_checkpoint_of_a_layer(
    kind, direction, lengths, tmp_path
):
    def by_layer():
        layer = layer_of(kind, direction)
        return layer(random(STEPS, BATCH, COLUMNS), sequence_lengths=lengths)

    outputs, states = saved(by_layer, tmp_path)
    expected, by_cell = restored(lambda: by_cells(kind, direction, lengths), tmp_path)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    # Of an LSTM's cells (c, h), of the layer (h, c).
    ends = [each if isinstance(each, tuple) else (each,) for each in by_cell]
    expected_states = [np.stack(each) for each in zip(*ends)][::-1]
    assert len(states) == len(expected_states)
    for state, expected_state in zip(states, expected_states):
        np.testing.assert_allclose(state, expected_state, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_restores_the_weights_of_compatible_cells(kind, tmp_path):
    expected, _ = saved(lambda: by_cells(kind, "bidirectional", None), tmp_path)
    with tf.Graph().as_default(), tf.Session() as session:
        layer = layer_of(kind, "bidirectional")
        outputs, _ = layer(random(STEPS, BATCH, COLUMNS))
        session.run(tf.global_variables_initializer())
        tf.train.Saver([layer.saveable]).restore(session, str(tmp_path / "model"))
        np.testing.assert_allclose(session.run(outputs), expected, atol=1e-6)


def test_a_checkpoint_has_the_names_of_tf_1_15(tmp_path):
    def trained():
        layer = cudnn.CudnnLSTM(2, 3, direction="bidirectional")
        outputs, _ = layer(random(5, 2, 4))
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(outputs))
        (kernel,) = tf.trainable_variables()
        assert kernel.name == "cudnn_lstm/opaque_kernel:0"
        assert layer.trainable_variables == [kernel]
        return outputs

    saved(trained, tmp_path)
    kernel = "cudnn_lstm/opaque_kernel"
    cells = [
        f"cudnn_lstm/stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{way}/"
        "cudnn_compatible_lstm_cell"
        for layer in (0, 1)
        for way in ("fw", "bw")
    ]
    size = [2 * 12 * (4 + 3) + 2 * 12 * (6 + 3) + 4 * 24]
    assert dict(tf.train.list_variables(str(tmp_path / "model"))) == {
        "beta1_power": [],
        "beta2_power": [],
        kernel: size,
        f"{kernel}/Adam": size,
        f"{kernel}/Adam_1": size,
        **{f"{cell}/kernel": [7 if "cell_0" in cell else 9, 12] for cell in cells},
        **{f"{cell}/bias": [12] for cell in cells},
    }


def test_a_layer_says_the_shapes_of_tf_1_15():
    with tf.Graph().as_default():
        layer = cudnn.CudnnLSTM(2, 3, direction="bidirectional")
        with pytest.raises(ValueError, match="has not been built"):
            layer.canonical_weight_shapes  # noqa: B018
        layer.build([None, None, 4])
        first = ([(3, 4)] * 4 + [(3, 3)] * 4) * 2
        assert layer.canonical_weight_shapes == first + ([(3, 6)] * 4 + [(3, 3)] * 4) * 2
        assert layer.canonical_bias_shapes == [[3]] * 32
        assert layer.state_shape(7) == ([4, 7, 3], [4, 7, 3])
        assert (layer.num_dirs, layer.input_size, layer.rnn_mode) == (2, 4, "lstm")
        # It was built outside of a scope of its own, and so are the cells that are equal to it.
        names = [spec.name for spec in layer.saveable.specs]
        assert names[0].startswith("stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/")


def test_batch_major_inputs_give_batch_major_outputs_and_states(tmp_path):
    steps, start = random(STEPS, BATCH, COLUMNS), random(LAYERS, BATCH, UNITS)

    def both():
        layer = layer_of("CudnnLSTM")
        first = layer(steps, (start, -start))
        swapped = (np.swapaxes(start, 0, 1), -np.swapaxes(start, 0, 1))
        return first, layer(np.swapaxes(steps, 0, 1), swapped, time_major=False)

    (outputs, states), (swapped, swapped_states) = saved(both, tmp_path)
    np.testing.assert_allclose(swapped, np.swapaxes(outputs, 0, 1), atol=1e-6)
    for state, other in zip(states, swapped_states):
        np.testing.assert_allclose(other, np.swapaxes(state, 0, 1), atol=1e-6)


def test_dropout_is_between_layers_and_in_training_alone(tmp_path):
    steps = random(STEPS, BATCH, COLUMNS)

    def three():
        layer = layer_of("CudnnGRU", dropout=0.5)
        tested = layer(steps, training=False)[0]
        without = cudnn.CudnnGRU(1, UNITS, dropout=0.5)
        return tested, layer(steps)[0], without(steps)[0] - without(steps, training=False)[0]

    tested, trained, of_one_layer = saved(three, tmp_path)
    assert np.abs(tested - trained).max() > 1e-3
    assert not of_one_layer.any()


@pytest.mark.parametrize("mode", ["skip_input", "auto_select"])
def test_a_first_layer_without_a_matrix_is_refused(mode):
    layer = cudnn.CudnnGRU(1, COLUMNS, input_mode=mode)
    with tf.Graph().as_default(), pytest.raises(UnsupportedError, match="linear_input"):
        layer(random(STEPS, BATCH, COLUMNS))


def test_what_is_no_choice_is_named():
    with pytest.raises(ValueError, match=r"Invalid direction: both.*'bidirectional'"):
        cudnn.CudnnGRU(1, 2, direction="both")
    with pytest.raises(TypeError, match="expecting tuple"), tf.Graph().as_default():
        cudnn.CudnnGRU(1, 2)(random(STEPS, BATCH, COLUMNS), initial_state=[0])


def classifier(features, labels, mode, params):
    outputs, _ = cudnn.CudnnLSTM(1, 4, direction="bidirectional")(features, time_major=False)
    logits = tf.layers.dense(outputs[:, -1], 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.05))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def sums(params):
    steps = random(64, 6, 2)
    data = tf.data.Dataset.from_tensor_slices((steps, steps.sum((1, 2))[:, None]))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


@pytest.mark.parametrize("cores", [pytest.param(None, marks=pytest.mark.slow), 2])
def test_an_estimator_trains_a_layer_and_goes_on_from_its_checkpoint(cores, tmp_path):
    if cores:
        emulate_tpu(num_cores=cores)

    def estimator():
        config = tf.contrib.tpu.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
        return tf.contrib.tpu.TPUEstimator(
            classifier, config=config, use_tpu=bool(cores), train_batch_size=16, eval_batch_size=16
        )

    estimator().train(sums, steps=30)
    before = estimator().evaluate(sums, steps=4)["loss"]
    estimator().train(sums, steps=60)
    after = estimator().evaluate(sums, steps=4)
    assert after["global_step"] == 90
    assert after["loss"] < before / 2
