"""`tf.contrib.learn.RunConfig` of TF 1.15: the early form, with the master and sizes of devices."""

from __future__ import annotations

import json
import os
from typing import Any, cast

import tensorflow as tf

from estimator2strategy import estimator as core


class RunConfig(core.RunConfig):
    """Settings of one Estimator, as `tf.estimator.RunConfig`, with some arguments more.

    Args: those of `tf.estimator.RunConfig` of the same name, and

        master: Address of the session; None: what `TF_CONFIG` says.
        num_cores: Threads between and in ops, in `tf_config`; 0: TensorFlow's choice.
        log_device_placement: In `tf_config`.
        gpu_memory_fraction: In `tf_config`.
        save_checkpoints_secs: 0 is the default: 600, unless steps are given.
        evaluation_master: Address of the session that evaluates.

    Raises:
        ValueError: As `tf.estimator.RunConfig`.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: int | None = 0,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: Any = None,
        session_creation_timeout_secs: int = 7200,
    ):
        saving: dict[str, Any] = {"save_checkpoints_steps": save_checkpoints_steps}
        if save_checkpoints_secs != 0:
            saving["save_checkpoints_secs"] = save_checkpoints_secs
        elif save_checkpoints_steps is None:
            saving = {}
        super().__init__(
            model_dir,
            tf_random_seed,
            save_summary_steps,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
            **saving,
        )
        if master is not None:
            self._master = master
        if evaluation_master:
            self._evaluation_master = evaluation_master
        self._tf_config = tf.compat.v1.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.compat.v1.GPUOptions(
                per_process_gpu_memory_fraction=gpu_memory_fraction
            ),
        )
        self._environment = json.loads(os.environ.get("TF_CONFIG") or "{}").get(
            "environment", "local"
        )

    @property
    def tf_config(self) -> Any:
        """A ConfigProto of the sizes that were given."""
        return self._tf_config

    @property
    def environment(self) -> str:
        """Either "local" or "cloud", as `TF_CONFIG` says."""
        return cast(str, self._environment)
