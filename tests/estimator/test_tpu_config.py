"""TPUConfig and the TPU RunConfig: settings of the TPU system and where it is."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime.lookahead import LoopUnit
from estimator2strategy.estimator.tpu_config import (
    InputPipelineConfig,
    RunConfig,
    TPUConfig,
    parse_iterations_per_loop,
)

ConfigProto = tf.compat.v1.ConfigProto


@pytest.fixture
def tf_config(monkeypatch):
    """Sets TF_CONFIG, which is unset at first."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return lambda **content: monkeypatch.setenv("TF_CONFIG", json.dumps(content))


@pytest.fixture(autouse=True)
def no_tf_config(tf_config):
    pass


def resolver(master="grpc://t:8470", workers=("t:8470",)):
    cluster_spec = tf.train.ClusterSpec({"worker": list(workers)})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(cluster_spec, master=master)


class TestIterationsPerLoop:
    @pytest.mark.parametrize(
        ("value", "parsed"),
        [
            (1, (1, LoopUnit.STEPS)),
            ("123", (123, LoopUnit.STEPS)),
            (np.int64(5), (5, LoopUnit.STEPS)),
            ("300s", (300, LoopUnit.SECONDS)),
            ("5m", (300, LoopUnit.SECONDS)),
            ("2h", (7200, LoopUnit.SECONDS)),
        ],
    )
    def test_steps_and_times_are_read(self, value, parsed):
        assert parse_iterations_per_loop(value) == parsed

    @pytest.mark.parametrize(
        "value", [0, -1, "0", "01", "-1", "-1h", "0s", "1d", "m", "1 h", "1h\n", "", 2.0, None]
    )
    def test_what_is_not_positive_or_no_such_time_is_refused(self, value):
        with pytest.raises(ValueError, match=r"Invalid TPUConfig `iterations_per_loop`.*positive"):
            parse_iterations_per_loop(value)


class TestTPUConfig:
    def test_defaults_are_the_legacy_ones(self):
        assert TPUConfig()._asdict() == {
            "iterations_per_loop": 2,
            "num_shards": None,
            "num_cores_per_replica": None,
            "per_host_input_for_training": InputPipelineConfig.PER_HOST_V1,
            "tpu_job_name": None,
            "initial_infeed_sleep_secs": None,
            "input_partition_dims": None,
            "eval_training_input_configuration": InputPipelineConfig.PER_HOST_V1,
            "experimental_host_call_every_n_steps": 1,
            "experimental_allow_per_host_v2_parallel_get_next": False,
            "experimental_feed_hook": None,
        }

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (True, InputPipelineConfig.PER_HOST_V1),
            (False, InputPipelineConfig.PER_SHARD_V1),
            (InputPipelineConfig.PER_SHARD_V1, InputPipelineConfig.PER_SHARD_V1),
            (InputPipelineConfig.PER_HOST_V2, InputPipelineConfig.PER_HOST_V2),
            (InputPipelineConfig.BROADCAST, InputPipelineConfig.BROADCAST),
        ],
    )
    def test_booleans_name_the_first_two_input_pipelines(self, given, kept):
        assert TPUConfig(per_host_input_for_training=given).per_host_input_for_training == kept

    def test_the_time_of_a_loop_is_kept_as_written(self):
        assert TPUConfig(iterations_per_loop="5m").iterations_per_loop == "5m"

    def test_a_field_cannot_be_assigned(self):
        with pytest.raises(AttributeError):
            TPUConfig().num_shards = 8

    @pytest.mark.parametrize(
        ("setting", "error", "message"),
        [
            ({"iterations_per_loop": 0}, ValueError, "must be positive"),
            ({"num_shards": 0}, ValueError, "TPUConfig num_shards must be positive"),
            ({"num_shards": 2.0}, TypeError, "TPUConfig num_shards must be int"),
            ({"initial_infeed_sleep_secs": -1}, ValueError, "sleep_secs must be positive"),
            (
                {"num_cores_per_replica": 7},
                ValueError,
                "num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got 7",
            ),
            (
                {"eval_training_input_configuration": InputPipelineConfig.BROADCAST},
                ValueError,
                "must be PER_HOST_V1 or SLICED; got 4",
            ),
        ],
    )
    def test_a_value_out_of_range_is_refused(self, setting, error, message):
        with pytest.raises(error, match=message):
            TPUConfig(**setting)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"input_partition_dims": [1, 2, 3]}, "list/tuple with one or two elements"),
            ({"per_host_input_for_training": True}, "only supported in PER_HOST_V2 mode"),
            ({"num_cores_per_replica": None}, "requires setting num_cores_per_replica"),
        ],
    )
    def test_partition_dims_need_cores_and_per_host_v2(self, changed, message):
        settings = {
            "input_partition_dims": [[1, 2], None],
            "per_host_input_for_training": InputPipelineConfig.PER_HOST_V2,
            "num_cores_per_replica": 2,
        }
        assert TPUConfig(**settings)
        with pytest.raises(ValueError, match=message):
            TPUConfig(**{**settings, **changed})

    def test_the_job_name_can_come_from_tf_config(self, tf_config):
        tf_config(service={"tpu_worker_job_name": "tpu_worker"})
        assert TPUConfig().tpu_job_name == "tpu_worker"


class TestRunConfig:
    def test_it_has_a_default_tpu_config(self):
        assert RunConfig().tpu_config == TPUConfig()

    def test_it_takes_the_settings_of_an_estimators_config(self):
        config = RunConfig(model_dir="/tmp/m", save_checkpoints_steps=5)
        assert (config.model_dir, config.save_checkpoints_steps) == ("/tmp/m", 5)

    def test_tpu_config_can_be_replaced(self):
        config = RunConfig().replace(tpu_config=TPUConfig(num_shards=8), tf_random_seed=1)
        assert (config.tpu_config.num_shards, config.tf_random_seed) == (8, 1)

    def test_replace_keeps_tpu_config_and_cluster(self):
        cluster = resolver()
        config = RunConfig(cluster=cluster, tpu_config=TPUConfig(num_shards=8))
        replaced = config.replace(model_dir="/tmp/m")
        assert replaced.tpu_config == config.tpu_config
        assert replaced.cluster is cluster

    @pytest.mark.parametrize("name", ["master", "evaluation_master", "cluster"])
    def test_addresses_cannot_be_replaced(self, name):
        with pytest.raises(ValueError, match=f"Replacing {name} is not supported"):
            RunConfig().replace(**{name: "m"})

    def test_session_config_stays_none_in_a_cluster_of_tf_config(self, tf_config):
        tf_config(cluster={"chief": ["c:0"], "worker": ["w:0"]}, task={"type": "chief", "index": 0})
        assert RunConfig().session_config is None


def addresses(config):
    return config.master, config.evaluation_master


class TestAddresses:
    def test_they_are_this_process_by_default(self):
        assert addresses(RunConfig()) == ("", "")

    def test_evaluation_happens_where_training_does(self):
        assert addresses(RunConfig(master="m")) == ("m", "m")

    def test_evaluation_can_happen_elsewhere(self):
        assert addresses(RunConfig(master="m", evaluation_master="e")) == ("m", "e")

    def test_evaluation_can_happen_in_this_process(self):
        assert addresses(RunConfig(master="m", evaluation_master="")) == ("m", "")

    def test_they_can_come_from_tf_config(self, tf_config):
        tf_config(session_master="m", eval_session_master="e")
        assert addresses(RunConfig()) == ("m", "e")

    def test_arguments_win_over_tf_config_one_by_one(self, tf_config):
        tf_config(session_master="m", eval_session_master="e")
        assert addresses(RunConfig(master="mine")) == ("mine", "e")

    def test_an_evaluator_task_stays_where_tf_config_put_it(self, tf_config):
        tf_config(cluster={"chief": ["c:0"]}, task={"type": "evaluator", "index": 0})
        assert RunConfig(master="m").evaluation_master == ""


class TestCluster:
    def test_the_resolver_gives_the_addresses(self):
        assert addresses(RunConfig(cluster=resolver())) == ("grpc://t:8470", "grpc://t:8470")

    def test_the_resolver_gives_the_cluster_of_the_session(self):
        config = RunConfig(cluster=resolver(workers=["t:1", "t:2"]))
        (job,) = config.session_config.cluster_def.job
        assert (job.name, dict(job.tasks)) == ("worker", {0: "t:1", 1: "t:2"})
        assert config.session_config.allow_soft_placement
        assert config.session_config.isolate_session_state

    def test_the_users_session_config_is_kept_but_not_changed(self):
        session_config = ConfigProto(log_device_placement=True)
        config = RunConfig(cluster=resolver(), session_config=session_config)
        assert config.session_config.log_device_placement
        assert config.session_config.HasField("cluster_def")
        assert session_config == ConfigProto(log_device_placement=True)

    def test_master_and_cluster_together_are_refused(self):
        with pytest.raises(ValueError, match="Both master and cluster are set"):
            RunConfig(master="m", cluster=resolver())

    def test_two_clusters_are_refused(self):
        session_config = ConfigProto()
        session_config.cluster_def.job.add(name="worker")
        with pytest.raises(ValueError, match="You cannot provide a ClusterResolver and session_"):
            RunConfig(cluster=resolver(), session_config=session_config)

    @pytest.mark.parametrize("name", ["", None])
    def test_a_nameless_tpu_is_not_searched_for(self, name):
        nameless = mock.Mock(tf.distribute.cluster_resolver.TPUClusterResolver, _tpu=name)
        assert addresses(RunConfig(cluster=nameless)) == ("", "")
        nameless.master.assert_not_called()
        nameless.cluster_spec.assert_not_called()

    def test_a_local_tpu_is_this_machine(self):
        local = tf.distribute.cluster_resolver.TPUClusterResolver("local")
        assert addresses(RunConfig(cluster=local)) == ("", "")

    def test_a_tpu_given_by_address_is_not_connected_to(self):
        by_address = tf.distribute.cluster_resolver.TPUClusterResolver("grpc://10.0.0.1:8470")
        assert RunConfig(cluster=by_address).master == "grpc://10.0.0.1:8470"


def test_a_setting_of_a_run_given_twice_is_named():
    """TF 1.15: "__init__() got multiple values for argument 'tpu_config'"."""
    with pytest.raises(TypeError, match="multiple values for argument 'tpu_config'") as raised:
        RunConfig("x", tf_random_seed=7, tpu_config=TPUConfig(5))
    assert "Leave it out" not in str(raised.value)
