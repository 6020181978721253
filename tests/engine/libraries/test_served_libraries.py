"""Installed libraries that were written for Estimators get the `tensorflow` that they expect."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator2strategy.engine import legacy_code
from estimator2strategy.engine.libraries import reading, served, table
from estimator2strategy.engine.libraries.reading import Need
from tests import fresh

ROOT = Path(__file__).parents[3]
OF_TF2 = "import tensorflow as tf\nhalf = tf.compat.v1.placeholder_with_default\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Makes installed modules of a name and a source, and forgets them."""
    folder = tmp_path / "site-packages"
    scopes = legacy_code._added

    def make(name: str, source: str):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(source)
        return folder

    monkeypatch.syspath_prepend(str(folder))
    yield make
    legacy_code._added = scopes
    served._scope_of.cache_clear()
    for name in [n for n in sys.modules if n.startswith("some_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "source",
    [
        "from tensorflow import estimator\n",
        "from tensorflow.compat.v1 import (\n    layers,\n    estimator,\n)\n",
        "import tensorflow.contrib.slim as slim\n",
        "from tensorflow_estimator.python.estimator import estimator as lib\n",
        "from tensorflow.python.estimator.canned import dnn\n",
        "import tensorflow as tf\n\n\nclass Model(tf.estimator.Estimator):\n    pass\n",
        "import tensorflow.compat.v1 as tf\nHead = tf.estimator.Head\n",
        "from some_library.part import name\n",
        "from .part import name\n",
        "from . import part\n",
        "import tensorflow as tf\n\n\ndef f():\n    return tf.placeholder(tf.contrib.x)\n",
    ],
)
def test_packages_that_need_dropped_names_are_told(site, source):
    folder = site("some_library____init__", "")
    package = folder / "some_library"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(source)
    if "part" in source:
        (package / "part.py").write_text("from tensorflow import estimator\nname = 1\n")
    assert reading.read("some_library", package).need is Need.NEEDS_OLD


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf\n\nx = tf.constant(1)\n",
        "try:\n    from tensorflow import estimator\nexcept ImportError:\n    estimator = None\n",
        '"""Like\n\nfrom tensorflow import estimator\n"""\nimport tensorflow as tf\n',
        "import tensorflow as tf\n\n\ndef train():\n    return tf.estimator.Estimator\n",
        "import estimator\nfrom estimator import tensorflow\n",
        "import tensorflow.compat.v1 as tf\n\nx = tf.placeholder\ny = tf.layers.dense\n",
    ],
)
def test_packages_that_run_today_are_not(tmp_path, source):
    file = tmp_path / "some_library.py"
    file.write_text(source)
    assert reading.read("some_library", file).need is not Need.NEEDS_OLD


def test_a_package_with_one_old_file_that_nothing_imports_stays_undecided(tmp_path):
    package = tmp_path / "some_library"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("a", "b"):
        (package / f"{name}.py").write_text("import tensorflow as tf\n")
    (package / "old.py").write_text("import tensorflow as tf\nfrom tensorflow import estimator\n")
    read = reading.read("some_library", package)
    assert read.need is Need.UNDECIDED
    assert read.because.endswith("old.py")


def test_the_world_is_that_of_the_names_that_a_package_uses(tmp_path):
    file = tmp_path / "some_library.py"
    file.write_text("import tensorflow as tf\nx = tf.contrib.slim\n")
    assert reading.read("some_library", file).world == "1.15"
    file.write_text(f"{OF_TF2}y = tf.estimator.Estimator\n")
    assert reading.read("some_library", file).world == "2.15"


def test_rows_hold_for_their_releases():
    world = {release: table.find("tensorflow_ranking", release) for release in ("0.2.3", "0.5.5")}
    assert [row.world for row in world.values()] == ["1.15", "2.15"]
    assert table.find("tensorflow_hub", "0.15.0")
    assert table.find("tensorflow_hub", "0.16.1") is None
    assert table.find("tensorflow_hub", "") is not None
    assert table.find("pandas", "3.0") is None


def test_the_release_is_read_from_what_pip_left(tmp_path):
    (tmp_path / "tensorflow_ranking-0.5.5.dist-info").mkdir()
    (tmp_path / "Tensorflow_Ranking_extra-1.0.dist-info").mkdir()
    assert table.installed("tensorflow-ranking", tmp_path) == "0.5.5"
    assert table.installed("tensorflow-hub", tmp_path) == ""


def test_a_library_is_served_with_one_line(site, capsys):
    site("some_served", "from tensorflow import estimator\nimport tensorflow as tf\n")
    served.install()
    module = importlib.import_module("some_served")
    assert module.estimator.Estimator.__module__.startswith("estimator2strategy")
    assert not hasattr(sys.modules["tensorflow"], "estimator")
    assert capsys.readouterr().err == (
        "e2s: some_served was written for Estimators and gets the names of TensorFlow 2.15; "
        "E2S_MODERN_MODULES=some_served switches this off\n"
    )


def test_a_library_that_runs_today_is_left_alone(site, capsys):
    site("some_modern", "import tensorflow as tf\n")
    served.install()
    assert importlib.import_module("some_modern").tf is sys.modules["tensorflow"]
    assert capsys.readouterr().err == ""


def test_serving_can_be_switched_off(site, monkeypatch):
    site("some_off", "from tensorflow import estimator\n")
    served.install()
    monkeypatch.setenv(served.VARIABLE, "other,some_off")
    with pytest.raises(ImportError):
        importlib.import_module("some_off")


def test_e2s_run_serves_without_an_option(site, tmp_path):
    folder = site("some_run", "from tensorflow import estimator\n")
    program = tmp_path / "program.py"
    program.write_text("import some_run\nprint(some_run.estimator.Estimator.__name__)\n")
    done = subprocess.run(
        [fresh.python(), "-m", "estimator2strategy", "run", str(program)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["Estimator"], done.stderr
