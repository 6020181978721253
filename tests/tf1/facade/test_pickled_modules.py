"""Modules of the facade can be sent to other processes, as Beam does with those of functions."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from estimator2strategy.tf1.facade import namespace

MODULES = ["tf.nn", "tf.estimator", "tf.train", "tensorflow_estimator.python.estimator.canned.dnn"]


@pytest.mark.parametrize("tf2", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_pickled_by_its_name(name, tf2):
    module = namespace.resolve(name, tf2)
    assert pickle.loads(pickle.dumps(module)) is module


def test_another_process_finds_the_module():
    sent = pickle.dumps(namespace.resolve("tf.estimator", True))
    ask = f"import pickle; print(pickle.loads({sent!r}).LinearClassifier.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", ask], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.split() == ["LinearClassifier"]
