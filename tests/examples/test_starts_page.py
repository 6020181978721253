"""The image of migration_guide/starts.md: a folder in its place, where its lines run.

Installing is left out: `.ci/run` installs the wheel (tests/test_wheel.py), and
`test_docker_image.py` has the files that it is made of.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import fresh

PAGE = Path(__file__).resolve().parents[2] / "migration_guide/starts.md"
(DOCKERFILE,) = re.findall(r"^```dockerfile\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)

TRAINER = """
import tensorflow as tf

tf.flags.DEFINE_string("model_dir", None, "")
tf.flags.DEFINE_integer("steps", 1, "")
FLAGS = tf.flags.FLAGS

def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [2, 1])
    loss = tf.losses.mean_squared_error(labels, tf.matmul(features, weight))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def main(argv):
    data = tf.data.Dataset.from_tensors
    model = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
    model.train(lambda: data((tf.ones([4, 2]), tf.ones([4, 1]))).repeat(), steps=FLAGS.steps)

tf.app.run(main)
"""


def instructions(*names: str) -> list[str]:
    """The arguments of such instructions, in their order, as one line each."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [
        line.partition(" ")[2] for line in joined.splitlines() if line.partition(" ")[0] in names
    ]


@pytest.fixture
def image(tmp_path):
    """`image(command)` runs a shell command in the image, whose root is a folder."""
    program, path = tmp_path / "program", tmp_path / "bin/e2s"
    program.mkdir()
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {fresh.python()} -m estimator2strategy "$@"\n')
    path.chmod(0o755)
    (program / "trainer.py").write_text(TRAINER)
    variables = dict(line.split("=") for line in instructions("ENV"))
    rooted = {name: f"{tmp_path}{value}" for name, value in variables.items()}

    def run(command: str) -> str:
        ran = subprocess.run(
            re.sub(r"(?<=[= ])/(?=tmp/)", f"{tmp_path}/", command),
            shell=True,
            cwd=program,
            env={**os.environ, "PATH": f"{path.parent}:{os.environ['PATH']}", **rooted},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stderr

    run.kept = Path(rooted["E2S_CACHE"])
    return run


def kept(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_image_is_warmed_as_the_user_who_trains_in_a_folder_that_is_theirs():
    names = [line.partition(" ")[0] for line in DOCKERFILE.splitlines()]
    warms = next(i for i, line in enumerate(DOCKERFILE.splitlines()) if "e2s run" in line)
    assert names.index("USER") < warms
    (user,) = instructions("USER")
    (folder,) = (line.split("=")[1] for line in instructions("ENV") if "E2S_CACHE" in line)
    assert f"install -d -o {user} {folder}" in DOCKERFILE


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="jax is not installed")
def test_training_in_the_warmed_image_finds_its_step_compiled(image):
    (warm,) = (line for line in instructions("RUN") if "e2s run" in line)
    image(warm)
    found = kept(image.kept)
    assert found
    assert sorted(path.name for path in Path(image.kept).parents[1].glob("tmp/*")) == []
    said = image("e2s run --runtime=jax trainer.py --model_dir=model --steps=30")
    assert "Loss for final step" in said
    assert kept(image.kept) == found
