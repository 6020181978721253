"""`RunConfig`: the settings of an Estimator, and its place in a cluster (`tf_config.py`).

    config = RunConfig(model_dir="/tmp/model", save_checkpoints_steps=100)
    config = config.replace(keep_checkpoint_max=3)

Nothing here starts a server or touches a device.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Generic, NoReturn, TypeVar, overload

import tensorflow as tf

from estimator2strategy.engine.runtime import requested_strategy
from estimator2strategy.engine.runtime.requested_job import job_under_jax, requested_job
from estimator2strategy.engine.runtime.session_config import default_session_config
from estimator2strategy.engine.wrong_argument import ArgumentRule, check, checked, wrong_argument
from estimator2strategy.estimator.contract_rules import is_flag, is_number, is_path, is_strategy
from estimator2strategy.estimator.tf_config import read_task, read_tf_config

ConfigProto = tf.compat.v1.ConfigProto
_T = TypeVar("_T")
_Config = TypeVar("_Config", bound="RunConfig")

# Tells an argument that was left out from one that is None, which switches checkpoints off.
_USE_DEFAULT: Any = object()
_DEFAULT_CHECKPOINT_SECS = 600

# Attributes that a copy of a config shares with it: they stand for devices, not for settings. The
# variables of a program live in the strategy it made, and not in a copy of that one.
_SHARED_ATTRIBUTES = frozenset(
    ["_train_distribute", "_eval_distribute", "_experimental_distribute", "_device_fn", "_cluster"]
)


def _takes_only_op(function: Any) -> bool:
    return callable(function) and list(inspect.signature(function).parameters) == ["op"]


def _setting(holds: Callable[[Any], bool], must: str, instead: str) -> ArgumentRule:
    """The rule of a setting, which may be None."""
    return ArgumentRule(lambda value: value is None or holds(value), must, instead, ValueError)


def _not_negative(instead: str) -> ArgumentRule:
    return _setting(lambda value: is_number(value) and value >= 0, "should be >= 0", instead)


def _positive(instead: str) -> ArgumentRule:
    return _setting(lambda value: is_number(value) and value > 0, "should be > 0", instead)


_STRATEGY = _setting(
    is_strategy,
    "must be a tf.distribute.Strategy",
    "Pass an instance of one, such as tf.distribute.MirroredStrategy(), or None.",
)
_STEPS = "Pass a number of steps; None: none."

# All settings that can be replaced, in the order of the arguments of `RunConfig`.
_SETTINGS = {
    "model_dir": _setting(
        lambda value: is_path(value) and bool(value),
        "should be non-empty",
        "Pass the folder of checkpoints as a string, or None.",
    ),
    "tf_random_seed": _setting(
        lambda value: isinstance(value, int),
        "must be integer",
        "Pass an int; None: another seed in each run.",
    ),
    "save_summary_steps": _not_negative(_STEPS),
    "save_checkpoints_steps": _not_negative(_STEPS),
    "save_checkpoints_secs": _not_negative("Pass a number of seconds; None: none."),
    "session_config": _setting(
        lambda value: isinstance(value, ConfigProto),
        "must be instance of ConfigProto",
        "Pass tf.compat.v1.ConfigProto(...), or None.",
    ),
    "keep_checkpoint_max": _not_negative("Pass the number of newest checkpoints to keep; 0: all."),
    "keep_checkpoint_every_n_hours": _positive("Pass a number of hours."),
    "log_step_count_steps": _positive(_STEPS),
    "train_distribute": _STRATEGY,
    "device_fn": _setting(
        _takes_only_op,
        'must be callable with exactly one argument "op"',
        'Pass a function such as lambda op: "/cpu:0", or None.',
    ),
    "protocol": _setting(
        lambda value: value in ("grpc", "grpc+verbs"),
        "should be grpc or grpc+verbs",
        'Pass "grpc", or None.',
    ),
    "eval_distribute": _STRATEGY,
    "experimental_distribute": _setting(
        lambda value: hasattr(value, "train_distribute") or hasattr(value, "eval_distribute"),
        "must be a DistributeConfig",
        "Pass the strategies as train_distribute and eval_distribute.",
    ),
    "experimental_max_worker_delay_secs": _setting(
        lambda value: isinstance(value, int),
        "must be an integer if set",
        "Pass an int, or None.",
    ),
    "session_creation_timeout_secs": _positive("Pass a number of seconds."),
    "checkpoint_save_graph_def": _setting(
        is_flag, "must be True or False", "Pass True or False: a string such as 'False' is true."
    ),
}


class _ReadOnly(Generic[_T]):
    """A property that reads the attribute of its own name with an underscore before it."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = f"_{name}"

    @overload
    def __get__(self, config: None, owner: type) -> _ReadOnly[_T]: ...
    @overload
    def __get__(self, config: object, owner: type) -> _T: ...
    def __get__(self, config: object | None, owner: type) -> _ReadOnly[_T] | _T:
        return self if config is None else getattr(config, self._attribute)

    def __set__(self, config: object, value: _T) -> NoReturn:
        name = self._attribute[1:]
        what = f"{name} of RunConfig cannot be set"
        raise wrong_argument(what, value, f"Use config.replace({name}=...).", AttributeError)


class RunConfig:
    """Settings of one Estimator; read-only, `replace` makes a changed copy.

    The place in the cluster comes from the environment's `TF_CONFIG`, when the config is made.
    Attributes that a program adds itself are kept by `replace` and by `copy.deepcopy`. Copies share
    strategies, cluster resolver and device function with the original.

    Args:
        model_dir: Directory of checkpoints and summaries; None: `TF_CONFIG`'s, or the
            Estimator's choice.
        tf_random_seed: Graph-level seed; None draws another one in each run.
        save_summary_steps: Steps between summaries; None: no summaries.
        save_checkpoints_steps: Steps between checkpoints, instead of `save_checkpoints_secs`.
        save_checkpoints_secs: Seconds between checkpoints, 600 if neither is given. Both None:
            no checkpoints.
        session_config: A `ConfigProto`.
        keep_checkpoint_max: Number of newest checkpoints to keep; None or 0: all.
        keep_checkpoint_every_n_hours: Hours after which one more checkpoint is kept for good.
        log_step_count_steps: Steps between logs of loss and global steps per second.
        train_distribute: `tf.distribute.Strategy` for training.
        device_fn: Takes an op and returns the name of its device.
        protocol: 'grpc' or 'grpc+verbs', of the servers of a cluster.
        eval_distribute: `tf.distribute.Strategy` for evaluation.
        experimental_distribute: `tf.contrib.distribute.DistributeConfig`, another way to give
            the two strategies.
        experimental_max_worker_delay_secs: Longest time a worker waits before it starts.
        session_creation_timeout_secs: Seconds that a worker waits for the chief.
        checkpoint_save_graph_def: True if graph.pbtxt and .meta files are written.

    Raises:
        ValueError: A value out of its range, settings that contradict each other, or a
            `TF_CONFIG` that makes no sense.
        TypeError: `TF_CONFIG`'s service is no dict.

    Source: `tf.estimator.RunConfig`, tensorflow_estimator 1.15 to 2.15 run_config.py.
    """

    model_dir = _ReadOnly[str | None]("Directory of checkpoints and summaries.")
    tf_random_seed = _ReadOnly[int | None]("Graph-level seed.")
    save_summary_steps = _ReadOnly[int | None]("Steps between summaries.")
    save_checkpoints_steps = _ReadOnly[int | None]("Steps between checkpoints.")
    save_checkpoints_secs = _ReadOnly[int | None]("Seconds between checkpoints.")
    session_config = _ReadOnly[Any]("A ConfigProto or None.")
    keep_checkpoint_max = _ReadOnly[int | None]("Number of newest checkpoints to keep.")
    keep_checkpoint_every_n_hours = _ReadOnly[float | None]("Hours per checkpoint kept for good.")
    log_step_count_steps = _ReadOnly[int | None]("Steps between logs of loss and speed.")
    train_distribute = _ReadOnly[Any]("Strategy for training, or None.")
    eval_distribute = _ReadOnly[Any]("Strategy for evaluation, or None.")
    device_fn = _ReadOnly[Callable[[Any], Any] | None]("Function from op to device name.")
    protocol = _ReadOnly[str | None]("Protocol of the servers of a cluster.")
    experimental_max_worker_delay_secs = _ReadOnly[int | None]("Longest wait before a start.")
    session_creation_timeout_secs = _ReadOnly[int | None]("Seconds that a worker waits.")
    checkpoint_save_graph_def = _ReadOnly[bool]("True if graphs are written out.")

    cluster_spec = _ReadOnly[Any]("ClusterSpec of the training cluster; empty if there is none.")
    task_type = _ReadOnly[str]("Job of this process, a value of TaskType.")
    task_id = _ReadOnly[int]("Index of this process within its job.")
    global_id_in_cluster = _ReadOnly[int | None](
        "Index of this process in its cluster: chief, then jobs by name, then ps; None: evaluator."
    )
    master = _ReadOnly[str]("Address of the session for training; '' is this process.")
    evaluation_master = _ReadOnly[str]("Address of the session for evaluation.")
    num_ps_replicas = _ReadOnly[int]("Number of parameter servers.")
    num_worker_replicas = _ReadOnly[int]("Number of workers, the chief included.")
    is_chief = _ReadOnly[bool]("True if this process writes checkpoints and summaries.")
    service = _ReadOnly[dict[str, Any] | None]("The service entry of TF_CONFIG.")

    # Those of the attributes behind them that are also written one by one.
    _save_checkpoints_steps: int | None
    _save_checkpoints_secs: int | None
    _session_config: Any
    _cluster_spec: Any
    _master: str
    _evaluation_master: str
    _device_filters: tuple[str, ...] | None

    @checked(_SETTINGS)
    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _USE_DEFAULT,
        save_checkpoints_secs: int | None = _USE_DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Any], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: int | None = 7200,
        checkpoint_save_graph_def: bool = True,
    ) -> None:
        steps, secs = _checkpoint_interval(save_checkpoints_steps, save_checkpoints_secs)
        tf_config = read_tf_config()
        self._set(
            model_dir=_resolve_model_dir(tf_config, model_dir),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=steps,
            save_checkpoints_secs=secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=requested_strategy.instead_of(
                _strategy("train", train_distribute, experimental_distribute)
            ),
            device_fn=device_fn,
            protocol=protocol,
            eval_distribute=_strategy("eval", eval_distribute, experimental_distribute),
            experimental_distribute=experimental_distribute,
            experimental_max_worker_delay_secs=experimental_max_worker_delay_secs,
            session_creation_timeout_secs=session_creation_timeout_secs,
            checkpoint_save_graph_def=checkpoint_save_graph_def,
        )
        job = requested_job()
        task = read_task(
            tf_config,
            under_strategy=self.train_distribute is not None or job_under_jax() is not None,
            over_servers=means_parameter_servers(self.train_distribute),
        )
        if job and not task.cluster_spec:
            task = dataclasses.replace(task, is_chief=job.is_chief)
        for field in dataclasses.fields(task):
            setattr(self, f"_{field.name}", getattr(task, field.name))
        self._maybe_overwrite_session_config_for_distributed_training()

    def replace(self: _Config, **kwargs: Any) -> _Config:
        """Returns a copy with some settings changed.

        Args:
            **kwargs: The settings, by the names of the constructor. One of
                `save_checkpoints_steps` and `save_checkpoints_secs` unsets the other.

        Raises:
            ValueError: A name is no setting (the place in the cluster cannot be replaced), or a
                value is out of its range, or both checkpoint intervals are set.
        """
        config = copy.deepcopy(self)
        config._set(**kwargs)
        return config

    def __deepcopy__(self: _Config, memo: dict[int, Any]) -> _Config:
        config = self.__class__.__new__(self.__class__)
        memo[id(self)] = config
        for name, value in vars(self).items():
            shared = name in _SHARED_ATTRIBUTES
            setattr(config, name, value if shared else copy.deepcopy(value, memo))
        return config

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            if name not in _SETTINGS:
                what = f"Replacing {name} is not supported"
                raise wrong_argument(what, value, f"Allowed properties are {list(_SETTINGS)}.")
            setattr(self, f"_{name}", value)
        steps, secs = values.get("save_checkpoints_steps"), values.get("save_checkpoints_secs")
        if steps is not None and secs is not None:
            raise ValueError(
                "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
            )
        # The interval that is not mentioned gives way to the one that is.
        if steps is not None:
            self._save_checkpoints_secs = None
        elif secs is not None:
            self._save_checkpoints_steps = None
        check(_SETTINGS, {name: getattr(self, f"_{name}") for name in _SETTINGS})

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Gives tasks of a parameter server cluster their device filters; subclasses may not."""
        if self._session_config is None and self._device_filters is not None:
            session_config = default_session_config()
            session_config.device_filters.extend(self._device_filters)
            self._session_config = session_config


def _checkpoint_interval(steps: int | None, secs: int | None) -> tuple[int | None, int | None]:
    """Steps and seconds between checkpoints; naming one of them switches the other off."""
    if steps is _USE_DEFAULT and secs is _USE_DEFAULT:
        return None, _DEFAULT_CHECKPOINT_SECS
    return None if steps is _USE_DEFAULT else steps, None if secs is _USE_DEFAULT else secs


def _strategy(mode: str, strategy: Any, distribute_config: Any) -> Any:
    """The strategy for 'train' or 'eval', from whichever argument has it."""
    name = f"{mode}_distribute"
    experimental = getattr(distribute_config, name, None)
    if strategy and experimental:
        raise ValueError(f"Either `{name}` or `experimental_distribute.{name}` can be set.")
    strategy = strategy or experimental
    if type(strategy) is tf.distribute.experimental.ParameterServerStrategy:
        raise ValueError(
            "Please use `tf.compat.v1.distribute.experimental.ParameterServerStrategy` for "
            "parameter server strategy with estimator."
        )
    return strategy


def means_parameter_servers(strategy: Any) -> bool:
    """True for the strategy of TF 1 that stood for workers and parameter servers."""
    return isinstance(strategy, tf.compat.v1.distribute.experimental.ParameterServerStrategy)


def _resolve_model_dir(tf_config: Mapping[str, Any], model_dir: Any) -> str | None:
    """The directory from the constructor or from `TF_CONFIG`, which must not disagree."""
    if isinstance(model_dir, os.PathLike):
        model_dir = tf.compat.as_str_any(os.fspath(model_dir))
    from_tf_config = tf_config.get("model_dir")
    if model_dir == "":
        raise ValueError("model_dir should be non-empty.")
    if from_tf_config == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if model_dir and from_tf_config and model_dir != from_tf_config:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the "
            f'model_dir in TF_CONFIG. model_dir: {model_dir}\nTF_CONFIG["model_dir"]: '
            f"{from_tf_config}."
        )
    if from_tf_config:
        tf.compat.v1.logging.info("Using model_dir in TF_CONFIG: %s", from_tf_config)
    return model_dir or from_tf_config


def completed(config: RunConfig | None, model_dir: Any) -> RunConfig:
    """`config` with a model_dir and a session_config: what programs find in `estimator.config`."""
    if config is None:
        config = RunConfig()
        tf.compat.v1.logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise wrong_argument(
            "config must be an instance of `RunConfig`",
            config,
            "Pass estimator.RunConfig(session_config=..., ...), or None.",
        )
    model_dir = os.fspath(model_dir) if model_dir is not None else None
    if model_dir and config.model_dir and config.model_dir != model_dir:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
            f"In constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}'"
        )
    model_dir = model_dir or config.model_dir
    if not model_dir:
        model_dir = tempfile.mkdtemp()
        tf.compat.v1.logging.warn("Using temporary folder as model directory: %s", model_dir)
    session_config = config.session_config or default_session_config()
    return config.replace(model_dir=model_dir, session_config=session_config)
