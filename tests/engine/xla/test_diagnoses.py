"""Messages of TensorFlow and XLA, from programs that they refuse."""

from __future__ import annotations

import pytest
import tensorflow as tf
from legacy_models import FEATURES, program_of, with_extra

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.diagnoses import Diagnosis, diagnose, fix_of_op
from estimator2strategy.engine.replay.xla.lowering import LoweringError, lower
from estimator2strategy.engine.xla.core_program import core_program, unsupported
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

tf1 = tf.compat.v1


def unbounded_loop(x):
    weights = tf1.get_variable("looped", [])
    end = tf.cast(tf.reduce_sum(x), tf.int32) + 3
    return tf.while_loop(
        lambda i, _: i < end, lambda i, t: (i + 1, t * weights), [0, tf.reduce_sum(x)]
    )[1]


def computed_shape(x):
    size = tf.cast(tf.reduce_sum(x), tf.int32)
    return tf.reduce_sum(tf.reshape(x, [size, -1]))


def v1_loop(x):
    return tf1.import_graph_def(_v1_loop(), {"x": x}, ["out:0"])[0]


def _v1_loop():
    tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [8, FEATURES], name="x")
            out = tf1.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * 2.0), [0, x])[1]
            tf.reduce_sum(out, name="out")
    finally:
        tf1.enable_control_flow_v2()
    return graph.as_graph_def()


REFUSED = {
    unbounded_loop: ("no bound", "maximum_iterations"),
    computed_shape: ("computed from data", "static shapes"),
}


@pytest.mark.parametrize("extra", REFUSED, ids=lambda extra: extra.__name__)
def test_what_tensorflow_refuses_is_explained(extra):
    program = program_of(with_extra(extra))
    assert unsupported(program) == []
    with pytest.raises(LoweringError) as refused:
        lower(program)
    diagnosis = diagnose(refused.value.text)
    cause, fix = REFUSED[extra]
    assert cause in diagnosis.cause
    assert fix in diagnosis.fix


def test_a_loop_of_old_is_explained():
    found = {op.op for op in unsupported(program_of(with_extra(v1_loop)))}
    assert {"Enter", "Exit", "LoopCond"} <= found
    assert "functional" in fix_of_op("Enter")


def test_a_batch_without_a_fixed_size_is_explained():
    def model_fn(features, labels, mode):
        return with_extra(lambda x: 0.0)(features, labels, mode, {}).as_estimator_spec()

    def batches():
        data = (tf.zeros([10, FEATURES]), tf.zeros([10], tf.int32))
        return tf.data.Dataset.from_tensor_slices(data).batch(4)

    model = estimator.Estimator(model_fn, "/never/written")
    with recording_graph(model):
        recording = record_for(model, ModeKeys.TRAIN, batches)
    program = core_program(recording, [recording.spec.loss], [recording.spec.train_op])
    with pytest.raises(LoweringError) as refused:
        lower(program)
    diagnosis = diagnose(refused.value.text)
    assert "not fixed" in diagnosis.cause
    assert "drop_remainder" in diagnosis.fix


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("E1000: ... (16.03G) exceeds available HBM (15.48G).", "more memory than a core has"),
        ("Ran out of memory in memory space vmem. Used 20M of 16M", "fast memory"),
        ("Internal error when accessing libtpu multi-process lockfile.", "holds libtpu"),
        ("OOM when allocating tensor with shape[1048576,1048576]", "this machine's memory"),
        ("during context [x]: Unexpected operand type for FFT: c128[8,16]", "complex128"),
        ("It was not done after 1800 seconds (the time limit).", "time limit"),
    ],
)
def test_messages_of_the_compiler_are_explained(text, cause):
    diagnosis = diagnose(text)
    assert cause in diagnosis.cause
    assert diagnosis.fix


def test_what_no_row_explains_is_said_in_its_own_words():
    text = "\nThe sky is falling. [[{{node step/sky}}]]\n\tmore of it\n"
    assert diagnose(text) == Diagnosis("The sky is falling.")
    assert diagnose("").cause == "no message"


@pytest.mark.parametrize(
    ("op", "fix"),
    [
        ("PyFunc", "input_fn"),
        ("PyFuncStateless", "input_fn"),
        ("EagerPyFunc", "input_fn"),
        ("ScalarSummary", "host_call"),
        ("WriteScalarSummary", "host_call"),
        ("PrintV2", "host_call"),
        ("StringSplitV2", "input_fn"),
        ("MutableHashTableV2", "input_fn"),
        ("LookupTableFindV2", "input_fn"),
        ("SegmentSum", "unsorted_segment_sum"),
        ("LogMatrixDeterminant", "cholesky"),
        ("MatMul", ""),
    ],
)
def test_ops_have_fixes(op, fix):
    assert fix in fix_of_op(op)
    assert bool(fix_of_op(op)) == bool(fix)
