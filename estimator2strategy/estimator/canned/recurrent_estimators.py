"""Recurrent networks of TF 2: `RNNClassifier` and `RNNEstimator` of `tf.estimator.experimental`.

Example:

    words = tf.feature_column.sequence_categorical_column_with_hash_bucket("words", 1000)
    estimator = RNNClassifierV2(
        [tf.feature_column.embedding_column(words, 16)], units=[32], cell_type="lstm")
    estimator.train(input_fn)

Those of TF 1 are in tf1/contrib/estimator/changed_models.py: their network is another one.

Source: tensorflow_estimator 2.15 canned/rnn.py.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.canned import columns, construction
from estimator2strategy.estimator.canned.construction import (
    USE_DEFAULT,
    Arguments,
    CannedEstimator,
    ModelFn,
    canned,
)
from estimator2strategy.estimator.canned.optimizers import get_optimizer_instance_v2
from estimator2strategy.estimator.canned.recurrent_rules import RECURRENT_RULES, check_cells
from estimator2strategy.estimator.heads.sequential import (
    SequentialHeadWrapper,
    check_for_sequences,
)

tf1 = tf.compat.v1

_LEARNING_RATE = 0.05
_CLIP_NORM = 5.0


def _model_fn(head: Any, given: Arguments) -> ModelFn:
    cell_fn, units, cell_type = (given[name] for name in ("rnn_cell_fn", "units", "cell_type"))
    check_cells(cell_fn, units, cell_type is not USE_DEFAULT)
    sequence_columns = tuple(given["sequence_feature_columns"] or ())
    context_columns = tuple(given["context_feature_columns"] or ())
    sizes = units if isinstance(units, int) or units is None else tuple(units)
    kind = "simple_rnn" if cell_type is USE_DEFAULT else cell_type
    sequences = given["return_sequences"]

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        from estimator2strategy.estimator.canned import recurrent_network

        columns.check_features(features)
        layer = recurrent_network.recurrent_layer(sizes, kind, cell_fn, sequences)
        network = recurrent_network.RecurrentNetwork(
            layer, head.logits_dimension, sequence_columns, context_columns
        )
        training = mode == ModeKeys.TRAIN
        optimizer = _optimizer(given["optimizer"]) if training else None
        logits, mask = network(features, training)
        if sequences:
            features.setdefault(head.input_sequence_mask_key, mask)
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            optimizer=optimizer,
            logits=logits,
            update_ops=network.updates,
            trainable_variables=network.trainable_variables,
        )

    return model_fn


def _optimizer(given: Any) -> Any:
    by_name = isinstance(given, str)
    optimizer = get_optimizer_instance_v2(given, _LEARNING_RATE if by_name else None)
    if by_name:
        optimizer.clipnorm = _CLIP_NORM
    optimizer.iterations = tf1.train.get_or_create_global_step()
    return optimizer


def _of_classes(given: Arguments) -> tuple[Any, ...]:
    head = construction.classifier_v2(given)
    if given["return_sequences"]:
        head = SequentialHeadWrapper(head, given["sequence_mask"], given["weight_column"])
    return construction.estimator_arguments(given, _model_fn(head, given))


def _under_head(given: Arguments) -> tuple[Any, ...]:
    check_for_sequences(given["head"], given["return_sequences"])
    return construction.estimator_arguments(given, _model_fn(given["head"], given))


@canned("tf.estimator.experimental.RNNClassifier", _of_classes, rules=RECURRENT_RULES)
class RNNClassifierV2(CannedEstimator):
    """Classes of sequences, by a recurrent network: the output of each one's last step.

    Args:
        sequence_feature_columns: Numeric columns of sequences, and embedding or indicator columns
            of `tf.feature_column.sequence_categorical_column_with_...`.
        context_feature_columns: Dense columns, which every step of a sequence gets.
        units: The size of the layer, or the sizes of several.
        cell_type: "simple_rnn" (the default), "lstm", "gru", or a function of `units` that makes a
            cell of tf-keras.
        rnn_cell_fn: Makes the cell, in the place of `units` and `cell_type`.
        return_sequences: True for a class of each step.
        model_dir, config: As for `Estimator`.
        n_classes, weight_column, label_vocabulary, loss_reduction: As for `DNNClassifierV2`.
        optimizer: As for `DNNClassifierV2`. A name has a learning rate of 0.05, and clips each
            gradient to the norm 5.
        sequence_mask: With `return_sequences`: the name of the feature that is False at padding.

    Raises:
        ValueError: An argument is not as above; while training, that features are no dict.
    """


@canned("tf.estimator.experimental.RNNEstimator", _under_head, rules=RECURRENT_RULES)
class RNNEstimatorV2(CannedEstimator):
    """A recurrent network under any head.

    Args:
        head: A head of `tf.estimator`.
        return_sequences: True for logits of all steps, which a `SequentialHeadWrapper` takes.

    The other arguments are those of `RNNClassifierV2`.
    """
