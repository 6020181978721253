"""Queues in an input_fn: the batches, losses and ends of TF 1.15."""

from __future__ import annotations

import json

import numpy as np
import pytest
import queue_inputs

import estimator2strategy.tf1 as tf

GOLDEN = json.loads(queue_inputs.GOLDEN.read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("queues"))
    queue_inputs.write_files(tf, folder)
    return folder


@pytest.mark.parametrize("name", queue_inputs.ORDERED)
def test_one_reader_gives_the_batches_and_losses_of_tf_1_15_in_their_order(name, data):
    found, golden = queue_inputs.made(tf, name, data), GOLDEN[name]
    np.testing.assert_allclose(found.pop("losses"), golden.pop("losses"), rtol=1e-5, atol=1e-7)
    assert found.pop("evaluated") == pytest.approx(golden.pop("evaluated"), rel=1e-5)
    assert found == golden


@pytest.mark.parametrize("name", queue_inputs.UNORDERED)
def test_several_threads_give_each_example_as_often_as_in_tf_1_15(name, data):
    assert queue_inputs.made(tf, name, data) == GOLDEN[name]
