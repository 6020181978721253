"""`DynamicRnnEstimator` of `tf.contrib.learn`, and the functions that it is made of.

Example:

    estimator = tf1.contrib.learn.DynamicRnnEstimator(
        ProblemType.CLASSIFICATION, PredictionType.SINGLE_VALUE,
        [tf1.contrib.layers.real_valued_column("steps", 2)], num_classes=3, num_units=[16])

Sources: `tf.contrib.learn` dynamic_rnn_estimator.py and rnn_common.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.estimator.canned.columns import with_context
from estimator2strategy.tf1.contrib.layers import inputs_of_columns
from estimator2strategy.tf1.contrib.learn.early_estimator import Estimator
from estimator2strategy.tf1.contrib.learn.model_fn_ops import (
    ModeKeys,
    ModelFnOps,
    PredictionKey,
    ProblemType,
)
from estimator2strategy.tf1.contrib.rnn.around_cells import (
    mask_activations_and_labels,
    select_last_activations,
)

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell
_CELLS = {
    "basic_rnn": _cells.BasicRNNCell,
    "lstm": _cells.LSTMCell,
    "gru": _cells.GRUCell,
}


class RNNKeys:
    """Names of features and predictions."""

    FINAL_STATE_KEY = "final_state"
    LABELS_KEY = "__labels__"
    SEQUENCE_LENGTH_KEY = "sequence_length"
    STATE_PREFIX = "rnn_cell_state"


class PredictionType:
    """One prediction for a sequence, or one for each of its steps."""

    SINGLE_VALUE = 1
    MULTIPLE_VALUE = 2


class _Problem(NamedTuple):
    """The meaning of logits.

    Attributes:
        units: Number of logits.
        key: Name of the predictions.
        loss: The mean loss of labels and logits [examples, units].
        predictions: Of logits.
        probabilities: Of the classes, of logits.
    """

    units: int
    key: str
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    predictions: Callable[[tf.Tensor], tf.Tensor]
    probabilities: Callable[[tf.Tensor], tf.Tensor]


def _column(labels: tf.Tensor) -> tf.Tensor:
    return labels[:, tf.newaxis] if labels.shape.rank == 1 else labels


def _squared_error(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    return tf.math.squared_difference(logits, tf.cast(_column(labels), tf.float32))


def _log_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    labels = tf.cast(_column(labels), tf.float32)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


def _softmax_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    labels = tf.reshape(labels, [-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def _problem(kind: int, num_classes: int | None) -> _Problem:
    if kind == ProblemType.LINEAR_REGRESSION:
        return _Problem(
            1, PredictionKey.SCORES, _squared_error, lambda logits: logits[:, 0], _no_probabilities
        )
    if kind != ProblemType.CLASSIFICATION:
        raise ValueError(
            "problem_type must be either ProblemType.LINEAR_REGRESSION or "
            f"ProblemType.CLASSIFICATION; got {kind}"
        )
    if not num_classes:
        raise ValueError("For CLASSIFICATION problem_type, num_classes must be specified.")
    if num_classes < 2:
        raise ValueError("n_classes must be >= 2")

    def of_all_classes(logits: tf.Tensor) -> tf.Tensor:
        return tf.concat([tf.zeros_like(logits), logits], 1) if num_classes == 2 else logits

    return _Problem(
        1 if num_classes == 2 else num_classes,
        PredictionKey.CLASSES,
        _log_loss if num_classes == 2 else _softmax_loss,
        lambda logits: tf.argmax(of_all_classes(logits), 1),
        lambda logits: tf.nn.softmax(of_all_classes(logits)),
    )


def _no_probabilities(logits: tf.Tensor) -> tf.Tensor:
    raise ValueError(
        "predict_probabilities can only be set to True for problem_type ProblemType.CLASSIFICATION."
    )


def construct_rnn_cell(
    num_units: int | Sequence[int],
    cell_type: Any = "basic_rnn",
    dropout_keep_probabilities: Sequence[float | None] | None = None,
) -> Any:
    """The cell of a network, for all of its layers.

    Args:
        num_units: Sizes of the layers.
        cell_type: "basic_rnn", "lstm", "gru", or a subclass of `RNNCell`.
        dropout_keep_probabilities: As for `apply_dropout`; None for no dropout.

    Raises:
        ValueError: There is no such cell, or the numbers do not fit.
    """
    cell_class = _CELLS.get(cell_type, cell_type)
    if not isinstance(cell_class, type) or not issubclass(cell_class, _cells.RNNCell):
        raise ValueError(f"The supported cell types are {list(_CELLS)}; got {cell_type}")
    sizes = num_units if isinstance(num_units, (list, tuple)) else (num_units,)
    cells = [cell_class(num_units=size) for size in sizes]
    if dropout_keep_probabilities:
        cells = apply_dropout(cells, dropout_keep_probabilities)
    return cells[0] if len(cells) == 1 else _cells.MultiRNNCell(cells)


def apply_dropout(
    cells: Sequence[Any],
    dropout_keep_probabilities: Sequence[float | None],
    random_seed: int | None = None,
) -> list[Any]:
    """Cells that drop some of their inputs, and the last one some of its outputs.

    Args:
        cells: The cells.
        dropout_keep_probabilities: The share of inputs that each cell keeps, then the share of
            outputs that the last one keeps.
        random_seed: For all cells but the last.

    Raises:
        ValueError: There is not one probability more than there are cells.
    """
    if len(dropout_keep_probabilities) != len(cells) + 1:
        raise ValueError(
            "The number of dropout probabilities must be one greater than the number of cells. Got "
            f"{len(cells)} cells and {len(dropout_keep_probabilities)} dropout probabilities."
        )
    *kept, of_last, of_outputs = dropout_keep_probabilities
    wrapped = [
        _cells.DropoutWrapper(cell, keep, 1.0, seed=random_seed)
        for cell, keep in zip(cells[:-1], kept, strict=True)
    ]
    return [*wrapped, _cells.DropoutWrapper(cells[-1], of_last, of_outputs)]


def state_tuple_to_dict(state: Any) -> dict[str, Any]:
    """The tensors of a state, by the names that they have as features and predictions."""
    return {
        _state_name(i): None if part is None else tf.identity(part, name=_state_name(i))
        for i, part in enumerate(tf.nest.flatten(state))
    }


def dict_to_state_tuple(input_dict: Mapping[str, Any], cell: Any) -> Any:
    """The state of `cell` that features hold; None if they hold none.

    Raises:
        ValueError: They hold some of its tensors only.
    """
    sizes = tf.nest.flatten(cell.state_size)
    parts = [input_dict.get(_state_name(i)) for i in range(len(sizes))]
    held = [part for part in parts if part is not None]
    if not held:
        return None
    if len(held) < len(sizes):
        raise ValueError(
            "RNN state was partially specified. Expected zero or "
            f"{len(sizes)} state Tensors; got {len(held)}"
        )
    checked = []
    for part, size in zip(parts, sizes, strict=True):
        _v1.assert_rank(part, 2)
        with tf.control_dependencies([_v1.assert_equal(tf.shape(part)[1], size)]):
            checked.append(tf.identity(part))
    return tf.nest.pack_sequence_as(cell.state_size, checked)


def _state_name(index: int) -> str:
    return f"{RNNKeys.STATE_PREFIX}_{index}"


def build_sequence_input(
    features: Mapping[str, Any],
    sequence_feature_columns: Iterable[Any],
    context_feature_columns: Iterable[Any] | None,
    weight_collections: Iterable[str] | None = None,
    scope: Any = None,
) -> tf.Tensor:
    """The input of a recurrent network, float32 [batch, longest, width].

    Args:
        features: By name.
        sequence_feature_columns: Columns of `tf.contrib.layers`, for sequences.
        context_feature_columns: Columns of `tf.contrib.layers`, which every step gets.
        weight_collections: Further collections of the variables.
        scope: Of the variables.
    """
    sequence_columns = list(sequence_feature_columns)
    context_columns = list(context_feature_columns or ())
    known: dict[Any, Any] = dict(features)
    known.update(inputs_of_columns.transform_features(known, [*sequence_columns, *context_columns]))
    inputs = inputs_of_columns.sequence_input_from_feature_columns(
        known, sequence_columns, weight_collections, scope=scope
    )
    if context_feature_columns is None:
        return inputs
    context = inputs_of_columns.input_from_feature_columns(
        known, context_columns, weight_collections, scope=scope
    )
    return with_context(inputs, context)


def construct_rnn(
    initial_state: Any,
    sequence_input: tf.Tensor,
    cell: Any,
    num_label_columns: int,
    dtype: tf.DType = tf.float32,
    parallel_iterations: int | None = 32,
    swap_memory: bool = True,
) -> tuple[tf.Tensor, Any]:
    """Logits of all steps, [batch, longest, num_label_columns], and the last state.

    Args:
        initial_state: The state before the first step; None for zeros.
        sequence_input: [batch, longest, width].
        cell: The cell.
        num_label_columns: Number of logits.
        dtype, parallel_iterations, swap_memory: As for `tf.nn.dynamic_rnn`.
    """
    with tf.name_scope("RNN"):
        outputs, state = tf1.nn.dynamic_rnn(
            cell,
            sequence_input,
            initial_state=initial_state,
            dtype=dtype,
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        layers = tf1.contrib.layers
        return layers.fully_connected(outputs, num_label_columns, activation_fn=None), state


class DynamicRnnEstimator(Estimator):
    """Classes or numbers of sequences, or of all their steps, by a recurrent network.

    Features may have "sequence_length", integers [batch]: without it no sequence is padded. They
    may have the first state, and predictions have the last one: "rnn_cell_state_0" and so on.

    Args:
        problem_type: `ProblemType.CLASSIFICATION` or `LINEAR_REGRESSION`.
        prediction_type: `PredictionType.SINGLE_VALUE`, or `MULTIPLE_VALUE` for all steps.
        sequence_feature_columns, context_feature_columns: As for `build_sequence_input`.
        num_classes: Number of classes.
        num_units, cell_type, dropout_keep_probabilities: As for `construct_rnn_cell`; there is
            dropout in training only.
        optimizer, learning_rate, gradient_clipping_norm: As for `tf.contrib.layers.optimize_loss`.
        predict_probabilities: True for the probabilities of classes, too.
        momentum: For the optimizer "Momentum".
        model_dir, feature_engineering_fn, config: As for `learn.Estimator`.

    Raises:
        ValueError: A type is none of these, or `num_classes` is missing.
    """

    def __init__(
        self,
        problem_type: int,
        prediction_type: int,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_classes: int | None = None,
        num_units: int | Sequence[int] | None = None,
        cell_type: Any = "basic_rnn",
        optimizer: Any = "SGD",
        learning_rate: Any = 0.1,
        predict_probabilities: bool = False,
        momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0,
        dropout_keep_probabilities: Sequence[float | None] | None = None,
        model_dir: str | None = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        config: Any = None,
    ):
        given = locals()
        if prediction_type not in _SCOPES:
            raise ValueError(
                "prediction_type must be one of PredictionType.MULTIPLE_VALUE or "
                f"PredictionType.SINGLE_VALUE; got {prediction_type}"
            )
        problem = _problem(problem_type, num_classes)
        if predict_probabilities and problem.key == PredictionKey.SCORES:
            _no_probabilities(tf.constant(0))
        super().__init__(
            _model_fn(problem, given),
            model_dir,
            config,
            feature_engineering_fn=feature_engineering_fn,
        )


_SCOPES = {
    PredictionType.SINGLE_VALUE: "SingleValueDynamicRNN",
    PredictionType.MULTIPLE_VALUE: "MultiValueDynamicRNN",
}


def _model_fn(problem: _Problem, given: Mapping[str, Any]) -> Callable[..., ModelFnOps]:
    of_steps = given["prediction_type"] == PredictionType.MULTIPLE_VALUE
    classifies = problem.key == PredictionKey.CLASSES
    scope = _SCOPES[given["prediction_type"]] + ("Classifier" if classifies else "Regressor")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with tf.name_scope(scope):
            lengths = features.get(RNNKeys.SEQUENCE_LENGTH_KEY)
            inputs = build_sequence_input(
                features, given["sequence_feature_columns"], given["context_feature_columns"]
            )
            dropout = given["dropout_keep_probabilities"] if mode == ModeKeys.TRAIN else None
            cell = construct_rnn_cell(given["num_units"], given["cell_type"], dropout)
            before = dict_to_state_tuple(features, cell)
            logits, state = construct_rnn(before, inputs, cell, problem.units)
            if not of_steps:
                logits = select_last_activations(logits, lengths)
            predictions = _predictions(problem, logits, given["predict_probabilities"])
            loss, train_op, metrics = None, None, None
            if mode != ModeKeys.INFER:
                counted = labels
                if of_steps:
                    logits, counted = mask_activations_and_labels(logits, labels, lengths)
                loss = tf.reduce_mean(problem.loss(counted, logits))
                metrics = _accuracy(predictions, labels, lengths, of_steps) if classifies else {}
            if mode == ModeKeys.TRAIN:
                train_op = _train_op(loss, given)
        kind = (given["problem_type"], predictions)
        return ModelFnOps(
            mode,
            {**predictions, **state_tuple_to_dict(state)},
            loss,
            train_op,
            metrics,
            output_alternatives=None if of_steps else {"dynamic_rnn_output": kind},
        )

    return model_fn


def _predictions(
    problem: _Problem, logits: tf.Tensor, with_probabilities: bool
) -> dict[str, tf.Tensor]:
    """Of logits [batch, units] or [batch, longest, units]."""
    outer = tf.shape(logits)[:-1]
    flat = tf.reshape(logits, [-1, problem.units])
    if not with_probabilities:
        return {problem.key: tf.reshape(problem.predictions(flat), outer)}
    probabilities = problem.probabilities(flat)
    classes = tf.reshape(tf.argmax(probabilities, 1), outer)
    shape = tf.concat([outer, tf.shape(probabilities)[-1:]], 0)
    return {PredictionKey.PROBABILITIES: tf.reshape(probabilities, shape), problem.key: classes}


def _accuracy(
    predictions: Mapping[str, tf.Tensor], labels: Any, lengths: Any, of_steps: bool
) -> Any:
    classes = predictions[PredictionKey.CLASSES]
    if of_steps:
        classes, labels = mask_activations_and_labels(classes, labels, lengths)
    return {"accuracy": tf1.contrib.metrics.streaming_accuracy(classes, labels)}


def _train_op(loss: tf.Tensor, given: Mapping[str, Any]) -> Any:
    optimizer, rate = given["optimizer"], given["learning_rate"]
    if isinstance(optimizer, str) and optimizer == "Momentum":
        optimizer = _v1.train.MomentumOptimizer(rate, given["momentum"])
    layers = tf1.contrib.layers
    return layers.optimize_loss(
        loss=loss,
        global_step=None,
        learning_rate=rate,
        optimizer=optimizer,
        clip_gradients=given["gradient_clipping_norm"],
        summaries=layers.OPTIMIZER_SUMMARIES,
    )
