"""The exported step of a TPUEstimator's cores, and what its loader refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import errors, estimator, export_step
from estimator2strategy.estimator import tpu

pytest.importorskip("jax", minversion="0.10")
pytest.importorskip("flatbuffers")

tf1 = tf.compat.v1
STEPS = 6


def input_fn(params):
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    examples = tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True)))
    return examples.repeat().batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
    kept = tf1.nn.dropout(features["x"], rate=0.25, seed=3)
    loss = tf.reduce_mean(tf.square(kept @ w - labels))
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def model(folder, cores: int) -> tpu.TPUEstimator:
    config = tpu.RunConfig(
        model_dir=str(folder), tf_random_seed=1, tpu_config=tpu.TPUConfig(iterations_per_loop=1)
    )
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=bool(cores), train_batch_size=4, params={"rate": 0.1}
    )


def run(folder, *options: str, environment: Any = ()) -> subprocess.CompletedProcess:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **dict(environment)}
    python = os.environ.get("E2S_JAX_PYTHON", sys.executable)
    command = [python, "-I", str(folder / "run.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export_step(model(folder / "unused", 0), input_fn, folder / "step", steps_per_block=4)
    return folder / "step"


@pytest.mark.evidence("training", "jax")
@pytest.mark.parametrize("cores", [0, 2])
def test_it_trains_what_the_cores_train_dropout_included(cores, emulated_cores, tmp_path):
    emulated_cores(cores)
    export_step(model(tmp_path / "unused", cores), input_fn, tmp_path / "step")
    saved = tmp_path / "trained.npz"
    ran = run(tmp_path / "step", f"--steps={STEPS}", f"--save={saved}", "--platform=cpu")
    assert ran.returncode == 0, ran.stderr
    described = json.loads((tmp_path / "step" / "description.json").read_text())
    assert described["replicas"] == max(cores, 1)
    assert described["batch_size"] == 4
    assert [row["name"] for row in described["feeds"]] == ["features/x", "labels"]
    trained = model(tmp_path / "model", cores).train(input_fn, max_steps=STEPS)
    with np.load(saved, allow_pickle=False) as values:
        for name in trained.get_variable_names():
            expected = trained.get_variable_value(name)
            np.testing.assert_allclose(values[name], expected, rtol=1e-5, err_msg=name)


def refused(ran: subprocess.CompletedProcess, said: str) -> None:
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    assert said in ran.stderr


def test_too_few_devices_are_one_sentence(emulated_cores, tmp_path):
    emulated_cores(2)
    export_step(model(tmp_path / "unused", 2), input_fn, tmp_path / "step")
    one = {"XLA_FLAGS": "--xla_force_host_platform_device_count=1", "JAX_NUM_CPU_DEVICES": "-1"}
    ran = run(tmp_path / "step", "--steps=1", environment=one)
    refused(ran, "exported for 2 replicas, and there are 1 devices")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 2}, "version 2 of the format"),
        ({"steps_per_block": 5}, "description.json does not fit step.bin"),
    ],
    ids=["newer", "another"],
)
def test_a_description_of_something_else_is_one_sentence(step, tmp_path, changed, said):
    folder = tmp_path / "copy"
    shutil.copytree(step, folder)
    path = folder / "description.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    refused(run(folder, "--steps=1"), said)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"w": np.zeros([3, 1], np.float32)}, "there is no value of 'global_step'"),
        (
            {"global_step": np.int64(0), "w": np.zeros([2, 1], np.float32)},
            "the value of 'w' is float32[2, 1]",
        ),
        ({"w": np.array([{}], object)}, "is no .npz file of arrays"),
    ],
    ids=["missing", "shape", "pickled"],
)
def test_values_that_do_not_fit_are_one_sentence(step, tmp_path, values, said):
    np.savez(tmp_path / "start.npz", **values)
    refused(run(step, "--steps=1", f"--start={tmp_path / 'start.npz'}"), said)


def test_batches_of_ones_own_come_from_a_file(step, tmp_path):
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    batch = {"features/x": x, "labels": x.sum(1, keepdims=True)}
    np.savez(tmp_path / "batches.npz", **{name: array[None] for name, array in batch.items()})
    (tmp_path / "batches.py").write_text(
        "import numpy as np\n"
        f"with np.load({str(tmp_path / 'batches.npz')!r}) as file:\n"
        "    arrays = [file['features/x'][0], file['labels'][0]]\n"
        "def batches():\n"
        "    for _ in range(5):\n"
        "        yield arrays\n"
    )
    own = [f"--batches={tmp_path / name}" for name in ("batches.npz", "batches.py")]
    said = [run(step, "--steps=5", *given).stdout for given in ([], [own[0]], [own[1]])]
    losses = [text.partition("step 5: ")[2].partition("\n")[0] for text in said]
    assert losses[0].startswith("loss")
    assert losses[1:] == [losses[0]] * 2
    assert "ended after 5 of 9 steps" in run(step, "--steps=9", own[1]).stdout


def test_the_loader_leaves_nothing_in_its_folder(step):
    before = sorted(file.name for file in step.iterdir())
    assert run(step, "--steps=1").returncode == 0
    assert sorted(file.name for file in step.iterdir()) == before


def test_an_op_without_a_program_of_xla_is_named_with_its_line_and_nothing_is_written(tmp_path):
    def with_python(features, labels, mode):
        loss = tf.reduce_mean(tf1.py_func(np.sin, [features["x"]], tf.float32))
        train_op = tf1.assign_add(tf1.train.get_global_step(), 1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    plain = estimator.Estimator(with_python, str(tmp_path / "model"))
    with pytest.raises(errors.UnsupportedError, match=r"PyFunc.*test_step_on_cores.py:\d+"):
        export_step(plain, lambda: input_fn({"batch_size": 4}), tmp_path / "step")
    assert [file.name for file in tmp_path.iterdir() if file.name != "model"] == []
