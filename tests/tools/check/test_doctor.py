"""`e2s doctor`: each clash of versions is named with what to do; exit 1 where there is one."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys

import pytest

from estimator2strategy.tools.check import clashes, doctor, probes

GOOD = clashes.Environment(
    python=(3, 11),
    versions={"tensorflow": "2.21.0", "keras": "3.15.1", "tf-keras": "2.21.0", "numpy": "2.3.0"},
    settings={},
)


def environment(versions=None, settings=None, without=(), **changes):
    merged = {n: v for n, v in {**GOOD.versions, **(versions or {})}.items() if n not in without}
    return dataclasses.replace(GOOD, versions=merged, settings=settings or {}, **changes)


def test_versions_that_go_together_are_no_problem():
    assert clashes.problems(GOOD) == []


@pytest.mark.parametrize(
    ("here", "severity", "words"),
    [
        (environment(python=(3, 9)), "error", "Python 3.9"),
        (environment(without=["tensorflow"]), "error", "not installed"),
        (environment({"tensorflow": "2.15.1"}), "error", "older than 2.16"),
        (environment({"tensorflow": "2.99.0", "tf-keras": "2.99.0"}), "warning", "newer than"),
        (environment({"tensorflow-cpu": "2.21.0"}), "error", "both installed"),
        (environment({"tf-keras": "2.18.0"}), "error", "does not belong to TensorFlow 2.21"),
        (environment(without=["tf-keras"]), "error", "tf-keras is not installed"),
        (environment({"keras": "2.15.0"}), "error", "Keras 2"),
        (environment({"tensorflow-estimator": "2.15.0"}), "warning", "cannot be imported"),
        (environment({"tensorflow-addons": "0.23.0"}), "warning", "ended"),
        (
            environment(without=["tf-keras"], settings={"TF_USE_LEGACY_KERAS": "1"}),
            "error",
            "TF_USE_LEGACY_KERAS is set",
        ),
        (environment(settings={"KERAS_BACKEND": "jax"}), "error", "'jax'"),
        (environment({"tensorflow": "2.16.2", "tf-keras": "2.16.0"}), "error", "numpy 2.3.0"),
        (
            environment({"tensorflow": "2.20.0", "tf-keras": "2.20.1", "protobuf": "7.36.2"}),
            "error",
            "protobuf 7.36.2",
        ),
        (environment({"libtpu": "0.0.51"}), "warning", "libtpu.so is not there"),
        (environment({"jax": "0.9.2"}), "warning", "jax 0.9.2 is too old"),
        (environment({"jax": "0.9.2"}, {"E2S_RUNTIME": "jax"}), "error", "too old"),
        (environment(settings={"E2S_RUNTIME": "jax"}), "error", "JAX is not installed"),
        (environment(settings={"TF_CONFIG": "{"}), "error", "no JSON"),
        (environment(settings={"TF_CONFIG": '{"task": 1}'}), "error", "TF_CONFIG: task is 1"),
    ],
)
def test_clash_is_named(here, severity, words):
    found = [p for p in clashes.problems(here) if words in p.what]
    assert [str(p.severity) for p in found] == [severity]
    assert all(p.fix for p in found)


def test_of_two_tensorflows_a_tpu_vm_keeps_its_own():
    here = environment({"tensorflow-tpu": "2.20.0"})
    (clash,) = (p for p in clashes.problems(here) if "both installed" in p.what)
    assert clash.fix.startswith(
        "pip uninstall -y tensorflow tensorflow-tpu, then pip install tensorflow-tpu==2.20.0."
    )
    assert "migration_guide/tpu.md" in clash.fix


def test_a_libtpu_that_ends_the_import_is_named():
    def of(libtpu):
        versions = {"tensorflow-tpu": "2.20.0", "tf-keras": "2.20.1", "libtpu": libtpu}
        here = environment(versions, without=["tensorflow"], tpu_compiler="/libtpu.so")
        return [problem.fix for problem in clashes.problems(here)]

    assert of("0.0.31") == []
    assert of("0.0.32") == of("0.0.43.2") == ["pip install 'libtpu<0.0.32'"]


def test_a_tpu_that_tensorflow_does_not_see_is_named():
    devices = ("/dev/accel0", "/dev/accel1")
    vm = environment(tpu_devices=devices)
    problem = clashes.unseen_tpu(vm, {"devices": ["CPU"]})
    assert str(problem.severity) == "warning"
    assert "(/dev/accel0, /dev/accel1)" in problem.what
    assert "only the package tensorflow-tpu" in problem.what
    of_its_own = environment({"tensorflow-tpu": "2.20.0"}, without=["tensorflow"])
    busy = clashes.unseen_tpu(
        dataclasses.replace(of_its_own, tpu_devices=devices), {"devices": ["CPU"]}
    )
    assert "sudo lsof -w /dev/accel0 /dev/accel1" in busy.fix


@pytest.mark.parametrize(
    ("tpu_devices", "imported"),
    [
        ((), {"devices": ["CPU"]}),
        (("/dev/accel0",), {"devices": ["CPU", "TPU"]}),
        (("/dev/a",), {}),
    ],
)
def test_no_tpu_a_tpu_that_is_seen_and_no_import_are_no_problem(tpu_devices, imported):
    assert clashes.unseen_tpu(environment(tpu_devices=tpu_devices), imported) is None


def test_errors_come_first():
    here = environment({"tensorflow-estimator": "2.15.0", "keras": "2.15.0"})
    assert [str(p.severity) for p in clashes.problems(here)] == ["error", "warning"]


def test_this_environment_is_described_as_json_without_importing_tensorflow():
    program = (
        "import sys; from estimator2strategy import __main__ as cli;"
        "code = cli.main(['doctor', '--json', '--no-import']);"
        "sys.exit(99 if 'tensorflow' in sys.modules else code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode in (0, 1), result.stderr
    said = json.loads(result.stdout)
    assert said["environment"]["python"] == list(sys.version_info[:2])
    assert said["imported"] == {}
    assert result.returncode == any(p["severity"] == "error" for p in said["problems"])


def test_tensorflow_that_cannot_be_imported_is_reported():
    assert "no such symbol" in doctor.probe(30, "raise ImportError('no such symbol')")["error"]


def test_import_that_hangs_ends():
    assert "not done after 1 s" in doctor.probe(1, "import time; time.sleep(60)")["error"]


def test_devices_of_jax_are_named_or_what_keeps_them_away(monkeypatch):
    pytest.importorskip("jax", minversion="0.10")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "2")
    found = doctor.probe(60, probes.OF_JAX, "jax")
    assert found["jax devices"] == "2 x cpu (cpu)"
    assert probes.what_does_not_fit(found, "0.10.2") == ""
    monkeypatch.setenv("JAX_PLATFORMS", "tpu_of_nobody")
    found = doctor.probe(60, probes.OF_JAX, "jax")
    assert "has no device" in probes.what_does_not_fit(found, "0.10.2")


@pytest.mark.parametrize(
    ("asked", "severity"), [({}, "warning"), ({"E2S_RUNTIME": "jax"}, "error")]
)
def test_a_jax_that_does_not_start_is_an_error_where_it_is_to_run_the_steps(asked, severity):
    found = doctor.probe(30, "raise ImportError('jaxlib is too new')", "jax")
    here = environment({"jax": "0.10.2", "jaxlib": "0.11.0"}, settings=asked)
    (problem,) = doctor._not_fitting(here, found)
    assert str(problem.severity) == severity
    assert "`import jax` failed: ImportError: jaxlib is too new" in problem.what


def test_the_tpu_compiler_is_named_or_how_to_get_it():
    there = environment({"libtpu": "0.0.51"}, tpu_compiler="/site-packages/libtpu/libtpu.so")
    assert re.search("TPU compiler +libtpu 0.0.51, for `e2s check --tpu`", _lines(there))
    needs = r"TPU compiler +none; `e2s check --tpu` needs pip install 'estimator2strategy\[tpu"
    assert re.search(needs, _lines(GOOD))


def _lines(here):
    return "\n".join(doctor._rows(here))


def test_what_needs_no_import_is_printed_before_tensorflow_is_imported(monkeypatch, capsys):
    printed = []

    def probe(*of):
        printed.append(capsys.readouterr().out)
        return {"tensorflow": "2.21.0", "jax": "0.11.2", "jax devices": "1 x cpu (cpu)"}

    monkeypatch.setattr(doctor, "probe", probe)
    assert doctor.main([]) in (0, 1)
    assert "  python " in printed[0]
    assert "TPU compiler" in printed[0]
    later = capsys.readouterr().out
    assert "imported: tensorflow" in later
    assert "TPU compiler" not in later


NIGHTLY = clashes.Environment(
    python=(3, 12),
    versions={
        "tf-nightly": "2.23.0.dev20261026",
        "keras-nightly": "3.16.0.dev2026102704",
        "tf-keras-nightly": "2.23.0.dev2026102618",
    },
    settings={"TF_USE_LEGACY_KERAS": "1"},
)


def without(here, *names):
    kept = {name: version for name, version in here.versions.items() if name not in names}
    return dataclasses.replace(here, versions=kept)


def test_the_nightly_of_tf_keras_is_tf_keras():
    (problem,) = clashes.problems(NIGHTLY)
    assert str(problem.severity) == "warning"
    # `<=2.21.*` is no requirement to a new pip, and 2.20 to an old one.
    assert problem.fix == (
        "If something fails: pip uninstall -y tf-nightly keras-nightly tf-keras-nightly, "
        "then pip install 'tensorflow==2.21.*' 'tf-keras==2.21.*'"
    )


def test_a_tensorflow_that_is_no_release_yet_needs_the_nightly_of_tf_keras():
    """tf-keras has releases alone, and asks for a release of TensorFlow."""
    install = "pip install --pre --no-deps 'tf-keras-nightly=={}.*'"
    missing = clashes._no_tf_keras(without(NIGHTLY, "tf-keras-nightly"))
    assert missing.fix == install.format("2.23")
    candidate = environment({"tensorflow": "2.22.0rc0"})
    clash = clashes._tf_keras_of_another_minor(candidate)
    assert clash.what == "tf-keras 2.21.0 does not belong to TensorFlow 2.22"
    assert clash.fix == f"pip uninstall -y tf-keras, then {install.format('2.22')}"
    old = environment({"tf-keras-nightly": "2.20.0.dev1"}, without=["tf-keras"])
    clash = clashes._tf_keras_of_another_minor(old)
    assert clash.fix == "pip uninstall -y tf-keras-nightly, then pip install 'tf-keras==2.21.*'"
