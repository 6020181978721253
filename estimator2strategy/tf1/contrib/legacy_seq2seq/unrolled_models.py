"""Models of `tf.contrib.legacy_seq2seq`: embeddings, an encoder, and a decoder with attention.

Sequences are lists with one tensor for each step. `feed_previous` says if a decoder reads its own
outputs, as it does when it answers: True, False, or a scalar tensor.

Source: TF 1.15, `tensorflow/contrib/legacy_seq2seq/python/ops/seq2seq.py`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib.legacy_seq2seq.unrolled_decoders import (
    rnn_decoder,
    sequence_loss,
    sequence_loss_by_example,
)
from estimator2strategy.tf1.contrib.rnn.around_cells import (
    EmbeddingWrapper,
    OutputProjectionWrapper,
    _linear,
)

tf1 = tf.compat.v1

_Outputs = tuple[list[Any], Any]


def extract_argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, Any], Any]:
    """A loop function: the embedding of the symbol that an output finds most likely."""

    def loop_function(prev: Any, _: Any) -> Any:
        if output_projection is not None:
            prev = tf1.nn.xw_plus_b(prev, *output_projection)
        embedded = tf1.nn.embedding_lookup(embedding, tf.argmax(prev, 1))
        return embedded if update_embedding else tf.stop_gradient(embedded)

    return loop_function


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> _Outputs:
    """`rnn_decoder` that looks at all states of an encoder in each step (arXiv:1412.7449).

    Args:
        decoder_inputs, initial_state, cell, loop_function, scope: As for `rnn_decoder`.
        attention_states: [batch, steps, size].
        output_size: Of an output; that of the cell by default.
        num_heads: Times that a step looks.
        dtype: Of the variables.
        initial_state_attention: True if the first step has looked already.

    Raises:
        ValueError: There are no inputs or no heads, or the size is not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.shape[-1:].num_elements() is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    size = output_size or cell.output_size
    with tf1.variable_scope(scope or "attention_decoder", dtype=dtype) as inside:
        look = _attention(attention_states, num_heads, inside.dtype)
        state = initial_state
        outputs: list[Any] = []
        batch = tf.shape(decoder_inputs[0])[0]
        depth = attention_states.shape[-1:].num_elements()
        seen = [tf.zeros([batch, depth], inside.dtype) for _ in range(num_heads)]
        if initial_state_attention:
            seen = look(initial_state)
        for step, given in enumerate(decoder_inputs):
            taken = given
            if step:
                tf1.get_variable_scope().reuse_variables()
            if loop_function is not None and outputs:
                with tf1.variable_scope("loop_function", reuse=True):
                    taken = loop_function(outputs[-1], step)
            columns = taken.shape[-1:].num_elements()
            if columns is None:
                raise ValueError(f"Could not infer input size from input: {taken.name}")
            joined = [tf.cast(part, inside.dtype) for part in (taken, *seen)]
            output, state = cell(_linear(joined, columns, True), state)
            again = True if step == 0 and initial_state_attention else None
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=again):
                seen = look(state)
            with tf1.variable_scope("AttnOutputProjection"):
                outputs.append(_linear([tf.cast(output, inside.dtype), *seen], size, True))
    return outputs, state


def _attention(states: Any, num_heads: int, dtype: Any) -> Callable[[Any], list[Any]]:
    """The function of a query that looks at `states` [batch, steps, size], once for each head."""
    depth = states.shape[-1:].num_elements()
    features, weights = [], []
    for head in range(num_heads):
        kernel = tf1.get_variable(f"AttnW_{head}", [1, 1, depth, depth], dtype)
        features.append(tf1.nn.conv2d(states[:, :, None], kernel, [1, 1, 1, 1], "SAME"))
        weights.append(tf1.get_variable(f"AttnV_{head}", [depth], dtype))

    def look(query: Any) -> list[Any]:
        outputs = []
        query = tf.concat(tf.nest.flatten(query), 1)
        for head in range(num_heads):
            with tf1.variable_scope(f"Attention_{head}"):
                asked = tf.cast(_linear(query, depth, True), dtype)[:, None, None]
                hidden = tf.tanh(features[head] + asked)
                score = tf.reduce_sum(weights[head] * hidden, [2, 3])
                mask = tf.cast(tf.nn.softmax(tf.cast(score, tf.float32)), dtype)
                outputs.append(tf.reduce_sum(mask[..., None] * states, 1))
        return outputs

    return look


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> _Outputs:
    """`rnn_decoder` of symbols, int32 [batch] for each step.

    Args:
        output_projection: (weights, biases) from outputs to symbols; None: outputs are scores.
        update_embedding_for_previous: True if symbols that were read train the embedding.
    """
    with tf1.variable_scope(scope or "embedding_rnn_decoder"):
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size])
        loop = extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        embedded = [tf1.nn.embedding_lookup(embedding, symbols) for symbols in decoder_inputs]
        return rnn_decoder(embedded, initial_state, cell, loop if feed_previous else None)


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> _Outputs:
    """`attention_decoder` of symbols; the other arguments are those of `embedding_rnn_decoder`."""
    with tf1.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size])
        loop = extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [tf1.nn.embedding_lookup(embedding, symbols) for symbols in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            loop if feed_previous else None,
            initial_state_attention=initial_state_attention,
        )


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> _Outputs:
    """`basic_rnn_seq2seq` whose encoder and decoder have the same variables."""
    with tf1.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = tf1.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        tf1.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def _fed(feed_previous: Any, decode: Callable[[bool, bool], _Outputs]) -> _Outputs:
    """The result of `decode(feed_previous, update_embedding)`; a tensor chooses one of two."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)
    made: dict[bool, _Outputs] = {}

    def branch(fed: bool) -> list[Any]:
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=None if fed else True):
            made[fed] = decode(fed, False)
            return cast(list[Any], tf.nest.flatten(made[fed]))

    flat = tf1.cond(feed_previous, lambda: branch(True), lambda: branch(False))
    return cast(_Outputs, tf.nest.pack_sequence_as(made[True], flat))


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> _Outputs:
    """Symbols encoded, and decoded by `embedding_rnn_decoder`."""
    with tf1.variable_scope(scope or "embedding_rnn_seq2seq", dtype=dtype) as inside:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=inside.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(fed: bool, update: bool) -> _Outputs:
            symbols = (num_decoder_symbols, embedding_size, output_projection)
            return embedding_rnn_decoder(decoder_inputs, state, cell, *symbols, fed, update)

        return _fed(feed_previous, decode)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> _Outputs:
    """`embedding_rnn_seq2seq` whose encoder and decoder have the same variables."""
    with tf1.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as inside:
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size], inside.dtype)
        sources, targets = (
            [tf1.nn.embedding_lookup(embedding, symbols) for symbols in inputs]
            for inputs in (encoder_inputs, decoder_inputs)
        )
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(fed: bool, update: bool) -> _Outputs:
            loop = extract_argmax_and_embed(embedding, output_projection, update)
            return tied_rnn_seq2seq(sources, targets, cell, loop if fed else None, inside.dtype)

        return _fed(feed_previous, decode)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> _Outputs:
    """Symbols encoded, and decoded by `embedding_attention_decoder`."""
    with tf1.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as inside:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=inside.dtype)
        states = tf.stack([tf.reshape(o, [-1, cell.output_size]) for o in outputs], 1)
        size = None
        if output_projection is None:
            cell, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(fed: bool, update: bool) -> _Outputs:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                size,
                output_projection,
                fed,
                update,
                initial_state_attention=initial_state_attention,
            )

        return _fed(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[str, Sequence[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`embedding_rnn_seq2seq` with several decoders; outputs and states by their names.

    Raises:
        ValueError: Cells and inputs have different names.
    """
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decodre_inputs_dict")
    outputs, states = {}, {}
    with tf1.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as inside:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=inside.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with tf1.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(
                    fed: bool, _: bool, inputs: Any = inputs, cell: Any = cell, n: int = symbols
                ) -> _Outputs:
                    return embedding_rnn_decoder(
                        inputs, state, cell, n, embedding_size, feed_previous=fed
                    )

                outputs[name], states[name] = _fed(feed_previous, decode)
    return outputs, states


def model_with_buckets(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    targets: list[Any],
    weights: list[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[list[Any], list[Any]], _Outputs],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """A model for each pair of lengths, all with the same variables.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: Lists as long as the longest bucket.
        buckets: (encoder length, decoder length), the longest last.
        seq2seq: Makes a model of encoder inputs and decoder inputs.
        softmax_loss_function: As for `sequence_loss`.
        per_example_loss: True for a loss of each example.
        name: Of the name scope.

    Returns:
        Outputs and losses, one for each bucket.

    Raises:
        ValueError: A list is too short.
    """
    longest = buckets[-1]
    for what, given, length in (
        ("encoder_inputs", encoder_inputs, longest[0]),
        ("targets", targets, longest[1]),
        ("weights", weights, longest[1]),
    ):
        if len(given) < length:
            raise ValueError(
                f"Length of {what} ({len(given)}) must be at least that of last bucket ({length})."
            )
    loss: Any = sequence_loss_by_example if per_example_loss else sequence_loss
    loss = functools.partial(loss, softmax_loss_function=softmax_loss_function)
    outputs, losses = [], []
    everything = [*encoder_inputs, *decoder_inputs, *targets, *weights]
    with tf1.name_scope(name, "model_with_buckets", everything):
        for number, (source, target) in enumerate(buckets):
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True if number else None):
                made, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(made)
                wanted, parts = targets[:target], weights[:target]
                losses.append(loss(made, wanted, parts))
    return outputs, losses
