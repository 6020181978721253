"""The outputs of a recurrent network that count: the last ones of sequences, or all but padding.

Sources: tensorflow_estimator 1.15 contrib/estimator/python/estimator/rnn.py, `tf.contrib.learn`
rnn_common.py and dynamic_rnn_estimator.py, TF 1.15.
"""

from __future__ import annotations

import tensorflow as tf


def select_last_activations(
    activations: tf.Tensor, sequence_lengths: tf.Tensor | None
) -> tf.Tensor:
    """The outputs of the last step of each sequence.

    Args:
        activations: [batch, longest, units].
        sequence_lengths: Of the sequences, integers [batch]; None where none is padded.

    Returns:
        [batch, units].
    """
    with tf.name_scope("select_last_activations"):
        batch, longest, units = tf.unstack(tf.shape(activations, out_type=tf.int64))
        lengths = longest if sequence_lengths is None else tf.cast(sequence_lengths, tf.int64)
        last = tf.range(batch) * longest + lengths - 1
        chosen = tf.gather(tf.reshape(activations, [batch * longest, units]), last)
        chosen.set_shape([activations.shape[0], activations.shape[2]])
        return chosen


def mask_activations_and_labels(
    activations: tf.Tensor, labels: tf.Tensor, sequence_lengths: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The outputs and the labels of all steps that are no padding, one after the other.

    Args:
        activations: [batch, longest, units].
        labels: [batch, longest].
        sequence_lengths: Of the sequences, integers [batch]; None where none is padded.

    Returns:
        [steps, units] and [steps].
    """
    with tf.name_scope("mask_activations_and_labels"):
        batch, longest = tf.unstack(tf.shape(labels)[:2])
        if sequence_lengths is None:
            steps = batch * longest
            return tf.reshape(activations, [steps, -1]), tf.reshape(labels, [steps])
        mask = tf.sequence_mask(sequence_lengths, longest)
        return tf.boolean_mask(activations, mask), tf.boolean_mask(labels, mask)
