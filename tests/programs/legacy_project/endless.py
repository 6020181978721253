"""Trains until it is stopped, and says so at each step."""

import sys

import tensorflow as tf


class Say(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        print("a step", flush=True)


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors((tf.ones([1, 2]), 0.0)).repeat()


def main(argv):
    tf.estimator.Estimator(model_fn, argv[1]).train(input_fn, hooks=[Say()])
    print("trained for ever")


if __name__ == "__main__":
    tf.app.run(main, sys.argv)
