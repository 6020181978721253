"""`tf.contrib.summary`: what a host call writes; the step is that before its increment."""

import glob
import os

import pytest

import estimator2strategy.tf1 as tf

summary = tf.contrib.summary


def events(folder):
    """(step, tag, value) of each scalar in the event files of a folder."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.tfevents.*"))):
        for event in tf.train.summary_iterator(path):
            found += [(event.step, v.tag, v.simple_value) for v in event.summary.value]
    return found


def host_call(folder, record):
    def write(step, loss):
        step = step[0]
        with summary.create_file_writer(folder, max_queue=100).as_default(), record():
            summary.scalar("loss", loss[0], step=step)
            return summary.all_summary_ops()

    return write


@pytest.mark.parametrize(
    ("record", "steps"),
    [
        (summary.always_record_summaries, [0, 1, 2, 3]),
        (lambda: summary.record_summaries_every_n_global_steps(2), [0, 2]),
        (summary.never_record_summaries, []),
    ],
)
def test_a_host_call_writes_when_it_is_to(model_dir, tmp_path, record, steps):
    folder = str(tmp_path / "events")

    def model_fn(features, labels, mode, params):
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(features) * weight
        step = tf.train.get_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.0).minimize(loss, step)
        tensors = [tf.reshape(step, [1]), tf.reshape(loss, [1])]
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=(host_call(folder, record), tensors)
        )

    def input_fn(params):
        numbers = tf.data.Dataset.from_tensor_slices([[1.0], [2.0], [3.0], [4.0]])
        return numbers.batch(1, drop_remainder=True)

    config = tf.contrib.tpu.RunConfig(model_dir=model_dir)
    tf.contrib.tpu.TPUEstimator(model_fn, use_tpu=False, train_batch_size=1, config=config).train(
        input_fn
    )
    assert [step for step, tag, _ in events(folder) if tag == "loss"] == steps
