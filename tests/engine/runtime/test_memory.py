"""The memory of a program that trains, evaluates and predicts in turns does not grow."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import fresh

ROUNDS = """
import ctypes
import gc
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, numbers

PAGE = 4096
megabyte = np.random.default_rng(0).random(1 << 18, np.float32)

def model_fn(features, labels, mode, params):
    return falling(features + tf.reduce_sum(megabyte), labels, mode, params)

def graphs():
    return sum(isinstance(each, tf.Graph) for each in gc.get_objects())

def resident():
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what it keeps for later is up to chance
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6

model = estimator.Estimator(model_fn, sys.argv[1], params={})
left, collected = [], []
for number in range(1, 81):
    model.train(numbers(1), steps=1)
    model.evaluate(numbers(1), steps=1)
    list(itertools.islice(model.predict(numbers(1)), 1))
    left.append(graphs())
    if number in (60, 80):  # memory settles in the first fifty
        gc.collect()
        collected.append((graphs(), resident()))
print(json.dumps([left, *zip(*collected)]))
"""


@pytest.mark.slow
def test_eighty_rounds_of_short_calls_leave_no_graph_and_no_memory(tmp_path):
    """Each graph holds a megabyte: twenty that stay would show."""
    ran = subprocess.run(
        [fresh.python(), "-c", ROUNDS, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    left, (warm, last), (warm_megabytes, last_megabytes) = json.loads(ran.stdout)
    assert warm == last
    assert last_megabytes - warm_megabytes < 15
    freed_by_itself = [after < before for before, after in itertools.pairwise(left[:30])]
    assert any(freed_by_itself)
