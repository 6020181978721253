"""`tf.contrib.estimator` of TF 1.15: changes of an Estimator or an optimizer; recurrent networks.

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
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.export import PredictOutput
from estimator2strategy.estimator.heads.sequential import check_for_sequences
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.tf1.contrib.feature_column import sequence_input_layer
from estimator2strategy.tf1.contrib.rnn.around_cells import select_last_activations

_v1 = tf.compat.v1


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An Estimator whose predictions have some of the features too.

    Args:
        estimator: To be extended; it shares its model_dir and config.
        keys: Names of features; all by default.
        sparse_default_values: Fills up sparse features, by name.

    Raises:
        TypeError: `keys` are no strings.
        ValueError: While predicting: a feature is missing, sparse, or has the name of a prediction.
    """
    chosen = [keys] if isinstance(keys, str) else keys
    if chosen is not None and not isinstance(chosen, (list, tuple)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {type(keys)}")
    for key in chosen or ():
        if not isinstance(key, str):
            raise TypeError(
                "All items in the given keys list should be a string. There exist an item with "
                f"type: {type(key)}"
            )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        if not isinstance(spec.predictions, dict):
            raise ValueError(
                "Predictions should be a dict to be able to forward features. "
                f"Given: {type(spec.predictions)}"
            )
        names = list(features) if chosen is None else chosen
        forwarded = {
            name: _forwarded(name, features, spec.predictions, sparse_default_values or {})
            for name in names
        }
        outputs = {
            name: PredictOutput({**output.outputs, **forwarded})
            if name in ("predict", "serving_default") and isinstance(output, PredictOutput)
            else output
            for name, output in (spec.export_outputs or {}).items()
        }
        return spec._replace(
            predictions={**spec.predictions, **forwarded}, export_outputs=outputs or None
        )

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def _forwarded(name: str, features: Any, predictions: Any, defaults: Mapping[str, Any]) -> Any:
    """A feature as a tensor, or ValueError where it cannot be a prediction."""
    if name not in features:
        raise ValueError(
            f'keys should be exist in features. Key "{name}" is not in features dict. features '
            f"dict has following keys: {list(features)}. Please check arguments of "
            "forward_features."
        )
    if name in predictions:
        raise ValueError(
            f"Cannot forward feature key ({name}). Since it does exist in predictions. Existing "
            f"prediction keys: {list(predictions)}. Please check arguments of forward_features."
        )
    feature = features[name]
    if name in defaults:
        if not isinstance(feature, tf.SparseTensor):
            raise ValueError(f"Feature ({name}) is expected to be a `SparseTensor`.")
        return tf.sparse.to_dense(feature, default_value=defaults[name])
    if isinstance(feature, tf.SparseTensor):
        raise ValueError(
            f"Feature ({name}) should be a Tensor. Please use `keys` argument of forward_features "
            "to filter unwanted features, or add key to argument `sparse_default_values`. "
            f"Type of features[{name}] is {type(feature)}."
        )
    return tf.convert_to_tensor(feature)


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> Any:
    """`optimizer`, which clips all gradients together to the global norm `clip_norm`."""
    return _ClippingOptimizer(optimizer, clip_norm)


class _ClippingOptimizer(_v1.train.Optimizer):
    def __init__(self, optimizer: Any, clip_norm: Any):
        super().__init__(use_locking=False, name="ClipByNorm" + optimizer.get_name())
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = _v1.clip_by_global_norm(gradients, self._clip_norm)
        pairs = list(zip(clipped, variables, strict=True))
        return self._optimizer.apply_gradients(pairs, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)


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
