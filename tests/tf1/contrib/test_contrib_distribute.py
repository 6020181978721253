"""`tf.contrib.distribute`: strategies with the arguments of the contrib version."""

import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError

distribute = tf.contrib.distribute


def test_mirrored_strategy_takes_devices_or_a_number_of_gpus():
    two = distribute.MirroredStrategy(devices=["/cpu:0", "/cpu:1"])
    assert isinstance(two, tensorflow.distribute.Strategy)
    assert two.num_replicas_in_sync == 2
    assert distribute.MirroredStrategy(num_gpus=0).num_replicas_in_sync == 1
    assert distribute.OneDeviceStrategy("/cpu:0").num_replicas_in_sync == 1


def test_contradicting_arguments_are_refused():
    with pytest.raises(ValueError, match="both `num_gpus` and `num_gpus_per_worker`"):
        distribute.MirroredStrategy(num_gpus=1, num_gpus_per_worker=1)
    with pytest.raises(ValueError, match="only specify one of"):
        distribute.MirroredStrategy(["/cpu:0"], num_gpus=1)
    with pytest.raises(UnsupportedError, match="auto_shard_dataset"):
        distribute.MirroredStrategy(auto_shard_dataset=True)


def test_all_reduce_names_its_algorithm():
    ops = distribute.AllReduceCrossDeviceOps("hierarchical_copy", num_packs=2)
    assert isinstance(ops, tensorflow.distribute.HierarchicalCopyAllReduce)
    assert isinstance(distribute.AllReduceCrossDeviceOps(), tensorflow.distribute.NcclAllReduce)
    with pytest.raises(ValueError, match="not 'ring'"):
        distribute.AllReduceCrossDeviceOps("ring")


def test_a_distribute_config_gives_a_run_its_strategies():
    strategy = tf.contrib.distribute.OneDeviceStrategy("/cpu:0")
    both = tf.contrib.distribute.DistributeConfig(strategy, eval_distribute=strategy)
    config = tf.estimator.RunConfig(experimental_distribute=both)
    assert config.train_distribute is strategy
    assert config.eval_distribute is strategy


def test_a_client_that_drives_the_servers_of_a_cluster_is_refused():
    with pytest.raises(UnsupportedError, match="TF_CONFIG"):
        tf.contrib.distribute.DistributeConfig(remote_cluster={"worker": ["a:1"]})


def test_older_names_of_the_strategy_are_those_of_today():
    assert not tf.contrib.distribute.has_distribution_strategy()
    assert tf.contrib.distribute.get_distribution_strategy() is tf.distribute.get_strategy()
