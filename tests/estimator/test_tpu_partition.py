"""num_cores_per_replica and input_partition_dims, as far as a TPU can be told without one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.xla.tpu_program import TpuProgram, traced
from estimator2strategy.engine.xla.tpus import MetadataResolver
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from estimator2strategy.estimator.tpu_partition import check_parts_of_one_size, partition_dims
from tests.tpu_program import make_replay

tf1 = tf.compat.v1
tpu = estimator.tpu

IMAGES, LABELS = tf.zeros([2, 4, 6]), {"a": tf.zeros([2]), "b": tf.zeros([2])}


def cores_of(tpu_config, num_hosts=1):
    """The cores of a TPU with two cores on each of four chips, per host."""
    coordinates = np.array(
        [[[x, y + 2 * host, 0, core] for x in (0, 1) for y in (0, 1) for core in (0, 1)]
         for host in range(num_hosts)]
    )  # fmt: skip
    topology = tf.tpu.experimental.Topology(
        mesh_shape=[2, 2 * num_hosts, 1, 2], device_coordinates=coordinates
    )
    return devices.assigned(MetadataResolver(num_hosts, 8), topology, tpu_config)


@pytest.mark.parametrize(("per_replica", "replicas"), [(1, 8), (2, 4), (4, 2), (8, 1)])
def test_replicas_have_as_many_cores_as_asked_for(per_replica, replicas):
    cores = cores_of(tpu.TPUConfig(num_cores_per_replica=per_replica))
    assert cores.strategy.num_replicas_in_sync == replicas
    assert cores.device_assignment.core_assignment.shape == (replicas, per_replica, 4)


@pytest.mark.parametrize(
    ("mesh_shape", "per_replica", "replicas"),
    [
        ((2, 4, 1, 1), 2, 4),  # v5e: one core on each chip
        ((2, 4, 1, 1), 4, 2),
        ((2, 4, 1, 1), 8, 1),
        ((2, 2, 2, 1), 8, 1),  # v4
        ((2, 4, 1, 2), 16, 1),  # the original's block of 4 x 2 chips is wider
    ],
)
def test_replicas_of_other_tpus_have_as_many_cores(mesh_shape, per_replica, replicas):
    cores = np.array([*np.ndindex(*mesh_shape)])[None]
    topology = tf.tpu.experimental.Topology(mesh_shape=mesh_shape, device_coordinates=cores)
    resolver = MetadataResolver(1, cores.shape[1])
    found = devices.assigned(resolver, topology, tpu.TPUConfig(num_cores_per_replica=per_replica))
    assert found.device_assignment.core_assignment.shape == (replicas, per_replica, 4)
    assert len(np.unique(found.device_assignment.core_assignment.reshape(-1, 4), axis=0)) == len(
        cores[0]
    )


def test_a_block_that_fits_into_no_corner_of_the_tpu_is_refused():
    with pytest.raises(ValueError, match=r"no block of so many cores fits .* \[3, 2, 1, 1\]"):
        devices._computation_shape(4, [3, 2, 1, 1])


def test_one_shard_is_one_core():
    cores = cores_of(tpu.TPUConfig(num_shards=1))
    assert cores.strategy.num_replicas_in_sync == 1
    assert cores.device_assignment is None


def test_more_cores_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"larger than the total num of TPU cores"):
        cores_of(tpu.TPUConfig(num_cores_per_replica=16))


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([[1, 2, 1]], ((1, 2, 1), None, None)),
        ([None, None], (None, None, None)),
        ([[1, 1, 2], {"a": None, "b": [2]}], ((1, 1, 2), None, (2,))),
        (None, (None, None, None)),
    ],
)
def test_partition_of_each_tensor(dims, expected):
    assert partition_dims((IMAGES, LABELS), dims, 2) == expected


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ([[1, 2, 0]], "All input partition dims must be >= 1."),
        ([[1, 2, 2]], "The product of each input partition dim should equal to num_cores_per_rep"),
        ([[2, 1]], "Input partition dims must have the same number of dimensions"),
        ([{"x": [1, 2, 1]}], r"input_partition_dims\[0\] mismatched feature keys"),
        ([[1, 2, 1], {"a": None}], r"TPUConfig.input_partition_dims\[1\] mismatched label keys"),
        ([[1, 2, 1], [2]], r"TPUConfig.input_partition_dims\[1\] mismatched label keys"),
    ],
)
def test_partition_that_does_not_fit_is_refused(dims, words):
    with pytest.raises(ValueError, match=words):
        partition_dims((IMAGES, LABELS), dims, 2)


def test_nested_partition_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"\[1\] mismatched the structure of labels"):
        partition_dims((IMAGES, {"a": LABELS}), [[1, 2, 1], {"a": {"c": None}}], 2)


def test_parts_of_different_size_are_refused_on_a_tpu():
    partitions = partition_dims((IMAGES, LABELS), [[1, 3, 1]], 3)
    with pytest.raises(UnsupportedError, match=r"cuts axis 1 of .* into 3 parts"):
        check_parts_of_one_size((IMAGES, LABELS), partitions, is_tpu=True)


def model_fn(features, labels, mode, params):
    context = params["context"]
    assert context.device_assignment.num_cores_per_replica == 2
    with pytest.raises(ValueError, match=r"is not supported for model_parallelism"):
        context.num_of_replicas_per_host  # noqa: B018
    weight = tf1.get_variable("weight", [])
    loss = tf.reduce_mean(features["x"] * weight) + tf.reduce_mean(labels)
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    context = params["context"]
    assert context.num_replicas == 4
    assert params["batch_size"] == 2
    # Where the first core of replica 1 is.
    assert context.device_for_replica(1) == ("/job:localhost/task:0/device:CPU:0", 4)
    example = ({"x": tf.zeros([4, 6])}, tf.zeros([]))
    return tf.data.Dataset.from_tensors(example).repeat().batch(2, drop_remainder=True)


@pytest.mark.evidence("partitions", "traced")
def test_tpu_program_cuts_the_input_for_the_cores_of_a_replica():
    tpu_config = tpu.TPUConfig(
        num_cores_per_replica=2,
        input_partition_dims=[{"x": [1, 2, 1]}, None],
        per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
    )
    config = tpu.RunConfig(model_dir="/never/written", tpu_config=tpu_config)
    model = tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
    model._tpu_cores = cores_of(tpu_config)  # what starting a TPU would have given
    with recording_graph(model):
        recording = record_for(model, ModeKeys.TRAIN, input_fn)
        spec = recording.spec
        function = traced(make_replay(recording), [spec.loss], [spec.train_op])
    program = TpuProgram(function)
    assert program.replicas == 4
    assert program.metadata.attr["num_cores_per_replica"].i == 2
    (sharding,) = program.ops("XlaSharding")
    assert sharding.attr["sharding"].s  # an OpSharding proto: OTHER, tiles [1, 2, 1]
    assert list(sharding.attr["_XlaSharding"].s)[:1] == [0x08]
