"""`RNNClassifier` and `RNNEstimator` of `tf.contrib.estimator`: a recurrent network on sequences.

Example:

    words = tf1.contrib.feature_column.sequence_categorical_column_with_hash_bucket("words", 1000)
    classifier = tf1.contrib.estimator.RNNClassifier(
        [tf.feature_column.embedding_column(words, 16)], num_units=[32], cell_type="lstm")

Source: tensorflow_estimator 1.15 contrib/estimator/python/estimator/rnn.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.estimator.canned import columns, construction
from estimator2strategy.estimator.canned.construction import (
    USE_DEFAULT,
    Arguments,
    CannedEstimator,
    ModelFn,
    canned,
)
from estimator2strategy.estimator.canned.networks import SMALL, partitioner
from estimator2strategy.estimator.canned.optimizers import get_optimizer_instance
from estimator2strategy.estimator.canned.recurrent_rules import RECURRENT_RULES, check_cells
from estimator2strategy.estimator.heads.sequential import check_for_sequences
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.tf1.contrib.estimator.model_changes import clip_gradients_by_norm
from estimator2strategy.tf1.contrib.feature_column import sequence_input_layer
from estimator2strategy.tf1.contrib.rnn.sequence_outputs import select_last_activations

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell

_LEARNING_RATE = 0.05
_CLIP_NORM = 5.0
_CELLS = {
    "basic_rnn": _cells.BasicRNNCell,
    "lstm": _cells.BasicLSTMCell,
    "gru": _cells.GRUCell,
}


@dataclasses.dataclass(frozen=True)
class _Rnn:
    """A recurrent network: the arguments of the Estimators that have one."""

    sequence_columns: Sequence[Any]
    context_columns: Sequence[Any]
    cell_of: Callable[[str], Any]
    return_sequences: bool = False
    input_partitioner: Callable[..., Any] | None = None

    @classmethod
    def from_arguments(cls, given: Arguments) -> _Rnn:
        """From what a constructor is given."""
        check_cells(given["rnn_cell_fn"], given["num_units"], given["cell_type"] is not USE_DEFAULT)
        kind = "basic_rnn" if given["cell_type"] is USE_DEFAULT else given["cell_type"]
        return cls(
            tuple(given["sequence_feature_columns"] or ()),
            tuple(given["context_feature_columns"] or ()),
            given["rnn_cell_fn"] or _stack(given["num_units"], kind),
            given.get("return_sequences", False),
            given["input_layer_partitioner"],
        )

    def logits(
        self, features: Mapping[str, Any], mode: str, units: int, config: RunConfig | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(float32 [batch, units], or [batch, longest, units]; bool [batch, longest], no padding).

        Variables are in the variable scope of the moment.
        """
        cut = self.input_partitioner or partitioner(config)
        with _v1.variable_scope("sequence_input_layer", partitioner=cut):
            inputs, lengths = sequence_input_layer(features, self.sequence_columns)
            _v1.summary.histogram("sequence_length", lengths)
            if self.context_columns:
                context = _v1.feature_column.input_layer(features, self.context_columns)
                inputs = columns.with_context(inputs, context)
        cell = self.cell_of(mode)
        outputs, _ = tf1.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)
        if not self.return_sequences:
            outputs = select_last_activations(outputs, lengths)
        with _v1.variable_scope("logits"):
            initial = _v1.glorot_uniform_initializer()
            logits = tf1.layers.dense(outputs, units, kernel_initializer=initial)
        return logits, tf.sequence_mask(lengths)


def _stack(num_units: Iterable[int], kind: Any) -> Callable[[str], Any]:
    """The function of the mode that makes the cells of all layers."""
    cell_class = _CELLS.get(kind, kind)
    if not isinstance(cell_class, type) or not issubclass(cell_class, _cells.RNNCell):
        raise ValueError(f"Supported cell types are {list(_CELLS)}; got {kind}")
    sizes = tuple(num_units)

    def cell_of(mode: str) -> Any:
        del mode
        cells = [cell_class(num_units=size) for size in sizes]
        return cells[0] if len(cells) == 1 else _cells.MultiRNNCell(cells)

    return cell_of


def _model_fn(head: Any, network: _Rnn, optimizer: Any) -> ModelFn:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        columns.check_features(features)
        instance = optimizer
        if not isinstance(instance, _v1.train.Optimizer):
            instance = get_optimizer_instance(instance, _LEARNING_RATE)
            instance = clip_gradients_by_norm(instance, _CLIP_NORM)
        with _v1.variable_scope("rnn", partitioner=partitioner(config, SMALL)):
            logits, mask = network.logits(features, mode, head.logits_dimension, config)

            def train_op_fn(loss: tf.Tensor) -> Any:
                return instance.minimize(loss, global_step=_v1.train.get_global_step())

            if network.return_sequences:
                features.setdefault(head.input_sequence_mask_key, mask)
            return head.create_estimator_spec(
                features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
            )

    return model_fn


def _of_classes(given: Arguments) -> tuple[Any, ...]:
    return _arguments(given, construction.classifier_v1(given))


def _under_head(given: Arguments) -> tuple[Any, ...]:
    check_for_sequences(given["head"], given["return_sequences"])
    return _arguments(given, given["head"])


def _arguments(given: Arguments, head: Any) -> tuple[Any, ...]:
    model_fn = _model_fn(head, _Rnn.from_arguments(given), given["optimizer"])
    return construction.estimator_arguments(given, model_fn)


@canned("tf.contrib.estimator.RNNClassifier", _of_classes, rules=RECURRENT_RULES)
class RNNClassifier(CannedEstimator):
    """Classes of sequences, by a recurrent network: the output of each one's last step.

    Args:
        sequence_feature_columns: Numeric columns of sequences, and embedding or indicator columns
            of `tf.contrib.feature_column.sequence_categorical_column_with_...`.
        context_feature_columns: Dense columns, which every step of a sequence gets.
        num_units: The sizes of the layers.
        cell_type: "basic_rnn" (the default), "lstm", "gru", or a subclass of `RNNCell`.
        rnn_cell_fn: Makes the cell of the mode, in the place of `num_units` and `cell_type`.
        model_dir, config: As for `Estimator`.
        n_classes, weight_column, label_vocabulary, loss_reduction: As for `DNNClassifier`.
        optimizer: As for `DNNClassifier`. One that is no instance has a learning rate of 0.05, and
            clips gradients to the norm 5.
        input_layer_partitioner: Cuts up variables of the columns.

    Raises:
        ValueError: An argument is not as above; while training, that features are no dict.
    """


@canned("tf.contrib.estimator.RNNEstimator", _under_head, rules=RECURRENT_RULES)
class RNNEstimator(CannedEstimator):
    """A recurrent network under any head.

    Args:
        head: A head of `tf.estimator` or of `tf.contrib.estimator`.
        return_sequences: True for logits of all steps, which a `SequentialHeadWrapper` takes.

    The other arguments are those of `RNNClassifier`.
    """
