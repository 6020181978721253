"""Lets a training take turns with that of another process, at each line of global_step/sec.

A hook of ours would have to be served at every step, so the lines that Estimators log themselves
mark the turns. The first one ends the warm-up.
"""

import json
import logging
import sys
import time

import tensorflow as tf


class _AtLogLine(logging.Handler):
    def __init__(self, every):
        super().__init__()
        self._every, self._started = every, None

    def emit(self, record):
        if not record.getMessage().startswith("global_step/sec"):
            return
        now = time.perf_counter(), time.process_time()
        started = self._started or now
        each = [(end - start) / self._every for start, end in zip(started, now)]
        print("TURN", json.dumps(each), flush=True)
        sys.stdin.readline()
        self._started = time.perf_counter(), time.process_time()


def start(every):
    """Prints seconds and processor seconds of a step at each line, and waits for the next turn."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    logging.getLogger("tensorflow").addHandler(_AtLogLine(every))
