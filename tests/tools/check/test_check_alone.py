"""`e2s check` in CI: the package is installed with `--no-deps`, and nothing else is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def alone(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `e2s` with Python's own modules and this package's."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "estimator2strategy", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_source_is_checked_and_reported_in_every_format(tmp_path):
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.contrib.eager.Iterator(1)\n")
    formats = ["text", "github", *(f"{name}=report.{name}" for name in ("json", "sarif", "html"))]
    given = [part for name in (*formats, "junit=report.junit") for part in ("--format", name)]
    ran = alone("check", ".", *given, folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "E2S101" in ran.stdout
    assert all(
        (tmp_path / f"report.{name}").stat().st_size for name in ("json", "sarif", "html", "junit")
    )


@pytest.mark.parametrize("command", ["explain E2S203", "guide ladder", "--version", "check --help"])
def test_what_explains_a_finding_runs_too(tmp_path, command):
    ran = alone(*command.split(), folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_command_that_needs_more_says_so_in_one_line(tmp_path):
    ran = alone("verify", "golden", folder=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith("e2s verify: numpy is not installed in this environment; ")
    assert ran.stderr.count("\n") == 1


# Nine lines that an Estimator trains by.
SHORT = """\
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

tf.estimator.Estimator(model_fn).train(lambda: tf.data.TFRecordDataset("train"), steps=3)
"""
LOADED = """\
import sys
from estimator2strategy.__main__ import main
main(["check", "train.py"])
sys.stderr.write("\\n".join(name for name in sys.modules if name.startswith("estimator2strategy")))
"""


def test_a_short_program_is_checked_by_the_rules_that_it_has_words_for(tmp_path):
    (tmp_path / "train.py").write_text(SHORT)
    ran = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = ran.stderr.splitlines()
    assert len(loaded) <= 45
    rules = [name.partition(".check.rules.")[2] for name in loaded if ".check.rules." in name]
    # This one asks each package that is imported if it was written for Estimators.
    rules = [name for name in rules if name not in ("libraries", "libraries.served_library")]
    assert {name.partition(".")[0] for name in rules} == {"estimator", "python", "tensorflow"}
