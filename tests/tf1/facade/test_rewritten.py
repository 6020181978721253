"""Computations for a TPU in a plain Session run on an emulated core."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime import devices
from estimator2strategy.errors import DeviceError, UnsupportedError
from estimator2strategy.tf1.facade import tpu_programs
from tests import legacy_programs
from tests.same import assert_same

# By hand: w starts as [1, 1]; the gradients of the first steps are [17, 24] and [11.94, 16.82].
EXPECTED = {
    "losses": [14.5, 7.14170, 3.52230],
    "sharded": [[[2.0, 4.0], [6.0, 8.0]], [10.0]],
    "parallel": [[[2.0, 3.0], [4.0, 5.0]]],
    "repeated": [31.0],
    "named": {"a": 1.0, "b": [2.0]},
    "nothing": None,
}


@pytest.fixture
def one_core(monkeypatch):
    monkeypatch.setattr(devices, "_emulated_cores", 1)


@pytest.mark.oldest
def test_a_program_runs_its_computations_on_an_emulated_core(one_core):
    with legacy_programs.imported("rewritten") as program, tf.Graph().as_default() as graph:
        found = program.main()
    assert_same(found, EXPECTED, "program")
    assert graph.get_operation_by_name("w").type == "VarHandleOp"


def test_several_cores_in_a_session_are_refused(one_core):
    with pytest.raises(UnsupportedError, match=r"tpu\.shard for 2 cores in a Session: only one"):
        tpu_programs.shard(lambda x: x, [tf.ones([2])], num_shards=2)
    with pytest.raises(UnsupportedError, match=r"tpu\.replicate for 3 cores"):
        tpu_programs.replicate(lambda: 1.0, [[], [], []])


def test_without_a_tpu_nothing_starts(monkeypatch):
    monkeypatch.setattr(devices, "_emulated_cores", 0)
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(DeviceError, match="e2s run --emulate-tpu-cores=1"):
        tpu_programs.initialize_system()


def test_graphs_for_a_tpu_can_be_built_without_one(monkeypatch):
    monkeypatch.setattr(devices, "_emulated_cores", 0)
    with tf.Graph().as_default() as graph:
        tpu_programs.rewrite(lambda: tf.constant(1.0))
    assert "TPUReplicateMetadata" in {op.type for op in graph.get_operations()}
