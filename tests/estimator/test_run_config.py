"""RunConfig: defaults, checks, `replace`, and the place in the cluster that TF_CONFIG gives."""

from __future__ import annotations

import copy
import json
import pathlib
import types

import pytest
import tensorflow as tf

from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.tf_config import TaskType

ConfigProto = tf.compat.v1.ConfigProto
CLUSTER = {"chief": ["c:0"], "worker": ["w:0", "w:1"], "ps": ["p:0", "p:1"]}
CLUSTER_WITH_MASTER = {"master": ["m:0"], "worker": ["w:0"], "ps": ["p:0"]}


@pytest.fixture
def tf_config(monkeypatch):
    """Sets TF_CONFIG, which is unset at first."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return lambda **content: monkeypatch.setenv("TF_CONFIG", json.dumps(content))


@pytest.fixture(autouse=True)
def no_tf_config(tf_config):
    pass


def task(job, index=0):
    return {"type": job, "index": index}


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "default"),
        [
            ("model_dir", None),
            ("tf_random_seed", None),
            ("save_summary_steps", 100),
            ("save_checkpoints_steps", None),
            ("save_checkpoints_secs", 600),
            ("session_config", None),
            ("keep_checkpoint_max", 5),
            ("keep_checkpoint_every_n_hours", 10000),
            ("log_step_count_steps", 100),
            ("train_distribute", None),
            ("device_fn", None),
            ("protocol", None),
            ("eval_distribute", None),
            ("experimental_max_worker_delay_secs", None),
            ("session_creation_timeout_secs", 7200),
            ("checkpoint_save_graph_def", True),
            ("service", None),
        ],
    )
    def test_defaults_are_the_legacy_ones(self, name, default):
        assert getattr(RunConfig(), name) == default

    def test_settings_can_be_given_by_position(self):
        config = RunConfig("/tmp/m", 1, 2, 3)
        assert (config.model_dir, config.tf_random_seed) == ("/tmp/m", 1)
        assert (config.save_summary_steps, config.save_checkpoints_steps) == (2, 3)

    def test_a_setting_cannot_be_assigned(self):
        with pytest.raises(AttributeError, match=r"model_dir of RunConfig cannot be set"):
            RunConfig().model_dir = "/tmp/m"

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ({"model_dir": ""}, "model_dir should be non-empty"),
            ({"tf_random_seed": 1.0}, "tf_random_seed must be integer"),
            ({"save_summary_steps": -1}, "save_summary_steps should be >= 0"),
            ({"save_checkpoints_steps": -1}, "save_checkpoints_steps should be >= 0"),
            ({"save_checkpoints_secs": -1}, "save_checkpoints_secs should be >= 0"),
            ({"session_config": {}}, "session_config must be instance of ConfigProto"),
            ({"keep_checkpoint_max": -1}, "keep_checkpoint_max should be >= 0"),
            ({"keep_checkpoint_every_n_hours": 0}, "keep_checkpoint_every_n_hours should be > 0"),
            ({"log_step_count_steps": 0}, "log_step_count_steps should be > 0"),
            ({"device_fn": lambda x: x}, 'device_fn must be callable with exactly one arg.*"op"'),
            ({"protocol": "http"}, "protocol should be grpc or grpc.verbs"),
            (
                {"experimental_max_worker_delay_secs": "5"},
                "experimental_max_worker_delay_secs must be an integer if set",
            ),
            ({"session_creation_timeout_secs": 0}, "session_creation_timeout_secs should be > 0"),
        ],
    )
    def test_a_value_out_of_range_is_refused(self, setting, message):
        with pytest.raises(ValueError, match=message):
            RunConfig(**setting)
        with pytest.raises(ValueError, match=message):
            RunConfig().replace(**setting)

    def test_a_path_object_becomes_a_string(self):
        assert RunConfig(model_dir=pathlib.Path("/tmp/m")).model_dir == "/tmp/m"


class TestCheckpointInterval:
    def test_steps_alone_switch_seconds_off(self):
        config = RunConfig(save_checkpoints_steps=10)
        assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (10, None)

    def test_none_for_steps_alone_switches_checkpoints_off(self):
        config = RunConfig(save_checkpoints_steps=None)
        assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, None)

    def test_both_are_refused(self):
        with pytest.raises(ValueError, match="`save_checkpoints_secs` cannot be both set"):
            RunConfig(save_checkpoints_steps=10, save_checkpoints_secs=10)

    def test_replacing_seconds_switches_steps_off(self):
        config = RunConfig(save_checkpoints_steps=10).replace(save_checkpoints_secs=20)
        assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 20)

    def test_replacing_both_is_refused(self):
        with pytest.raises(ValueError, match="cannot be both set"):
            RunConfig().replace(save_checkpoints_steps=1, save_checkpoints_secs=1)


class TestReplaceAndCopy:
    def test_replace_leaves_the_original_alone(self):
        config = RunConfig(tf_random_seed=1)
        assert config.replace(tf_random_seed=2).tf_random_seed == 2
        assert config.tf_random_seed == 1

    @pytest.mark.parametrize("name", ["master", "task_id", "no_such_setting"])
    def test_what_is_no_setting_cannot_be_replaced(self, name):
        with pytest.raises(ValueError, match=f"Replacing {name} is not supported"):
            RunConfig().replace(**{name: 1})

    def test_attributes_of_the_program_survive_replace(self):
        config = RunConfig()
        config.my_list = [1]
        replaced = config.replace(model_dir="/tmp/m")
        assert replaced.my_list == [1]
        assert replaced.my_list is not config.my_list

    def test_a_subclass_stays_one(self):
        class MyConfig(RunConfig):
            pass

        assert type(MyConfig().replace(tf_random_seed=1)) is MyConfig

    def test_a_copy_has_its_own_session_config(self):
        config = RunConfig(session_config=ConfigProto())
        copy.deepcopy(config).session_config.allow_soft_placement = True
        assert not config.session_config.allow_soft_placement

    def test_a_copy_shares_the_strategy(self):
        strategy = tf.distribute.OneDeviceStrategy("cpu:0")
        config = RunConfig(train_distribute=strategy, eval_distribute=strategy)
        copied = copy.deepcopy(config)
        assert copied.train_distribute is strategy
        assert copied.eval_distribute is strategy


class TestStrategies:
    def test_they_can_come_in_a_distribute_config(self):
        strategy = tf.distribute.OneDeviceStrategy("cpu:0")
        both = types.SimpleNamespace(
            train_distribute=strategy, eval_distribute=None, remote_cluster=None
        )
        config = RunConfig(experimental_distribute=both)
        assert config.train_distribute is strategy
        assert config.eval_distribute is None

    def test_the_same_one_cannot_come_in_two_ways(self):
        strategy = tf.distribute.OneDeviceStrategy("cpu:0")
        both = types.SimpleNamespace(train_distribute=strategy, eval_distribute=None)
        with pytest.raises(ValueError, match="Either `train_distribute`"):
            RunConfig(train_distribute=strategy, experimental_distribute=both)

    @pytest.mark.parametrize("name", ["train_distribute", "eval_distribute"])
    def test_the_tf2_parameter_server_strategy_is_refused(self, name):
        strategy_class = tf.distribute.experimental.ParameterServerStrategy
        strategy = strategy_class.__new__(strategy_class)
        with pytest.raises(ValueError, match="parameter server strategy with estimator"):
            RunConfig(**{name: strategy})

    def test_the_first_worker_leads_a_cluster_without_chief(self, tf_config):
        tf_config(cluster={"worker": ["w:0", "w:1"]}, task=task("worker", 0))
        config = RunConfig(train_distribute=tf.distribute.OneDeviceStrategy("cpu:0"))
        assert config.is_chief
        assert (config.master, config.num_worker_replicas) == ("grpc://w:0", 2)

    def test_workers_of_a_strategy_see_each_others_devices(self, tf_config):
        tf_config(cluster=CLUSTER, task=task("worker", 1))
        config = RunConfig(train_distribute=tf.distribute.OneDeviceStrategy("cpu:0"))
        assert config.session_config is None
        assert not config.is_chief


def place(config):
    return {
        name: getattr(config, name)
        for name in (
            "task_type",
            "task_id",
            "master",
            "evaluation_master",
            "num_ps_replicas",
            "num_worker_replicas",
            "is_chief",
            "global_id_in_cluster",
        )
    }


class TestPlaceInCluster:
    def test_without_tf_config_this_process_is_everything(self):
        config = RunConfig()
        assert config.cluster_spec == tf.train.ClusterSpec({})
        assert place(config) == {
            "task_type": TaskType.WORKER,
            "task_id": 0,
            "master": "",
            "evaluation_master": "",
            "num_ps_replicas": 0,
            "num_worker_replicas": 1,
            "is_chief": True,
            "global_id_in_cluster": 0,
        }

    def test_sessions_without_cluster_can_be_elsewhere(self, tf_config):
        tf_config(session_master="m", eval_session_master="e")
        assert (RunConfig().master, RunConfig().evaluation_master) == ("m", "e")

    @pytest.mark.parametrize(
        ("job", "index", "master", "global_id", "is_chief"),
        [
            ("chief", 0, "grpc://c:0", 0, True),
            ("worker", 1, "grpc://w:1", 2, False),
            ("ps", 1, "grpc://p:1", 4, False),
        ],
    )
    def test_each_task_finds_its_place(self, tf_config, job, index, master, global_id, is_chief):
        tf_config(cluster=CLUSTER, task=task(job, index))
        assert place(RunConfig()) == {
            "task_type": job,
            "task_id": index,
            "master": master,
            "evaluation_master": "",
            "num_ps_replicas": 2,
            "num_worker_replicas": 3,
            "is_chief": is_chief,
            "global_id_in_cluster": global_id,
        }

    def test_the_evaluator_does_not_see_the_cluster(self, tf_config):
        tf_config(cluster=CLUSTER, task=task("evaluator", 9), eval_session_master="e")
        config = RunConfig()
        assert config.cluster_spec == tf.train.ClusterSpec({})
        assert place(config) == {
            "task_type": TaskType.EVALUATOR,
            "task_id": 9,
            "master": "",
            "evaluation_master": "e",
            "num_ps_replicas": 0,
            "num_worker_replicas": 0,
            "is_chief": False,
            "global_id_in_cluster": None,
        }

    def test_other_jobs_are_numbered_by_name_and_ps_last(self, tf_config):
        cluster = {**CLUSTER, "zebra": ["z:0"], "ant": ["a:0"]}
        ids = {}
        for job in cluster:
            tf_config(cluster=cluster, task=task(job))
            ids[job] = RunConfig().global_id_in_cluster
        assert ids == {"chief": 0, "ant": 1, "worker": 2, "zebra": 4, "ps": 5}

    def test_master_is_an_old_name_of_chief(self, tf_config):
        tf_config(cluster=CLUSTER_WITH_MASTER, task=task("master"))
        config = RunConfig()
        assert (config.is_chief, config.num_worker_replicas) == (True, 2)
        assert config.global_id_in_cluster == 0

    def test_the_only_node_of_a_cluster_talks_to_itself(self, tf_config):
        tf_config(cluster={"chief": ["c:0"]}, task=task("chief"))
        assert RunConfig().master == ""

    def test_session_master_wins_over_the_cluster(self, tf_config):
        tf_config(cluster=CLUSTER, task=task("worker"), session_master="m")
        assert RunConfig().master == "m"

    def test_service_is_passed_on(self, tf_config):
        tf_config(service={"key": 1})
        assert RunConfig().service == {"key": 1}

    @pytest.mark.parametrize(
        ("job", "filters"),
        [
            ("chief", ["/job:ps", "/job:chief"]),
            ("worker", ["/job:ps", "/job:worker/task:0"]),
            ("ps", ["/job:ps", "/job:worker", "/job:chief", "/job:master"]),
        ],
    )
    def test_a_session_config_with_device_filters_is_made(self, tf_config, job, filters):
        tf_config(cluster=CLUSTER, task=task(job))
        assert list(RunConfig().session_config.device_filters) == filters

    def test_the_users_session_config_is_kept(self, tf_config):
        tf_config(cluster=CLUSTER, task=task("worker"))
        assert RunConfig(session_config=ConfigProto()).session_config == ConfigProto()


class TestBadTFConfig:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"task": task("chief")}, "task type must be WORKER"),
            ({"task": task("worker", 1)}, "task index must be 0"),
            ({"cluster": {"worker": ["w:0"]}, "task": task("worker")}, 'must have one "chief"'),
            (
                {"cluster": {"chief": ["c:0", "c:1"]}, "task": task("chief")},
                'must have only one "chief" node',
            ),
            ({"cluster": CLUSTER}, "task type must be set"),
            ({"cluster": CLUSTER, "task": {"type": "ps"}}, "task index must be set"),
            ({"cluster": CLUSTER, "task": task("ps", -1)}, "must be non-negative number"),
            ({"cluster": CLUSTER, "task": task("ps", 2)}, "2 is not a valid task_id"),
            ({"cluster": CLUSTER, "task": task("gpu")}, "gpu is not a valid task_type"),
            (
                {"cluster": CLUSTER_WITH_MASTER, "task": task("evaluator")},
                "task_type `evaluator` is not supported",
            ),
            (
                {"cluster": {**CLUSTER, "master": ["m:0"]}, "task": task("chief")},
                "job `chief` is not supported",
            ),
            ({"model_dir": ""}, "model_dir in TF_CONFIG should be non-empty"),
        ],
    )
    def test_it_is_refused_with_the_reason(self, tf_config, content, message):
        tf_config(**content)
        with pytest.raises(ValueError, match=message):
            RunConfig()

    def test_a_service_that_is_no_dict_is_a_type_error(self, tf_config):
        tf_config(service="s")
        with pytest.raises(TypeError, match='"service" is set in TF_CONFIG, it must be a dict'):
            RunConfig()

    def test_text_that_is_no_json_is_refused_by_name(self, monkeypatch):
        monkeypatch.setenv("TF_CONFIG", "{cluster")
        with pytest.raises(ValueError, match="TF_CONFIG is not valid JSON"):
            RunConfig()


class TestModelDir:
    def test_it_can_come_from_tf_config(self, tf_config):
        tf_config(model_dir="/tmp/m")
        assert RunConfig().model_dir == "/tmp/m"

    def test_both_places_may_agree(self, tf_config):
        tf_config(model_dir="/tmp/m")
        assert RunConfig(model_dir="/tmp/m").model_dir == "/tmp/m"

    def test_both_places_must_not_disagree(self, tf_config):
        tf_config(model_dir="/tmp/m")
        with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_"):
            RunConfig(model_dir="/tmp/other")
