"""An error of the user's Dataset gets the user's line; other errors stay what they are."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.failed_op import named_failure

BATCH = (
    "Graph execution error:\n\nDetected at node replay/IteratorGetNext defined at (most recent "
    "call last):\n<stack traces unavailable>\nCannot add tensor to the batch: Shapes are: "
    "[tensor]: [3], [batch]: [2]\n\t [[{{node replay/IteratorGetNext}}]]"
)


@pytest.fixture
def recorded():
    with tf.Graph().as_default() as graph:
        examples = tf.data.Dataset.range(4)
        batches = examples.batch(2)  # the batches are made here
        last = batches.prefetch(1)
        tf.compat.v1.data.make_initializable_iterator(last).get_next()
        return RecordedGraph(graph)


def test_it_keeps_its_class_and_names_the_line_that_made_what_failed(recorded):
    named = named_failure(
        recorded, recorded.graph, tf.errors.InvalidArgumentError(None, None, BATCH)
    )
    assert type(named) is tf.errors.InvalidArgumentError
    first, at, *_ = named.message.splitlines()
    assert "[tensor]: [3], [batch]: [2]" in first
    assert __file__ in at
    assert "the batches are made here" in at


def test_one_of_several_failures_is_said_without_its_number(recorded):
    message = (
        "Graph execution error:\n2 root error(s) found.\n"
        "  (0) INVALID_ARGUMENT:  Cannot batch tensors\n\t [[{{node IteratorGetNext}}]]"
    )
    named = named_failure(
        recorded, recorded.graph, tf.errors.InvalidArgumentError(None, None, message)
    )
    assert named.message.splitlines()[0].endswith("got: Cannot batch tensors")


def test_tensorflows_words_are_without_the_frames_that_traced_the_op(recorded):
    message = (
        "Graph execution error:\n\nDetected at node IteratorGetNext defined at (most recent call "
        'last):\n  File "ours.py", line 1, in main\n\n  File "ours.py", line 2, in run\n\n'
        "train.csv; No such file or directory\n\t [[{{node IteratorGetNext}}]]"
    )
    error = tf.errors.NotFoundError(None, None, message)
    named = named_failure(recorded, recorded.graph, error).message
    assert "ours.py" not in named
    assert "TensorFlow's words: train.csv; No such file or directory\n" in named


def test_what_no_table_knows_is_of_the_last_dataset(recorded):
    message = "Something else [[{{node Inner}}]]\n\t [[IteratorGetNext]]"
    named = named_failure(recorded, recorded.graph, tf.errors.InternalError(None, None, message))
    assert "batches.prefetch(1)" in named.message


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.OutOfRangeError(None, None, "End of sequence [[{{node IteratorGetNext}}]]"),
        tf.errors.UnavailableError(None, None, "Socket closed [[{{node IteratorGetNext}}]]"),
        tf.errors.InvalidArgumentError(None, None, "Incompatible shapes: [[{{node mul}}]]"),
        ValueError("IteratorGetNext"),
    ],
)
def test_other_errors_stay_what_they_are(recorded, error):
    assert named_failure(recorded, recorded.graph, error) is error


def test_an_error_is_named_once(recorded):
    named = named_failure(
        recorded, recorded.graph, tf.errors.InvalidArgumentError(None, None, BATCH)
    )
    assert named_failure(recorded, recorded.graph, named) is named
