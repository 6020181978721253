"""The strategy that `e2s run --strategy` asks for, by its name.

    check_name("mirrored:4")        # without TensorFlow
    prepare()                       # before TensorFlow starts its devices
    RunConfig()                     # its train_distribute is `requested()`

E2S_STRATEGY in the environment does the same: it tells the processes that a program starts.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.runtime.tf_config_form import check_place, parsed
from estimator2strategy.errors import DeviceError

VARIABLE = "E2S_STRATEGY"

# Name -> what it is, for `--help`.
NAMES = {
    "one_device": "the first GPU, or the CPU",
    "mirrored": "all GPUs of this machine; without one, the CPU",
    "mirrored:N": "the first N GPUs; without one, N parts of the CPU, for tests",
    "multi_worker": "the processes of TF_CONFIG in step, with all their GPUs",
    "tpu": "the cores of the TPU, or those of --emulate-tpu-cores",
}
_NAME = re.compile(r"(one_device|mirrored|multi_worker|tpu)|mirrored:([1-9]\d*)")


def check_name(text: str) -> str:
    """Returns `text`.

    Raises:
        ValueError: There is no such strategy.
    """
    if not _NAME.fullmatch(text):
        raise ValueError(f"no strategy {text!r}; there are {', '.join(NAMES)}")
    return text


def requested() -> Any:
    """The `tf.distribute.Strategy` that was asked for; None if none was.

    Raises:
        ValueError: There is no such strategy, or `TF_CONFIG` is wrong.
        DeviceError: Too few GPUs, or no TPU.
    """
    name = os.environ.get(VARIABLE)
    return _make(check_name(name)) if name else None


def prepare() -> None:
    """Prepares TensorFlow's devices for the strategy that was asked for.

    For `mirrored:N` the CPU is split into so many parts. Processes are connected to one another now
    if TF_CONFIG names them already, because TensorFlow wants that first.

    Raises:
        ValueError: There is no such strategy, or `TF_CONFIG` is wrong.
        DeviceError: TensorFlow has started its devices already.
    """
    from estimator2strategy.engine.runtime import devices

    name = os.environ.get(VARIABLE)
    parts = _parts(check_name(name)) if name else 0
    if parts > devices.emulated_cores() and not _gpus():
        devices.split_cpu(parts, f"--strategy={name}")
    if name == "multi_worker" and _task():
        _make(name)


def instead_of(given: Any) -> Any:
    """`given`, or the strategy that was asked for in its place, with a word in the log."""
    strategy = requested()
    if strategy is None:
        return given
    if given is not None and given is not strategy:
        _warn(
            "--strategy=%s takes the place of the program's own train_distribute, a %s.",
            os.environ[VARIABLE],
            type(given).__name__,
        )
    _used.add(os.environ[VARIABLE])
    return strategy


def unless_requested(strategy: Any, reason: str) -> Any:
    """`strategy`; None, and `reason` in the log, if it is the one that was asked for."""
    if strategy is None or strategy is not requested():
        return strategy
    _warn("--strategy=%s is ignored: %s.", os.environ[VARIABLE], reason)
    return None


def unused() -> str | None:
    """The request, if no RunConfig has been made since."""
    name = os.environ.get(VARIABLE)
    return name if name and name not in _used else None


_used: set[str] = set()


def _warn(text: str, *arguments: Any) -> None:
    import tensorflow as tf

    tf.compat.v1.logging.warning(text, *arguments)


def _parts(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[2] or 0) if match else 0


def _gpus() -> list[Any]:
    import tensorflow as tf

    gpus: list[Any] = tf.config.list_physical_devices("GPU")
    return gpus


@functools.cache  # one for all Estimators: a strategy belongs to its variables
def _make(name: str) -> Any:
    if _parts(name):
        return _mirrored(_parts(name))
    return _MAKERS[name]()


def _mirrored(count: int) -> Any:
    import tensorflow as tf

    from estimator2strategy.engine.runtime import devices
    from estimator2strategy.engine.worlds import modern_world

    gpus = _gpus()
    if not gpus:
        prepare()
        return devices.emulated_strategy(count)
    if count > len(gpus):
        raise DeviceError(
            f"--strategy=mirrored:{count}, but this machine has {len(gpus)} GPU(s). "
            f"Ask for mirrored:{len(gpus)}, or hide them with CUDA_VISIBLE_DEVICES=-1 to use parts "
            "of the CPU."
        )
    # Collectives that are made in graph mode cannot be traced in functions.
    with modern_world():
        return tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(count)])


def _all_gpus() -> Any:
    return _mirrored(max(1, len(_gpus())))


def _one_device() -> Any:
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy("/gpu:0" if _gpus() else "/cpu:0")


def _multi_worker() -> Any:
    import tensorflow as tf

    from estimator2strategy.engine.worlds import modern_world

    if _task() in ("evaluator", "ps"):
        return _one_device()  # they are no part of the training
    check_place(parsed())
    # In graph mode, in which a program of TF 1.x is, it would not connect to the other processes.
    with modern_world():
        return tf.distribute.MultiWorkerMirroredStrategy()


def _task() -> str | None:
    """The task of this process in its cluster; None where there is none."""
    task: str | None = parsed().get("task", {}).get("type")
    return task


def _tpu() -> Any:
    from estimator2strategy.engine.runtime import devices

    return devices.tpu_cores(None, None, devices.CoreLayout()).strategy


_MAKERS: dict[str, Callable[[], Any]] = {
    "one_device": _one_device,
    "mirrored": _all_gpus,
    "multi_worker": _multi_worker,
    "tpu": _tpu,
}
