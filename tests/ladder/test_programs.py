"""Programs of TensorFlow 1.15 that the codemods take to Keras 3, with equal losses.

`record.py` makes the goldens: first weights, the loss of each step, and the evaluation.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.tools.migrate import apply
from tests import fresh
from tests.tools.migrate.ladder_runs import ROOT, at_stages

HERE = Path(__file__).parent
# The programs.
PROGRAMS = (
    "parcels",  # of several files
    *("bikes", "autoencoder", "digits_cnn", "multi_head", "text_cnn", "lstm", "wide_deep"),
    *("resnet", "ranker", "tpu_digits", "bert", "gan"),
)
# Programs whose evaluation reads a moving variance of images: TF 1 has a factor n / (n - 1).
OF_MOVING_VARIANCE = {"resnet": 5e-4}


@pytest.fixture(scope="module", params=PROGRAMS)
def migrated(request, tmp_path_factory) -> tuple[str, dict[int, Path]]:
    """A program, and its folders after each stage."""
    name = request.param
    return name, at_stages(files(HERE / "programs", name), tmp_path_factory.mktemp(name))


def files(folder: Path, name: str) -> dict[str, str]:
    """The files of a program: name -> text."""
    alone = folder / f"{name}.py"
    paths = [alone] if alone.exists() else sorted((folder / name).glob("*.py"))
    return {path.name: path.read_text() for path in paths}


def started(folder: Path, name: str) -> Path:
    """The file of a program that is run."""
    alone = folder / f"{name}.py"
    return alone if alone.exists() else folder / "main.py"


def ran(name: str, folder: Path, model_dir: Path, *more: str, backend: str = "tensorflow") -> dict:
    """What a program did, from the recorded first weights."""
    program, golden = started(folder, name), HERE / "goldens" / f"{name}.npz"
    done = subprocess.run(
        [
            fresh.python(),
            str(HERE / "run_program.py"),
            str(program),
            str(golden),
            str(model_dir),
            *more,
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "KERAS_BACKEND": backend,
            "JAX_PLATFORMS": "cpu",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # of one that hangs
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_as_tensorflow_1(name: str, found: dict, tolerance: float = 1e-5) -> None:
    """Compares the loss of each step, and the evaluation, with what TensorFlow 1.15 had."""
    with np.load(HERE / "goldens" / f"{name}.npz") as golden:
        losses = golden["losses"]
        expected = {
            key[5:]: float(golden[key])
            for key in golden.files
            if key.startswith("eval/") and key != "eval/global_step"
        }
    np.testing.assert_allclose(found["losses"], losses, rtol=0, atol=1e-5)
    evaluation = {key: found["evaluation"][key] for key in expected}
    assert evaluation == pytest.approx(expected, abs=tolerance)


def assert_exports_as_tensorflow_1(name: str, model_dir: Path) -> None:
    """Compares what an EvalSpec's exporters wrote: the signatures, and what they answer."""
    with np.load(HERE / "goldens" / f"{name}.npz") as golden:
        known = {tuple(key.split("/")[1:]): golden[key] for key in golden if "export/" in key}
    for exporter in {key[0] for key in known}:
        (folder,) = (model_dir / "export" / exporter).glob("[0-9]*")
        signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
        fed, expected = (
            {key[2]: value for key, value in known.items() if key[:2] == (exporter, part)}
            for part in ("in", "out")
        )
        _, takes = signature.structured_input_signature
        assert {key: spec.dtype for key, spec in takes.items()} == {
            key: value.dtype for key, value in fed.items()
        }
        found = signature(**{key: tf.constant(value) for key, value in fed.items()})
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-5)


@pytest.mark.parametrize("stage", [7, 8])
def test_a_stage_trains_evaluates_and_exports_as_tensorflow_1(stage, migrated, tmp_path):
    name, folders = migrated
    tolerance = OF_MOVING_VARIANCE.get(name, 1e-5) if stage == 8 else 1e-5
    assert_as_tensorflow_1(name, ran(name, folders[stage], tmp_path / "model"), tolerance)
    assert_exports_as_tensorflow_1(name, tmp_path / "model")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_bikes_trains_evaluates_and_exports_on_jax_as_tensorflow_1(tmp_path):
    model_dir = tmp_path / "model"
    found = ran("bikes", HERE / "final", model_dir, backend="jax")
    assert_as_tensorflow_1("bikes", found)
    assert len(list((model_dir / "export").glob("*/saved_model.pb"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3, 4, 5, 6])
def test_an_earlier_stage_trains_and_evaluates_as_tensorflow_1(stage, migrated, tmp_path):
    name, folders = migrated
    folder = folders[max(one for one in folders if one <= stage)]
    assert_as_tensorflow_1(name, ran(name, folder, tmp_path / "model"))


def test_a_model_trains_and_evaluates_on_two_cores_as_on_one(tmp_path):
    found = ran("tpu_digits", HERE / "final", tmp_path / "model", "2")
    assert_as_tensorflow_1("tpu_digits", found)


def test_what_comes_out_is_keras_without_a_mark(migrated):
    name, folders = migrated
    texts = {path.name: path.read_text() for path in folders[8].glob("*.py")}
    if shutil.which("ruff"):
        assert texts == files(HERE / "final", name)  # shown in the guide
    assert any("(keras.Model):" in text for text in texts.values())
    for file, before in files(HERE / "programs", name).items():
        text, lines = texts[file], before.splitlines()
        assert apply.marks(text) == []
        assert "compat.v1" not in text
        assert "estimator2strategy" not in text
        assert [line for line in text.splitlines() if len(line) > 88 and line not in lines] == []
        comments = {line.strip() for line in lines if line.strip().startswith("#")}
        assert comments <= {line.strip() for line in text.splitlines()}
