"""Hooks that tests look at a run with."""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


class LossRecorder(tf1.train.SessionRunHook):
    """Keeps the loss of every run: on the host of every step, on cores of every execution."""

    def begin(self):
        self.losses = []
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[-1]

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))
