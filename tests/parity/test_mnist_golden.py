"""The example program does here, step by step, what it did on the real TPUEstimator of TF 1.15.

The golden was recorded by `examples/mnist_tpu/record_golden.py`.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import adapt
from estimator2strategy.engine.record import replicated
from estimator2strategy.engine.replay import handle_packing
from tests.hooks import LossRecorder
from tests.rehearsal import rehearsal
from tests.step_on_xla import OF_EIGHT, compared, compiled_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "mnist_tpu"
PARITY = EXAMPLE / "golden" / "parity"
GOLDEN = json.loads((PARITY / "case.json").read_text())
# float32 over 20 steps; repeats of the original on one CPU are bit-equal, on two they move by 4e-6.
LOSS = {"rtol": 1e-5, "atol": 0}

tf1 = tf.compat.v1


@pytest.fixture(scope="module")
def program(imported):
    with mock.patch.object(sys, "path", [str(EXAMPLE), *sys.path]):
        return imported(lambda: importlib.import_module("mnist_tpu"))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    with mock.patch.object(sys, "path", [str(EXAMPLE), *sys.path]):
        importlib.import_module("make_data").write_digits(str(folder))
    return str(folder)


@pytest.fixture
def estimator_of(program, data_dir):
    """`estimator_of(model_dir, *flags)`: the program's estimator, with the golden's flags."""

    def build(model_dir: str, *flags: str, start: str = "init"):
        if not Path(model_dir).exists():
            shutil.copytree(PARITY / start, model_dir)
        program.FLAGS.unparse_flags()
        given = [*GOLDEN["argv"], f"--data_dir={data_dir}", f"--model_dir={model_dir}", *flags]
        program.FLAGS(["mnist_tpu.py", *given])
        return program.build_estimator()

    return build


def trained_losses(program, estimator, max_steps: int) -> list[float]:
    recorder = LossRecorder()
    estimator.train(program.train_input_fn, max_steps=max_steps, hooks=[recorder])
    return recorder.losses


def checkpoint(folder: str, step: int) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(f"{folder}/model.ckpt-{step}")
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_every_step_has_the_recorded_loss(program, estimator_of, model_dir):
    losses = trained_losses(program, estimator_of(model_dir), 20)
    np.testing.assert_allclose(losses, GOLDEN["losses"], **LOSS)


def test_a_loop_of_ones_own_goes_on_from_the_checkpoint(program, estimator_of, model_dir):
    model = adapt(estimator_of(model_dir), program.train_input_fn)
    model.load_checkpoint()
    losses = [float(model.train()["loss"]) for _ in GOLDEN["losses"]]
    np.testing.assert_allclose(losses, GOLDEN["losses"], **LOSS)


def test_running_ahead_in_blocks_gives_the_same_variables(program, estimator_of, model_dir):
    estimator_of(model_dir).train(program.train_input_fn, max_steps=20)
    recorded = checkpoint(str(PARITY / "final"), 20)
    trained = checkpoint(model_dir, 20)
    assert trained.keys() == recorded.keys()
    for name, value in recorded.items():
        assert trained[name].dtype == value.dtype
        np.testing.assert_allclose(trained[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_training_leaves_the_recorded_files_and_summaries(program, estimator_of, model_dir):
    estimator = estimator_of(model_dir)
    estimator.train(program.train_input_fn, max_steps=20)
    estimator.evaluate(program.eval_input_fn, steps=3)
    kinds = {
        path.relative_to(model_dir).as_posix().partition("tfevents")[0] + "tfevents.*"
        if "tfevents" in path.name
        else path.relative_to(model_dir).as_posix()
        for path in Path(model_dir).rglob("*")
        if path.is_file()
    }
    assert kinds == set(GOLDEN["model_dir_files"])
    for folder, tags in GOLDEN["summaries"].items():
        assert tags_in(Path(model_dir) / folder) == set(tags), folder


def tags_in(folder: Path) -> set[str]:
    tf1.summary.FileWriterCache.get(str(folder)).flush()
    return {
        value.tag
        for path in folder.glob("events*")
        for event in tf1.train.summary_iterator(str(path))
        for value in event.summary.value
    }


def test_evaluation_gives_the_recorded_metrics(program, estimator_of, model_dir):
    estimator = estimator_of(model_dir, start="final")
    metrics = estimator.evaluate(program.eval_input_fn, steps=3)
    assert metrics.keys() == GOLDEN["evaluate"].keys()
    for name, value in GOLDEN["evaluate"].items():
        assert metrics[name] == pytest.approx(value, rel=1e-6), name


def test_prediction_gives_the_recorded_digits(program, estimator_of, model_dir):
    estimator = estimator_of(model_dir, start="final")
    digits = list(estimator.predict(program.predict_input_fn))
    assert len(digits) == 360
    for digit, recorded in zip(digits, GOLDEN["predict"], strict=False):
        assert digit["class"] == recorded["class"]
        np.testing.assert_allclose(
            digit["probabilities"], recorded["probabilities"], rtol=1e-5, atol=1e-7
        )


@pytest.mark.oldest
def test_a_checkpoint_of_tf_1_15_is_continued(program, estimator_of, model_dir):
    estimator = estimator_of(model_dir, start="final")
    losses = trained_losses(program, estimator, 40)
    np.testing.assert_allclose(losses, GOLDEN["continued_losses"], **LOSS)


@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.evidence("mnist", "cpu")
@pytest.mark.evidence("training", "cpu")
@pytest.mark.evidence("evaluation", "cpu")
def test_emulated_cores_train_like_one_device(
    program, estimator_of, model_dir, emulated_cores, cores
):
    emulated_cores(cores)
    estimator = estimator_of(model_dir, "--use_tpu", "--iterations=1")
    losses = trained_losses(program, estimator, 20)
    np.testing.assert_allclose(losses, GOLDEN["losses"], **LOSS)
    metrics = estimator.evaluate(program.eval_input_fn, steps=3)
    assert metrics["accuracy"] == pytest.approx(GOLDEN["evaluate"]["accuracy"], rel=1e-6)
    assert metrics["loss"] == pytest.approx(GOLDEN["evaluate"]["loss"], rel=1e-5)


@pytest.mark.evidence("mnist", "jax")
@pytest.mark.evidence("training", "jax")
@pytest.mark.evidence("evaluation", "jax")
@pytest.mark.parametrize("devices", [1, 8])
def test_devices_of_jax_train_evaluate_and_predict_as_recorded(
    program, estimator_of, model_dir, jax_devices, devices
):
    jax_devices(devices)
    estimator = estimator_of(model_dir, "--use_tpu", "--iterations=1")
    losses = trained_losses(program, estimator, 20)
    np.testing.assert_allclose(losses, GOLDEN["losses"], **LOSS)
    metrics = estimator.evaluate(program.eval_input_fn, steps=3)
    assert metrics["accuracy"] == pytest.approx(GOLDEN["evaluate"]["accuracy"], rel=1e-6)
    digits = list(estimator.predict(program.predict_input_fn))
    assert len(digits) == 360
    for digit, recorded in zip(digits, GOLDEN["predict"], strict=False):
        np.testing.assert_allclose(digit["probabilities"], recorded["probabilities"], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.evidence("mnist", "jax")
@pytest.mark.parametrize("devices", [1, 8])
def test_devices_of_jax_drop_out_what_tensorflow_does(
    program, estimator_of, tmp_path, emulated_cores, jax_devices, devices
):
    def losses(folder):
        flags = ("--use_tpu", "--iterations=1", "--dropout=0.4")
        return trained_losses(program, estimator_of(str(tmp_path / folder), *flags), 20)

    emulated_cores(devices)
    expected = losses("tensorflow")
    jax_devices(devices)
    np.testing.assert_allclose(losses("jax"), expected, **LOSS)


@pytest.mark.evidence("mnist", "rehearsed")
def test_a_rehearsed_tpu_trains_and_predicts_like_one_device(program, estimator_of, model_dir):
    with rehearsal(cores_per_host=8):
        estimator = estimator_of(model_dir, "--use_tpu", "--iterations=1")
        losses = trained_losses(program, estimator, 20)
        metrics = estimator.evaluate(program.eval_input_fn, steps=3)
        digits = list(estimator.predict(program.predict_input_fn))
    np.testing.assert_allclose(losses, GOLDEN["losses"], **LOSS)
    assert metrics["accuracy"] == pytest.approx(GOLDEN["evaluate"]["accuracy"], rel=1e-6)
    assert metrics["loss"] == pytest.approx(GOLDEN["evaluate"]["loss"], rel=1e-5)
    for digit, recorded in zip(digits, GOLDEN["predict"], strict=False):
        assert digit["class"] == recorded["class"]
        np.testing.assert_allclose(digit["probabilities"], recorded["probabilities"], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.evidence("mnist", "xla")
@pytest.mark.evidence("mnist", "compiled", "v2 v3 v4 v5e v5p v6e")
def test_the_program_of_a_tpu_computes_the_step_of_emulated_cores(
    program, estimator_of, model_dir, emulated_cores
):
    emulated_cores(8)
    estimator = estimator_of(model_dir, "--use_tpu", "--iterations=1", start="final")
    step = compared(estimator, program.train_input_fn, program.FLAGS.batch_size)
    assert [name for name in OF_EIGHT if not compiled_for(step, name).fits] == []


@pytest.mark.evidence("mnist", "rehearsed")
@pytest.mark.evidence("hosts", "rehearsed")
def test_the_example_runs_from_its_front_on_a_rehearsed_pod(
    program, estimator_of, tmp_path, emulated_cores
):
    def run(name, tpu):
        flags = ("--use_tpu", f"--tpu={tpu}", "--eval_steps=0", "--predictions=0")
        estimator_of(str(tmp_path / name), *flags)  # parses the flags
        program.main([])
        return checkpoint(str(tmp_path / name), 20)

    with rehearsal(num_hosts=2, cores_per_host=4) as pod:
        rehearsed = run("rehearsed", pod.name)
        assert pod.started == 1
    emulated_cores(8, 2)
    emulated = run("emulated", "")
    for name, value in emulated.items():
        np.testing.assert_allclose(rehearsed[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def _eightfold_gradients(monkeypatch) -> None:
    totals = handle_packing.totals

    def eightfold(strategy, parts):
        return [[8.0 * total for total in of_core] for of_core in totals(strategy, parts)]

    monkeypatch.setattr(handle_packing, "totals", eightfold)


def _summed_loss(monkeypatch) -> None:
    monkeypatch.setattr(replicated, "_mean", tf.add_n)


FACTORS_OF_EIGHT = {
    "gradients": (_eightfold_gradients, ()),
    "loss": (_summed_loss, ()),
    "learning rate": (lambda monkeypatch: None, ("--learning_rate=0.4",)),
}


@pytest.mark.parametrize("what", FACTORS_OF_EIGHT)
def test_a_factor_of_the_number_of_cores_does_not_go_unseen(
    program, estimator_of, model_dir, emulated_cores, monkeypatch, what
):
    emulated_cores(8)
    sabotage, flags = FACTORS_OF_EIGHT[what]
    sabotage(monkeypatch)
    estimator = estimator_of(model_dir, "--use_tpu", "--iterations=1", *flags)
    losses = trained_losses(program, estimator, 6)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(losses, GOLDEN["losses"][:6], **LOSS)
