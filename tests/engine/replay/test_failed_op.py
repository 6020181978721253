"""A step that fails names the op as the program does, and the line that made it."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function

from estimator2strategy import estimator
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.failed_op import named_failure
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1
errors = tf.errors


def refusing(x):
    raise KeyError("no such word")  # in Python


def unlike(x):
    return tf1.matmul(x, tf.ones(tf.cast(x[0, :2] * 5, tf.int32)), name="product")


def labels(x):
    with tf1.variable_scope("loss"):
        wrong = tf.cast(x[:, 0], tf.int32) * 7
        return tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=wrong, logits=x, name="xent")


def not_a_number(x):
    return tf1.check_numerics(tf1.log(-x), "my check", name="check")


def python(x):
    return tf1.py_func(refusing, [x], tf.float32, name="words")


def asserted(x):
    with tf.control_dependencies([tf1.Assert(tf.reduce_all(x > 2), ["small", x[:1]], name="big")]):
        return tf.identity(x)


def unfed(x):
    return x + tf1.placeholder(tf.float32, [], name="rate")


def by_zero(x):
    return tf1.floordiv(tf.cast(x, tf.int32), tf.cast(x - 1, tf.int32), name="share")


def beyond(x):
    return tf1.gather(x, tf.cast(x[0, :1] * 9, tf.int32), name="row")


def huge(x):
    return tf1.fill(tf.cast(x[0, :2] * 1e8, tf.int32), 0.0, name="table")


def in_cond(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: not_a_number(x), lambda: x, name="choice")


def in_loop_in_cond(x):
    def loop():
        return tf1.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, not_a_number(x)), [0, x])[1]

    return tf1.cond(tf.reduce_sum(x) > 0, loop, lambda: x, name="choice")


def in_function(x):
    return tf.function(not_a_number)(x)


def in_function_with_effects(x):
    return tf.function(asserted)(x)


@function.Defun(tf.float32)
def logarithm(x):
    return not_a_number(x)


def in_defun(x):
    return logarithm(x, name="call")


@tf1.custom_gradient
def steep(x):
    return tf.identity(x), lambda dy: not_a_number(dy)


def in_gradient(x):
    with tf1.name_scope("slope"):
        y = steep(x)  # the forward op
    return tf.gradients(y, x)[0]


INVALID = errors.InvalidArgumentError
# Build -> class, op, type, and what else its message has.
FAILURES = {
    unlike: (INVALID, "product", "MatMul", "Matrix size-incompatible"),
    labels: (INVALID, "loss/xent/xent", "SparseSoftmaxCrossEntropyWithLogits", "label value of 7"),
    not_a_number: (INVALID, "check", "CheckNumerics", "my check : Tensor had NaN"),
    python: (errors.UnknownError, "words", "PyFunc", "KeyError: 'no such word'"),
    asserted: (INVALID, "big/AssertGuard/Assert", "Assert", "[small] [[1 1 1]]"),
    unfed: (INVALID, "rate", "Placeholder", "placeholder tensor 'rate' with"),
    by_zero: (INVALID, "share", "FloorDiv", "Integer division by zero"),
    beyond: (INVALID, "row", "GatherV2", "indices[0] = 9 is not in [0, 4)"),
    huge: (errors.ResourceExhaustedError, "table", "Fill", "OOM when allocating"),
    in_cond: (INVALID, "choice/check", "CheckNumerics", "NaN"),
    in_loop_in_cond: (INVALID, r"choice/while\w*/check", "CheckNumerics", "NaN"),
    in_function: (INVALID, r"\w*PartitionedCall/check", "CheckNumerics", "NaN"),
    in_function_with_effects: (INVALID, r"\w+Call/big/AssertGuard/Assert", "Assert", "small"),
    in_defun: (INVALID, "call/check_0", "CheckNumerics", "in a function that is called at"),
    in_gradient: (INVALID, r"gradients/slope/IdentityN_grad/check", "CheckNumerics", "NaN"),
}


def failing(build):
    """The error of a replay of what `build` makes of ones, and its graph."""
    with legacy_world(), recording(None) as graph:
        x = tf1.placeholder(tf.float32, [4, 3], name="x")
        y = build(x)
    with pytest.raises(tf.errors.OpError) as raised:
        ReplaySession(graph).run(y, {x: np.ones([4, 3], "float32")})
    return raised.value, graph


def line_of(build, words):
    """`file:line` of the line of `build` that has `words`."""
    lines, first = inspect.getsourcelines(build)
    (number,) = (first + i for i, line in enumerate(lines) if words in line)
    return f"{__file__}:{number}"


@pytest.mark.oldest
@pytest.mark.parametrize(
    "build",
    # TensorFlow waits 10 s for memory.
    [pytest.param(b, marks=[pytest.mark.slow] * (b is huge)) for b in FAILURES],
    ids=lambda build: build.__name__,
)
def test_it_has_the_class_the_name_the_type_and_the_line(build):
    error, _ = failing(build)
    kind, name, op_type, words = FAILURES[build]
    assert type(error) is kind
    assert words in error.message
    found = re.search(r"\[\[node (\S+) \(defined at (\S+)\) \]\]", error.message)
    assert re.fullmatch(name, found[1])
    assert found[2].startswith(f"{__file__}:")
    assert f"{op_type} '{found[1]}'" in error.message
    assert (error.node_def.name, error.node_def.op) == (found[1], op_type)
    assert f"Original stack trace for {error.op.name!r}" in str(error)
    assert not re.search(r"replay(_\d+)?/(?!test_)", error.message)
    assert "{{node" not in error.message


@pytest.mark.parametrize(
    ("build", "maker", "words"),
    [
        (unlike, unlike, "tf1.matmul"),
        (asserted, asserted, "tf1.Assert"),
        (in_cond, not_a_number, "check_numerics"),
        (in_defun, in_defun, "logarithm(x"),
    ],
)
def test_the_line_is_that_which_made_the_op(build, maker, words):
    """Of an op in a `Defun` it is that of the call: TensorFlow keeps no lines of its body.

    TF 1.15 named no line for an op in a function, of `Defun` or `tf.function`, but inner name and
    call: `[[{{node check_0}}]] [[call]]`, `[[{{node check}}]] [[StatefulPartitionedCall]]`.
    """
    error, _ = failing(build)
    assert f"defined at {line_of(maker, words)}" in error.message


def test_its_op_is_that_of_the_program():
    error, graph = failing(labels)
    assert error.op is graph.get_operation_by_name("loss/xent/xent")
    assert error.error_code == tf.errors.INVALID_ARGUMENT


def test_an_op_of_a_gradient_names_the_forward_op_and_its_line():
    error, _ = failing(in_gradient)
    assert "in the gradient of IdentityN 'slope/IdentityN'" in error.message
    assert f"made at {line_of(in_gradient, 'the forward op')}" in error.message


def test_an_op_that_calls_python_names_the_line_there():
    error, _ = failing(python)
    assert f"failed at {line_of(refusing, 'in Python')}" in error.message


def test_the_inputs_of_a_call_are_named_as_those_of_the_call():
    def call(x):
        return logarithm(tf.square(x, name="given"), name="call")

    error, _ = failing(call)
    assert "\n given (defined at" in error.message


def test_its_inputs_are_named_with_their_lines():
    error, _ = failing(labels)
    at = line_of(labels, "* 7")
    assert "Errors may have originated from an input operation." in error.message
    assert f"\n loss/mul (defined at {at})" in error.message


class Place(NamedTuple):
    """Where a step runs.

    Attributes:
        mode: The method of the Estimator.
        cores: How many are emulated; 0: the host runs it.
        mirrored: Two replicas of a MirroredStrategy run it.
        compiled: XLA compiles it.
        steps: How many are asked for.
        build: What fails.
    """

    mode: str
    cores: int = 0
    mirrored: bool = False
    compiled: bool = False
    steps: int | None = 3
    build: Any = labels


PLACES = {
    "steps one by one": Place("train"),
    "a loop": Place("train", steps=430),
    "a loop, compiled": Place("train", compiled=True, build=asserted),
    "evaluation in halves": Place("evaluate", steps=None),
    "prediction": Place("predict"),
    "cores": Place("train", cores=2, steps=6),
    "cores, in a cond": Place("train", cores=2, steps=6, build=in_cond),
    "evaluation on cores": Place("evaluate", cores=2),
    "prediction on cores": Place("predict", cores=2),
    "replicas": Place("train", mirrored=True),
    "evaluation on replicas": Place("evaluate", mirrored=True),
}


def model_fn_of(build, on_cores):
    def model_fn(features, labels, mode, params):
        del params
        spec = estimator.tpu.TPUEstimatorSpec if on_cores else estimator.EstimatorSpec
        y = tf.reduce_sum(build(features)) * tf1.get_variable("weight", [])
        if mode == estimator.ModeKeys.PREDICT:
            return spec(mode, predictions={"y": features + y})
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        optimizer = tf1.tpu.CrossShardOptimizer(optimizer) if on_cores else optimizer
        train_op = optimizer.minimize(y, tf1.train.get_global_step())
        return spec(mode, loss=y, train_op=train_op)

    return model_fn


def input_fn(params):
    del params
    x = tf.ones([3])
    return tf.data.Dataset.from_tensors((x, x)).repeat(200).batch(4, drop_remainder=True)


def estimator_of(place, model_dir):
    model_fn = model_fn_of(place.build, place.cores)
    if place.cores:
        loop = estimator.tpu.TPUConfig(iterations_per_loop=3)
        config = estimator.tpu.RunConfig(model_dir=model_dir, tpu_config=loop)
        sizes = dict.fromkeys(["train_batch_size", "eval_batch_size", "predict_batch_size"], 4)
        return estimator.tpu.TPUEstimator(model_fn, config=config, **sizes)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if place.mirrored else None
    config = estimator.RunConfig(
        model_dir=model_dir, train_distribute=strategy, eval_distribute=strategy
    )
    options = estimator.TrainingOptions(jit_compile=place.compiled)
    return estimator.Estimator(model_fn, config=config, params={"size": 4}, options=options)


def run(model, place):
    if place.mode == "predict":
        list(model.predict(input_fn))
    else:
        getattr(model, place.mode)(input_fn, steps=place.steps)


@pytest.mark.parametrize("place", PLACES.values(), ids=list(PLACES))
def test_wherever_a_step_runs_its_failure_is_named(place, model_dir, emulated_cores):
    emulated_cores(place.cores)
    model = estimator_of(place, model_dir)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run(model, place)
    _, name, op_type, words = FAILURES[place.build]
    message = raised.value.message
    assert words in message
    assert re.search(rf"\[\[node {name} \(defined at {re.escape(__file__)}:\d+\) \]\]", message)
    assert raised.value.node_def.op == op_type
    assert "Dataset" not in message


@pytest.fixture(scope="module")
def recorded():
    with legacy_world(), recording(None) as graph:
        tf.constant(1.0, name="one")
        tf.constant(2.0, name="two")
    return RecordedGraph(graph)


@pytest.mark.parametrize(
    "error",
    [
        INVALID(None, None, "bad [[{{node of_another_program}}]]"),
        INVALID(None, None, "bad, without a node"),
        errors.OutOfRangeError(None, None, "End of sequence [[{{node one}}]]"),
        errors.UnavailableError(None, None, "Socket closed [[{{node one}}]]"),
        ValueError("bad [[{{node one}}]]"),
    ],
)
def test_what_cannot_be_told_stays_what_it_is(recorded, error):
    assert named_failure(recorded, recorded.graph, error) is error


def test_each_of_several_failures_is_told_and_a_cancelled_one_is_not(recorded):
    message = (
        "Graph execution error:\n\nDetected at node one defined at (most recent call last):\n"
        "<stack traces unavailable>\n3 root error(s) found.\n"
        "  (0) INVALID_ARGUMENT:  too large\n\t [[{{node one}}]]\n\t [[while/two/_3]]\n"
        "  (1) CANCELLED:  Function was cancelled before it was started\n"
        "  (2) INVALID_ARGUMENT:  too small\n\t [[{{node two}}]]\n"
        "0 successful operations.\n0 derived errors ignored. [Op:__inference_block_7]"
    )
    named = named_failure(recorded, recorded.graph, INVALID(None, None, message))
    told = re.findall(r"(too \w+)\n\t \[\[node (\w+) ", named.message)
    assert told == [("too large", "one"), ("too small", "two")]
    assert not re.search("root error|CANCELLED|Graph execution|ignored|while", named.message)
    assert named.op.name == "one"


def test_an_error_of_a_hook_is_the_hooks_own(model_dir):
    own = INVALID(None, None, "bad [[{{node weight}}]]")

    class Refusing(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            raise own

    model = estimator.Estimator(model_fn_of(tf.identity, 0), model_dir, params={"size": 4})
    with pytest.raises(INVALID) as raised:
        model.train(input_fn, hooks=[Refusing()], steps=2)
    assert raised.value is own
