"""Every example runs, in a small setting, and finds the parity that it promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fresh

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(EXAMPLES.parent),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
}


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [fresh.python(), *map(str, command)],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


def test_last_stage_of_the_ladder_does_not_name_the_package():
    """As `grep` in the guide's last stage looks for it."""
    last = (EXAMPLES / "ladder" / "stage_8.py").read_text()
    assert re.findall(r"estimator2strategy|e2s\.", last) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "flags"),
    [
        ("ladder/ladder.py", ["--train_steps=10", "--stages", "1", "6", "7"]),
        ("gan/gan.py", ["--train_steps=20"]),
        ("wide_deep/wide_deep.py", ["--train_steps=5"]),
        ("bert/fine_tune.py", ["--train_steps=4", "--pretrain_steps=4"]),
        ("multi_worker/multi_worker.py", ["--train_steps=4"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_two_ways_give_the_same_losses(program, flags, tmp_path):
    pytest.importorskip("matplotlib")
    run(EXAMPLES / program, f"--out={tmp_path}", *flags)
    assert list(tmp_path.glob("*.png"))


@pytest.mark.slow
def test_a_job_with_a_parameter_server_trains_with_one_and_with_two_workers(tmp_path):
    pytest.importorskip("matplotlib")
    run(EXAMPLES / "cluster" / "cluster.py", f"--out={tmp_path}", "--max_steps=60")
    assert list(tmp_path.glob("*.png"))


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("jpegs")
    run(EXAMPLES / "flowers" / "make_jpegs.py", f"--out={folder}")
    return folder


@pytest.fixture(scope="module")
def records(jpegs, tmp_path_factory) -> Path:
    """The TFRecords that the Beam pipeline would make of them, made without Beam."""
    import tensorflow as tf

    sys.path.insert(0, str(EXAMPLES / "flowers"))
    try:
        import to_tfrecords
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("records")
    for split in ("train", "test"):
        paths = sorted(jpegs.glob(f"{split}/*/*.jpg"), key=lambda path: path.name)
        with tf.io.TFRecordWriter(str(folder / f"{split}-00000-of-00001.tfrecord")) as writer:
            for path in paths:
                assert to_tfrecords.is_jpeg(str(path), path.read_bytes())
                writer.write(to_tfrecords.make_example(str(path), path.read_bytes()))
    return folder


@pytest.mark.slow
@pytest.mark.evidence("flowers", "cpu")
def test_flowers_train_resume_export_and_answer(jpegs, records, tmp_path):
    folder = EXAMPLES / "flowers"
    e2s_run = ("-m", "estimator2strategy", "run", "--emulate-tpu-cores=2", folder / "flowers.py")
    flags = [f"--data_dir={records}", "--steps_per_eval=2", "--iterations=2", "--batch_size=32"]
    for steps in (2, 4):  # the second goes on where the first has ended
        more = [f"--export_dir={tmp_path / 'exported'}"] if steps == 4 else []
        run(*e2s_run, *flags, f"--model_dir={tmp_path / 'model'}", f"--train_steps={steps}", *more)
    assert (tmp_path / "model" / "model.ckpt-4.index").exists()
    jpeg = next(jpegs.glob("test/flower/*.jpg"))
    answer = run(folder / "serve.py", f"--export_dir={tmp_path / 'exported'}", f"--jpeg={jpeg}")
    assert "shows:" in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cores", "tpu"), [("1x8", ""), ("2x4", "grpc://10.0.0.1:8470,grpc://10.0.0.2:8470")]
)
@pytest.mark.evidence("flowers", "rehearsed")
def test_flowers_on_a_rehearsed_tpu_end_as_on_emulated_cores(records, tmp_path, cores, tpu):
    import numpy as np
    import tensorflow as tf

    flowers = EXAMPLES / "flowers" / "flowers.py"
    flags = [f"--data_dir={records}", "--steps_per_eval=2", "--iterations=2", "--batch_size=32"]
    rehearsed = EXAMPLES.parent / "tests" / "programs" / "rehearsed.py"
    started = {
        "emulated": ("-m", "estimator2strategy", "run", flowers),
        "rehearsed": (rehearsed, cores, flowers, f"--tpu={tpu}"),
    }
    found = {}
    for name, command in started.items():
        folders = [f"--model_dir={tmp_path / name}", f"--export_dir={tmp_path / name / 'exported'}"]
        emulated = {"E2S_EMULATE_TPU_CORES": cores} if name == "emulated" else {}
        run(*command, *flags, *folders, "--train_steps=4", **emulated)
        reader = tf.train.load_checkpoint(str(tmp_path / name))
        found[name] = {v: reader.get_tensor(v) for v in reader.get_variable_to_shape_map()}
        (metrics,) = (tmp_path / name / "eval").glob("events*")
        events = list(tf.compat.v1.train.summary_iterator(str(metrics)))
        values = [value for event in events for value in event.summary.value]
        found[name]["metrics"] = [v.simple_value for v in values if v.HasField("simple_value")]
        assert found[name]["metrics"]
        (exported,) = (tmp_path / name / "exported").iterdir()
        assert (exported / "saved_model.pb").exists()
    assert found["rehearsed"].keys() == found["emulated"].keys()
    for name, value in found["emulated"].items():
        np.testing.assert_allclose(
            found["rehearsed"][name], value, rtol=1e-5, atol=1e-5, err_msg=name
        )


def test_files_that_are_no_jpegs_are_left_out(records):
    import to_tfrecords

    assert not to_tfrecords.is_jpeg("a.jpg", b"no jpeg")
    assert not to_tfrecords.is_jpeg("a.jpg", b"\xff\xd8cut short")


def test_the_notebook_was_executed_and_is_small():
    path = EXAMPLES / "ladder" / "ladder.ipynb"
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error"]
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize("picture", sorted(EXAMPLES.glob("*/*.png")), ids=lambda path: path.name)
def test_pictures_are_small(picture):
    assert picture.stat().st_size < 100_000
