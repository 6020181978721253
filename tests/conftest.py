"""Fixtures of all tests, in a quiet TensorFlow with eight logical CPU devices.

TensorFlow's devices are fixed once per process, so each test process starts with as many as the
largest test needs; a test that wants emulated TPU cores asks for them with `emulated_cores`.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.pop("E2S_EMULATE_TPU_CORES", None)
# Products that round alike on all CPUs. With the kernels for AVX2 the example's losses leave those
# of TF 1.15 by 5e-4 within twenty steps on some CPUs; so do those of TF 2.15's own TPUEstimator.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "SSE41")

# JAX starts its devices once, too; libtpu, which is installed for its compiler, has none.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["E2S_CACHE"] = "off"  # a test finds nothing that another one has kept
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import tensorflow as tf

from estimator2strategy.engine import behavior
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime import jax_devices as jax_runtime
from estimator2strategy.engine.runtime.requested_job import RUNTIME_VARIABLE
from tests.quick import is_quick

LOGICAL_CPUS = 8


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So shells start what runs in the background. Tests of Ctrl-C must hear it all the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cpu = tf.config.list_physical_devices("CPU")[0]
    split = [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS
    tf.config.set_logical_device_configuration(cpu, split)
    tf.config.list_logical_devices()  # starts them: no test can ask for another number
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.WARN)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_quick(item.path) and not item.get_closest_marker("slow"):
            item.add_marker("quick")


@pytest.fixture(autouse=True, scope="session")
def _scratch_of_one_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Estimators without a model_dir make folders that nobody takes away: they go with pytest's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("scratch"))
        patch.setenv("TMPDIR", folder)  # of processes that tests start
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def model_dir(tmp_path: Path) -> str:
    """A folder for checkpoints and events that does not exist yet."""
    return str(tmp_path / "model")


@pytest.fixture(autouse=True)
def _log_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts with warnings shown, whatever those before it have set."""
    logger = logging.getLogger("tensorflow")
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    logger.setLevel(logging.WARNING)


class Log:
    """What TensorFlow's log was told. Its own notes on what is deprecated, which come once in a
    process and so in any test, are left out."""

    def __init__(self, caplog: pytest.LogCaptureFixture):
        self._caplog = caplog

    def __call__(self, level: int = logging.INFO) -> list[str]:
        """The messages of that level or above."""
        records = [r for r in self._caplog.records if r.levelno >= level]
        messages = [record.getMessage() for record in records]
        return [message for message in messages if "Instructions for updating" not in message]

    @property
    def text(self) -> str:
        """All messages of level INFO or above, a line each."""
        return "\n".join(self())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Log:
    """`log()` are the messages of the test so far, `log(logging.WARNING)` the warnings."""
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    caplog.set_level(logging.INFO, "tensorflow")
    return Log(caplog)


@pytest.fixture(autouse=True)
def _switches_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the legacy code of a test switches on is off again in the next."""
    monkeypatch.setattr(behavior, "SWITCHED_ON", set())


@pytest.fixture(autouse=True)
def _cores_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test emulates (`verify` does so by itself) ends with it."""
    monkeypatch.setattr(devices, "_emulated_cores", devices._emulated_cores)
    monkeypatch.setattr(devices, "_emulated_hosts", devices._emulated_hosts)


@pytest.fixture
def jax_devices(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`jax_devices(8)` gives the steps of Estimators to so many CPU devices of JAX."""
    jax = pytest.importorskip("jax", minversion="0.10")

    def use(count: int) -> None:
        monkeypatch.setenv(RUNTIME_VARIABLE, "jax")
        found = tuple(jax.devices()[:count])
        monkeypatch.setattr(jax_runtime, "_devices", lambda: found)

    return use


@pytest.fixture
def emulated_cores(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`emulated_cores(8)` switches emulation on until the test ends; 0 leaves it off.

    `emulated_cores(8, 2)` is two hosts of four.
    """
    # Put back at the end of the test, whatever `emulate_tpu` makes of it.
    monkeypatch.setattr(devices, "_emulated_cores", 0)
    monkeypatch.setattr(devices, "_emulated_hosts", 1)

    def emulate(num_cores: int, num_hosts: int = 1) -> None:
        if num_cores > LOGICAL_CPUS:
            raise ValueError(f"Test processes have {LOGICAL_CPUS} logical CPUs, not {num_cores}.")
        if num_cores:
            devices.emulate(num_cores, num_hosts)

    return emulate


@pytest.fixture(autouse=True)
def _tensorflow_as_it_was():
    """Fails a test that leaves TensorFlow in another mode, which would make others fail."""
    yield
    assert tf.executing_eagerly(), "The test left a graph as the default one."
    assert isinstance(tf.TensorShape([1])[0], int), "The test left v1 tensor shapes on."
