"""Versions and settings of this environment that do not go together, each with what to do.

    here = read_environment()
    problems(here)                  # [Problem(ERROR, "tf-keras 2.20.0 does not belong to ...")]

All is read from the metadata of installed packages and from environment variables.
"""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import metadata

from estimator2strategy.engine.runtime.requested_job import OLDEST_JAX
from estimator2strategy.engine.runtime.tf_config_form import check_form
from estimator2strategy.engine.xla.pjrt import libtpu_path
from estimator2strategy.tools.check.check_report import Severity

_PACKAGES = (
    "estimator2strategy",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-tpu",
    "tf-nightly",
    "keras",
    "keras-nightly",
    "tf-keras",
    "tf-keras-nightly",
    "tensorflow-estimator",
    "tensorflow-addons",
    "tf-slim",
    "numpy",
    "protobuf",
    "libtpu",
    "jax",
    "jaxlib",
    "flatbuffers",
)
_SETTINGS = (
    "TF_USE_LEGACY_KERAS",
    "KERAS_BACKEND",
    "TF_CONFIG",
    "TPU_NAME",
    "E2S_EMULATE_TPU_CORES",
    "E2S_RUNTIME",
    "E2S_PRECISION",
    "E2S_COORDINATOR",
    "E2S_PROCESSES",
    "E2S_PROCESS",
    "JAX_PLATFORMS",
)
_TF_KERAS = ("tf-keras", "tf-keras-nightly")
_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly")
_ON_A_TPU_VM = "migration_guide/tpu.md says how to install beside tensorflow-tpu."
_OLDEST, _NEWEST_TRIED = (2, 16), (2, 21)


@dataclasses.dataclass(frozen=True)
class Environment:
    """The facts about this machine that need no import.

    Attributes:
        python: Major and minor version.
        versions: Distribution -> version, of those installed among the ones that matter here.
        settings: Environment variables that are set, among the ones that matter here.
        tpu_devices: Device files of a TPU.
        tpu_compiler: The library that `e2s check --tpu` compiles with; None: not installed.
    """

    python: tuple[int, int]
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    tpu_devices: tuple[str, ...] = ()
    tpu_compiler: str | None = None

    def minor(self, package: str) -> tuple[int, int] | None:
        """(2, 21) for an installed 2.21.0."""
        numbers = self.versions.get(package, "").split(".")
        try:
            return int(numbers[0]), int(numbers[1])
        except (IndexError, ValueError):
            return None

    @property
    def tf_keras(self) -> str | None:
        """The distribution that has tf_keras."""
        return next((name for name in _TF_KERAS if name in self.versions), None)

    @property
    def tensorflow(self) -> tuple[int, int] | None:
        return next(filter(None, map(self.minor, _TENSORFLOWS)), None)


@dataclasses.dataclass(frozen=True)
class Problem:
    """Versions that clash: an ERROR or a WARNING."""

    severity: Severity
    what: str
    fix: str


def read_environment() -> Environment:
    """The environment of this process."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return Environment(
        python=sys.version_info[:2],
        versions=versions,
        settings={name: os.environ[name] for name in _SETTINGS if name in os.environ},
        tpu_devices=tuple(sorted(glob.glob("/dev/accel*") + glob.glob("/dev/vfio/[0-9]*"))),
        tpu_compiler=str(library) if (library := libtpu_path()) else None,
    )


def problems(here: Environment) -> list[Problem]:
    """The versions and settings that do not go together, errors first."""
    found = [problem for check in _CHECKS if (problem := check(here))]
    return sorted(found, key=lambda problem: problem.severity, reverse=True)


def _python(here: Environment) -> Problem | None:
    if (3, 10) <= here.python <= (3, 13):
        return None
    version = ".".join(map(str, here.python))
    return Problem(Severity.ERROR, f"Python {version} is not supported", "Use Python 3.10 to 3.13.")


def _no_tensorflow(here: Environment) -> Problem | None:
    if here.tensorflow:
        return None
    return Problem(
        Severity.ERROR,
        "TensorFlow is not installed (`e2s check` does without)",
        "pip install 'tensorflow>=2.16'",
    )


def _old_tensorflow(here: Environment) -> Problem | None:
    if here.tensorflow is None or here.tensorflow >= _OLDEST:
        return None
    return Problem(
        Severity.ERROR,
        "This TensorFlow is older than 2.16, and still has tf.estimator of its own",
        "pip install 'tensorflow>=2.16'",
    )


def _untried_tensorflow(here: Environment) -> Problem | None:
    if here.tensorflow is None or here.tensorflow <= _NEWEST_TRIED:
        return None
    newest = ".".join(map(str, _NEWEST_TRIED))
    nightlies = [name for name in here.versions if name.endswith("-nightly")]
    first = f"pip uninstall -y {' '.join(nightlies)}, then " if nightlies else ""
    return Problem(
        Severity.WARNING,
        f"This TensorFlow is newer than {newest}, the newest release that the package was tested "
        "with",
        f"If something fails: {first}pip install 'tensorflow=={newest}.*' 'tf-keras=={newest}.*'",
    )


def _two_tensorflows(here: Environment) -> Problem | None:
    installed = [name for name in _TENSORFLOWS if name in here.versions]
    if len(installed) < 2:
        return None
    return Problem(
        Severity.ERROR,
        f"{' and '.join(installed)} are both installed, into the same folder",
        f"pip uninstall -y {' '.join(installed)}, then {_one_of(here)}",
    )


def _one_of(here: Environment) -> str:
    version = here.versions.get("tensorflow-tpu")
    if version is None:
        return "install one of them."
    return f"pip install tensorflow-tpu=={version}. {_ON_A_TPU_VM}"


def _tf_keras_of_another_minor(here: Environment) -> Problem | None:
    if here.tensorflow is None or here.tf_keras is None:
        return None
    if here.minor(here.tf_keras) in (None, here.tensorflow):
        return None
    want = ".".join(map(str, here.tensorflow))
    return Problem(
        Severity.ERROR,
        f"{here.tf_keras} {here.versions[here.tf_keras]} does not belong to TensorFlow {want}",
        f"pip uninstall -y {here.tf_keras}, then {_install_tf_keras(here)}",
    )


def _no_tf_keras(here: Environment) -> Problem | None:
    if here.tensorflow is None or here.tf_keras or here.tensorflow < _OLDEST:
        return None
    return Problem(
        Severity.ERROR,
        "tf-keras is not installed: tf.layers and tf.nn.rnn_cell are in it since Keras 3",
        _install_tf_keras(here),
    )


def _install_tf_keras(here: Environment) -> str:
    """The command for the tf-keras of a TensorFlow; of one that is no release yet, the nightly."""
    want = ".".join(map(str, here.tensorflow or ()))
    if any(re.search("dev|rc", here.versions.get(name, "")) for name in _TENSORFLOWS):
        return f"pip install --pre --no-deps 'tf-keras-nightly=={want}.*'"
    return f"pip install 'tf-keras=={want}.*'"


def _old_keras(here: Environment) -> Problem | None:
    keras = here.minor("keras")
    if keras is None or keras >= (3, 0) or here.tensorflow is None or here.tensorflow < _OLDEST:
        return None
    return Problem(
        Severity.ERROR,
        f"keras {here.versions['keras']} is Keras 2; TensorFlow since 2.16 needs Keras 3",
        "pip install 'keras>=3'; Keras 2 is the package tf-keras.",
    )


def _dead_estimator(here: Environment) -> Problem | None:
    if "tensorflow-estimator" not in here.versions or (here.tensorflow or (0, 0)) < _OLDEST:
        return None
    return Problem(
        Severity.WARNING,
        "tensorflow-estimator is installed, and cannot be imported beside this TensorFlow",
        "pip uninstall -y tensorflow-estimator; estimator2strategy.estimator is in its place.",
    )


def _dead_addons(here: Environment) -> Problem | None:
    if "tensorflow-addons" not in here.versions or (here.tensorflow or (0, 0)) < _OLDEST:
        return None
    return Problem(
        Severity.WARNING,
        "tensorflow-addons ended with TensorFlow 2.15, and does not import beside Keras 3",
        "pip uninstall -y tensorflow-addons",
    )


def _legacy_keras_without_tf_keras(here: Environment) -> Problem | None:
    flag = here.settings.get("TF_USE_LEGACY_KERAS", "").lower()
    if flag not in ("1", "true") or here.tf_keras:
        return None
    return Problem(
        Severity.ERROR,
        "TF_USE_LEGACY_KERAS is set, and tf-keras, which it asks for, is not installed",
        "pip install tf-keras, or unset TF_USE_LEGACY_KERAS: this package does not need it.",
    )


def _other_backend(here: Environment) -> Problem | None:
    backend = here.settings.get("KERAS_BACKEND", "tensorflow")
    if backend == "tensorflow":
        return None
    return Problem(
        Severity.ERROR,
        f"KERAS_BACKEND is {backend!r}: Keras metrics would not be TensorFlow's",
        "unset KERAS_BACKEND",
    )


def _libtpu_without_library(here: Environment) -> Problem | None:
    if "libtpu" not in here.versions or here.tpu_compiler:
        return None
    return Problem(
        Severity.WARNING,
        f"libtpu {here.versions['libtpu']} is installed, but its libtpu.so is not there",
        "pip install --force-reinstall libtpu; `e2s check --tpu` compiles with it.",
    )


def _numpy_2(here: Environment) -> Problem | None:
    numpy = here.minor("numpy")
    if numpy is None or numpy < (2, 0) or here.tensorflow is None or here.tensorflow >= (2, 18):
        return None
    return Problem(
        Severity.ERROR,
        f"numpy {here.versions['numpy']} is too new for a TensorFlow before 2.18",
        "pip install 'numpy<2'",
    )


def _protobuf_7(here: Environment) -> Problem | None:
    protobuf = here.minor("protobuf")
    if protobuf is None or protobuf < (7, 0) or here.tensorflow != (2, 20):
        return None
    return Problem(
        Severity.ERROR,
        f"protobuf {here.versions['protobuf']} took away what TensorFlow 2.20's tf.io.write_graph "
        "calls, and with it tf.compat.v1.train.CheckpointSaverHook",
        "pip install 'protobuf<7'",
    )


def _jax(here: Environment) -> Problem | None:
    jax, asked = here.minor("jax"), here.settings.get("E2S_RUNTIME") == "jax"
    if jax is None and not asked:
        return None
    install = "pip install 'estimator2strategy[jax]'"
    if jax is None:
        return Problem(Severity.ERROR, "E2S_RUNTIME is jax, and JAX is not installed", install)
    if jax >= OLDEST_JAX:
        return None
    oldest = ".".join(map(str, OLDEST_JAX))
    return Problem(
        Severity.ERROR if asked else Severity.WARNING,
        f"jax {here.versions['jax']} is too old for --runtime=jax, which needs {oldest} or newer",
        install,
    )


def _libtpu_too_new(here: Environment) -> Problem | None:
    """tensorflow-tpu 2.20 asks for libtpu~=0.0.14, and so gets the newest; tried one by one."""
    version = here.versions.get("libtpu", "")
    if here.minor("tensorflow-tpu") != (2, 20) or not version.startswith("0.0."):
        return None
    if int(version.split(".")[2]) < 32:
        return None
    return Problem(
        Severity.ERROR,
        f"libtpu {version} lacks functions that tensorflow-tpu 2.20 calls: "
        "`import tensorflow` ends the process",
        "pip install 'libtpu<0.0.32'",
    )


def _bad_tf_config(here: Environment) -> Problem | None:
    text = here.settings.get("TF_CONFIG")
    if not text:
        return None
    try:
        config = json.loads(text)
        assert isinstance(config, dict)
    except (ValueError, AssertionError):
        return Problem(Severity.ERROR, "TF_CONFIG is set, and is no JSON object", "unset TF_CONFIG")
    try:
        check_form(config)
    except ValueError as error:
        return Problem(Severity.ERROR, str(error), "Correct it: `e2s guide cluster` has examples")
    return None


def unseen_tpu(here: Environment, imported: Mapping[str, object]) -> Problem | None:
    """A TPU of this machine that TensorFlow does not list.

    Args:
        here: The environment.
        imported: What `other_process.probe` found.
    """
    listed = imported.get("devices")
    if not here.tpu_devices or not isinstance(listed, list) or "TPU" in listed:
        return None
    what = f"This machine has a TPU ({', '.join(here.tpu_devices)}), and TensorFlow lists none"
    if "tensorflow-tpu" not in here.versions:
        return Problem(
            Severity.WARNING,
            f"{what}: only the package tensorflow-tpu can use one",
            f"pip uninstall -y tensorflow, then pip install tensorflow-tpu. {_ON_A_TPU_VM}",
        )
    return Problem(
        Severity.WARNING,
        what,
        f"Another process may use it: sudo lsof -w {' '.join(here.tpu_devices)}. Or libtpu is not "
        "the one that this tensorflow-tpu asks for: pip check.",
    )


_CHECKS: tuple[Callable[[Environment], Problem | None], ...] = (
    _python,
    _no_tensorflow,
    _old_tensorflow,
    _untried_tensorflow,
    _two_tensorflows,
    _tf_keras_of_another_minor,
    _no_tf_keras,
    _old_keras,
    _dead_estimator,
    _dead_addons,
    _legacy_keras_without_tf_keras,
    _other_backend,
    _numpy_2,
    _protobuf_7,
    _libtpu_without_library,
    _libtpu_too_new,
    _jax,
    _bad_tf_config,
)
