"""Samples of `tf.contrib.training`: examples are drawn, or drawn again, with given probabilities.

`rejection_sample` and `stratified_sample` read from queues that a Session's threads fill.

Sources: `tf.contrib.training` sampling_ops.py and resample.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

_v1 = tf.compat.v1


def rejection_sample(
    tensors: Any,
    accept_prob_fn: Callable[..., Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[tf.Tensor]:
    """Batches of the examples that are accepted.

    Args:
        tensors: A list of tensors, one example; or several, if `enqueue_many`.
        accept_prob_fn: Makes of an example's tensors the probability of accepting it, a scalar.
        batch_size: Of the result.
        queue_threads: Threads that fill the queue of batches.
        enqueue_many: True if the first axis of all tensors is that of examples.
        prebatch_capacity: Examples in the queue that takes the tensors apart.
        prebatch_threads: Threads that fill that queue.
        runtime_checks: True if a probability outside of 0 to 1 is an error.
        name: Of the variable scope.

    Returns:
        A list of tensors with a first axis of `batch_size`.

    Raises:
        ValueError: The tensors have no axis of examples, or different numbers of them.
    """
    with _v1.variable_scope(name, "rejection_sample", tensors):
        example = [tf.convert_to_tensor(tensor) for tensor in tensors]
        if enqueue_many:
            for tensor in example:
                _check_examples(tensor, example[0])
            example = _one_by_one(example, prebatch_threads, prebatch_capacity)
        probability = accept_prob_fn(example)
        if runtime_checks:
            checks = [
                _v1.assert_less_equal(0.0, probability),
                _v1.assert_less_equal(probability, 1.0),
            ]
            with tf.control_dependencies(checks):
                probability = tf.identity(probability, name="prob_with_checks")
        accepted = _accepted(example, probability, batch_size, queue_threads)
        return [accepted] if tf.is_tensor(accepted) else accepted


def stratified_sample(
    tensors: Any,
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[Any, tf.Tensor]:
    """Batches in which classes have given shares; examples of frequent classes are left out.

    Args:
        tensors: A list of tensors, one example; or several, if `enqueue_many`.
        labels: Whole numbers, the class: a scalar, or [examples].
        target_probs: float32 [classes], the share of each class in a batch.
        batch_size: Of the result.
        init_probs: float32 [classes], the shares in the input; by default they are counted.
        enqueue_many: True if the first axis of all tensors is that of examples.
        queue_capacity: Examples in the queue that takes the tensors apart.
        threads_per_queue: Threads that fill each of the two queues.
        name: Of the name scope.

    Returns:
        A list of tensors with a first axis of `batch_size`; and the labels, [batch_size].

    Raises:
        ValueError: Shapes do not fit one another. The graph raises InvalidArgumentError for shares
            that do not add up to 1, or labels that are no class.
    """
    with _v1.name_scope(name, "stratified_sample", [*tensors, labels]):
        examples = [tf.convert_to_tensor(tensor) for tensor in tensors]
        labels = tf.convert_to_tensor(labels)
        wanted = tf.convert_to_tensor(target_probs, tf.float32)
        if not enqueue_many:
            examples = [tensor[None] for tensor in examples]
            labels = labels[None]
        if init_probs is None:
            wanted.shape.assert_is_fully_defined()
            given = _counted_shares(labels, wanted.shape.num_elements())
        else:
            given = tf.convert_to_tensor(init_probs, tf.float32)
        given, wanted = _checked_shares(given), _checked_shares(wanted)
        if given.shape.num_elements() != wanted.shape.num_elements():
            raise ValueError("Probability parameters must have the same length.")
        examples, labels = _checked_examples(examples, labels, wanted.shape.num_elements())
        probabilities = _acceptance(given, wanted)
        *example, label = _one_by_one([*examples, labels], threads_per_queue, queue_capacity)
        probability = tf.gather(probabilities, label)
        batch = _accepted([*example, label], probability, batch_size, threads_per_queue)
        return batch[:-1], batch[-1]


def resample_at_rate(
    inputs: Any,
    rates: Any,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[tf.Tensor]:
    """Each example as often as a Poisson distribution of its rate says.

    Args:
        inputs: A list of tensors with a first axis of examples.
        rates: Floats [examples].
        scope: Name of the name scope.
        seed: Of the draws.
        back_prop: Without effect, as in TF 1.15: nothing is differentiable in the rates.

    Returns:
        A list of tensors with another number of examples, in their order.
    """
    del back_prop
    with _v1.name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = tf.convert_to_tensor(rates, name="rates")
        counts = tf.cast(_v1.random_poisson(rates, (), rates.dtype, seed=seed), tf.int32)
        drawn = tf.repeat(tf.range(tf.size(counts)), counts)
        return [tf.gather(tensor, drawn) for tensor in inputs]


def weighted_resample(
    inputs: Any,
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Each example as often as its weight says, relative to a moving mean of weights.

    Args:
        inputs: A list of tensors with a first axis of examples.
        weights: Floats [examples].
        overall_rate: Examples in the result for one in `inputs`, on average.
        scope: Name of the scopes.
        mean_decay: Of the moving mean, which starts without a bias.
        seed: Of the draws.

    Returns:
        A list of tensors with another number of examples; and the rate of each of these.
    """
    with _v1.name_scope(scope, "weighted_resample", inputs) as names:
        with _v1.variable_scope(scope, "estimate_mean", inputs):
            estimate = _v1.get_local_variable(
                "estimated_mean", dtype=weights.dtype, initializer=tf.cast(0, weights.dtype)
            )
            mean = tf.__internal__.train.assign_moving_average(
                estimate, tf.reduce_mean(weights), mean_decay, zero_debias=True
            )
        rates = weights * overall_rate / mean
        drawn_rates, *drawn = resample_at_rate([rates, *inputs], rates, names, seed)
        return drawn, drawn_rates


def _check_examples(tensor: tf.Tensor, other: tf.Tensor) -> None:
    count = tensor.shape.with_rank_at_least(1)[:1]
    count.assert_is_compatible_with(other.shape[:1])


def _one_by_one(tensors: list[tf.Tensor], threads: int, capacity: int) -> list[tf.Tensor]:
    """One example after the other, from a queue."""
    one = _v1.train.batch(
        tensors, batch_size=1, num_threads=threads, capacity=capacity, enqueue_many=True
    )
    return [tf.squeeze(tensor, [0]) for tensor in (one if isinstance(one, list) else [one])]


def _accepted(example: list[tf.Tensor], probability: Any, size: int, threads: int) -> Any:
    """A batch of accepted examples; a tensor if the example is one."""
    is_accepted = tf.random.uniform([]) < probability
    return _v1.train.maybe_batch(
        example, keep_input=is_accepted, batch_size=size, num_threads=threads
    )


def _counted_shares(labels: tf.Tensor, classes: int) -> tf.Tensor:
    """Shares of the labels seen so far. Each class starts with ten, so that none is 0."""
    counts = _v1.Variable([10] * classes, trainable=False, name="class_count", dtype=tf.int64)
    seen = tf.reduce_sum(tf.one_hot(labels, classes, dtype=tf.int64), 0)
    # A copy: a reference variable's buffer changes while other threads count.
    now = counts.assign_add(seen) + 0
    return tf.cast(now / tf.reduce_sum(now), tf.float32)


def _checked_shares(shares: tf.Tensor) -> tf.Tensor:
    shares.shape.assert_is_fully_defined()
    shares.shape.assert_has_rank(1)
    total = tf.reduce_sum(shares)
    checks = [
        _v1.assert_non_negative(shares),
        _v1.assert_less(total, 1.0 + 1e-6),
        _v1.assert_less(1.0 - 1e-6, total),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(shares)


def _checked_examples(
    examples: list[tf.Tensor], labels: tf.Tensor, classes: int
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Examples and labels, once it is sure that there are as many, and that labels are classes."""
    labels.shape.assert_has_rank(1)
    for tensor in examples:
        _check_examples(tensor, labels)
    count = tf.shape(labels)[0]
    some = _v1.assert_positive(count)
    picked = []
    for tensor in examples:
        as_many = _v1.assert_equal(tf.shape(tensor)[0], count)
        with tf.control_dependencies([c for c in (some, as_many) if c is not None]):
            picked.append(tf.identity(tensor))
    checks = [
        some,
        _v1.assert_integer(labels),
        _v1.assert_non_negative(labels),
        _v1.assert_less(labels, tf.cast(classes, labels.dtype)),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return picked, tf.identity(labels)


def _acceptance(given: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """The probability of accepting an example of each class; 1 for the rarest one."""
    possible = tf.reduce_all(tf.logical_or(tf.not_equal(given, 0), tf.equal(wanted, 0)))
    message = "All classes with zero initial probability must also have zero target probability: "
    with tf.control_dependencies([_v1.Assert(possible, [message, given, wanted])]):
        given = tf.identity(given)
    ratios = tf.math.divide_no_nan(wanted, given)
    accepted = ratios / tf.reduce_max(ratios)
    rejected = tf.reduce_sum((1 - accepted) * given)
    return _v1.cond(
        rejected < 0.5,
        lambda: accepted,
        lambda: _v1.Print(
            accepted, [accepted], "Proportion of examples rejected by sampler is high.", 10
        ),
    )
