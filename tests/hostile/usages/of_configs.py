"""Wrong usages of `RunConfig`, `TPUConfig` and of `TF_CONFIG`."""

from __future__ import annotations

import json
import os
from typing import Any
from unittest import mock

import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.estimator import RunConfig
from tests.hostile.usages.usage import Usage

tf1 = tf.compat.v1
TPUConfig, TPURunConfig = estimator.tpu.TPUConfig, estimator.tpu.RunConfig


def under(tf_config: Any) -> Any:
    """`TF_CONFIG` for the time of a call."""
    text = tf_config if isinstance(tf_config, str) else json.dumps(tf_config)
    return mock.patch.dict(os.environ, TF_CONFIG=text)


RUN_CONFIG = (
    Usage("model_dir is empty", "model_dir", lambda d: RunConfig(model_dir="")),
    Usage("model_dir is a number", "model_dir", lambda d: RunConfig(model_dir=3)),
    Usage("tf_random_seed is a string", "tf_random_seed", lambda d: RunConfig(d, "1")),
    Usage("tf_random_seed is a float", "tf_random_seed", lambda d: RunConfig(d, 1.5)),
    Usage(
        "save_summary_steps is a string",
        "save_summary_steps",
        lambda d: RunConfig(save_summary_steps="100"),
    ),
    Usage(
        "save_summary_steps is negative",
        "save_summary_steps",
        lambda d: RunConfig(save_summary_steps=-1),
    ),
    Usage(
        "save_checkpoints_steps is a string",
        "save_checkpoints_steps",
        lambda d: RunConfig(save_checkpoints_steps="100"),
    ),
    Usage(
        "save_checkpoints_steps is negative",
        "save_checkpoints_steps",
        lambda d: RunConfig(save_checkpoints_steps=-1),
    ),
    Usage(
        "save_checkpoints_secs is a list",
        "save_checkpoints_secs",
        lambda d: RunConfig(save_checkpoints_secs=[60]),
    ),
    Usage(
        "both intervals",
        "save_checkpoints_secs",
        lambda d: RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1),
    ),
    Usage(
        "session_config is a dict", "session_config", lambda d: RunConfig(session_config={"a": 1})
    ),
    Usage(
        "session_config is a RunConfig",
        "session_config",
        lambda d: RunConfig(session_config=RunConfig()),
    ),
    Usage(
        "keep_checkpoint_max is a string",
        "keep_checkpoint_max",
        lambda d: RunConfig(keep_checkpoint_max="5"),
    ),
    Usage(
        "keep_checkpoint_max is negative",
        "keep_checkpoint_max",
        lambda d: RunConfig(keep_checkpoint_max=-1),
    ),
    Usage(
        "keep_checkpoint_every_n_hours is 0",
        "keep_checkpoint_every_n_hours",
        lambda d: RunConfig(keep_checkpoint_every_n_hours=0),
    ),
    Usage(
        "keep_checkpoint_every_n_hours is a string",
        "keep_checkpoint_every_n_hours",
        lambda d: RunConfig(keep_checkpoint_every_n_hours="1h"),
    ),
    Usage(
        "log_step_count_steps is 0",
        "log_step_count_steps",
        lambda d: RunConfig(log_step_count_steps=0),
    ),
    Usage(
        "log_step_count_steps is a string",
        "log_step_count_steps",
        lambda d: RunConfig(log_step_count_steps="100"),
    ),
    Usage(
        "train_distribute is a name",
        "train_distribute",
        lambda d: RunConfig(train_distribute="mirrored"),
    ),
    Usage(
        "train_distribute is a class",
        "train_distribute",
        lambda d: RunConfig(train_distribute=tf.distribute.MirroredStrategy),
    ),
    Usage(
        "train_distribute is True", "train_distribute", lambda d: RunConfig(train_distribute=True)
    ),
    Usage(
        "eval_distribute is a name", "eval_distribute", lambda d: RunConfig(eval_distribute="tpu")
    ),
    Usage(
        "eval_distribute is a list", "eval_distribute", lambda d: RunConfig(eval_distribute=["a"])
    ),
    Usage(
        "experimental_distribute is a name",
        "experimental_distribute",
        lambda d: RunConfig(experimental_distribute="mirrored"),
    ),
    Usage("device_fn is a name", "device_fn", lambda d: RunConfig(device_fn="/cpu:0")),
    Usage(
        "device_fn takes another argument", "device_fn", lambda d: RunConfig(device_fn=lambda x: x)
    ),
    Usage("protocol is http", "protocol", lambda d: RunConfig(protocol="http")),
    Usage("protocol is a number", "protocol", lambda d: RunConfig(protocol=3)),
    Usage(
        "experimental_max_worker_delay_secs is a string",
        "experimental_max_worker_delay_secs",
        lambda d: RunConfig(experimental_max_worker_delay_secs="5"),
    ),
    Usage(
        "session_creation_timeout_secs is 0",
        "session_creation_timeout_secs",
        lambda d: RunConfig(session_creation_timeout_secs=0),
    ),
    Usage(
        "session_creation_timeout_secs is a string",
        "session_creation_timeout_secs",
        lambda d: RunConfig(session_creation_timeout_secs="2h"),
    ),
    Usage(
        "checkpoint_save_graph_def is 'False'",
        "checkpoint_save_graph_def",
        lambda d: RunConfig(checkpoint_save_graph_def="False"),
    ),
    Usage("a keyword that is misspelt", "save_steps", lambda d: RunConfig(save_steps=100)),
    Usage("replace: no such setting", "is_chief", lambda d: RunConfig().replace(is_chief=True)),
    Usage(
        "replace: a wrong value",
        "keep_checkpoint_max",
        lambda d: RunConfig().replace(keep_checkpoint_max="5"),
    ),
    Usage(
        "setting an attribute",
        "save_summary_steps",
        lambda d: setattr(RunConfig(), "save_summary_steps", 3),
    ),
    Usage(
        "save_checkpoints_steps is 100.0",
        "save_checkpoints_steps",
        lambda d: RunConfig(save_checkpoints_steps=100.0),
        taken="programs compute it, and the original counts to it",
    ),
)

TPU_CONFIG = (
    Usage("iterations_per_loop is 0", "iterations_per_loop", lambda d: TPUConfig(0)),
    Usage("iterations_per_loop is a word", "iterations_per_loop", lambda d: TPUConfig("many")),
    Usage("iterations_per_loop is None", "iterations_per_loop", lambda d: TPUConfig(None)),
    Usage("iterations_per_loop is 1.5", "iterations_per_loop", lambda d: TPUConfig(1.5)),
    Usage("iterations_per_loop in days", "iterations_per_loop", lambda d: TPUConfig("1d")),
    Usage("num_shards is a string", "num_shards", lambda d: TPUConfig(num_shards="8")),
    Usage("num_shards is 0", "num_shards", lambda d: TPUConfig(num_shards=0)),
    Usage("num_shards is 8.0", "num_shards", lambda d: TPUConfig(num_shards=8.0)),
    Usage(
        "num_cores_per_replica is 3",
        "num_cores_per_replica",
        lambda d: TPUConfig(num_cores_per_replica=3),
    ),
    Usage(
        "num_cores_per_replica is a string",
        "num_cores_per_replica",
        lambda d: TPUConfig(num_cores_per_replica="2"),
    ),
    Usage(
        "per_host_input_for_training is 17",
        "per_host_input_for_training",
        lambda d: TPUConfig(per_host_input_for_training=17),
    ),
    Usage(
        "per_host_input_for_training is a name",
        "per_host_input_for_training",
        lambda d: TPUConfig(per_host_input_for_training="PER_HOST_V2"),
    ),
    Usage(
        "per_host_input_for_training is None",
        "per_host_input_for_training",
        lambda d: TPUConfig(per_host_input_for_training=None),
        taken="what is none of the others runs as PER_HOST_V1 in the original, too",
    ),
    Usage("tpu_job_name is a number", "tpu_job_name", lambda d: TPUConfig(tpu_job_name=3)),
    Usage(
        "initial_infeed_sleep_secs is a string",
        "initial_infeed_sleep_secs",
        lambda d: TPUConfig(initial_infeed_sleep_secs="5"),
    ),
    Usage(
        "initial_infeed_sleep_secs is negative",
        "initial_infeed_sleep_secs",
        lambda d: TPUConfig(initial_infeed_sleep_secs=-1),
    ),
    Usage(
        "input_partition_dims is a number",
        "input_partition_dims",
        lambda d: TPUConfig(input_partition_dims=2),
    ),
    Usage(
        "input_partition_dims has three",
        "input_partition_dims",
        lambda d: TPUConfig(input_partition_dims=[[1], [1], [1]]),
    ),
    Usage(
        "input_partition_dims without PER_HOST_V2",
        "input_partition_dims",
        lambda d: TPUConfig(input_partition_dims=[[1, 2]], num_cores_per_replica=2),
    ),
    Usage(
        "input_partition_dims without num_cores_per_replica",
        "input_partition_dims",
        lambda d: TPUConfig(per_host_input_for_training=3, input_partition_dims=[[1, 2]]),
    ),
    Usage(
        "eval_training_input_configuration is PER_SHARD",
        "eval_training_input_configuration",
        lambda d: TPUConfig(eval_training_input_configuration=1),
    ),
    Usage(
        "eval_training_input_configuration is a name",
        "eval_training_input_configuration",
        lambda d: TPUConfig(eval_training_input_configuration="SLICED"),
    ),
    Usage(
        "experimental_host_call_every_n_steps is 0",
        "experimental_host_call_every_n_steps",
        lambda d: TPUConfig(experimental_host_call_every_n_steps=0),
    ),
    Usage(
        "experimental_host_call_every_n_steps is a string",
        "experimental_host_call_every_n_steps",
        lambda d: TPUConfig(experimental_host_call_every_n_steps="2"),
    ),
    Usage("a keyword that is misspelt", "iterations", lambda d: TPUConfig(iterations=100)),
)

TPU_RUN_CONFIG = (
    Usage("tpu_config is a dict", "tpu_config", lambda d: TPURunConfig({"num_shards": 8})),
    Usage("tpu_config is a number", "tpu_config", lambda d: TPURunConfig(tpu_config=100)),
    Usage("tpu_config is the class", "tpu_config", lambda d: TPURunConfig(tpu_config=TPUConfig)),
    Usage("cluster is a name", "cluster", lambda d: TPURunConfig(cluster="my-tpu")),
    Usage("cluster is a dict", "cluster", lambda d: TPURunConfig(cluster={"worker": ["a:1"]})),
    Usage("master is a number", "master", lambda d: TPURunConfig(master=8470)),
    Usage(
        "evaluation_master is a list",
        "evaluation_master",
        lambda d: TPURunConfig(evaluation_master=["a"]),
    ),
    Usage(
        "master and cluster",
        "master",
        lambda d: TPURunConfig(
            master="a",
            cluster=tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({})),
        ),
    ),
    Usage(
        "replace: tpu_config is a dict",
        "tpu_config",
        lambda d: TPURunConfig().replace(tpu_config={"num_shards": 8}),
    ),
    Usage("num_shards, of TPUConfig", "num_shards", lambda d: TPURunConfig(num_shards=8)),
)


def config_under(tf_config: Any) -> Any:
    with under(tf_config):
        return RunConfig()


TF_CONFIG_VALUES = {
    "no JSON": "{cluster",
    "a list": "[]",
    "cluster is a list": {"cluster": ["a:1"]},
    "cluster is a string": {"cluster": "a:1"},
    "task is a string": {"cluster": {"chief": ["a:1"]}, "task": "chief"},
    "a task that the cluster has not": {
        "cluster": {"chief": ["a:1"]},
        "task": {"type": "worker", "index": 0},
    },
    "an index that the cluster has not": {
        "cluster": {"chief": ["a:1"]},
        "task": {"type": "chief", "index": 5},
    },
    "an index that is a word": {
        "cluster": {"chief": ["a:1"]},
        "task": {"type": "chief", "index": "first"},
    },
    "a task without a type": {"cluster": {"chief": ["a:1"]}, "task": {"index": 0}},
    "no chief": {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}},
    "service is a list": {"service": ["a"]},
    "model_dir is empty": {"model_dir": ""},
}
TF_CONFIG = tuple(
    Usage(name, "TF_CONFIG", lambda d, value=value: config_under(value))
    for name, value in TF_CONFIG_VALUES.items()
)

TABLES = {
    "`RunConfig`": RUN_CONFIG,
    "`TPUConfig`": TPU_CONFIG,
    "`tpu.RunConfig`": TPU_RUN_CONFIG,
    "`TF_CONFIG`": TF_CONFIG,
}
