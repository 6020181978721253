"""Installed libraries that were written for Estimators get the `tensorflow` that they expect."""

from __future__ import annotations

import dataclasses
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator2strategy.engine import legacy_code
from estimator2strategy.engine.libraries import reading, remedies, served, table
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
    served.of_installed.cache_clear()
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
        "from tensorflow import gfile\n",
        "import tensorflow as tf\n\n\nclass Hook(tf.train.SessionRunHook):\n    pass\n",
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
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
        "    import tensorflow as tf\nx = tf.placeholder\n",
        "from tensorflow import keras, train\nlayers = keras.layers\n",
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
    file.write_text(f"{OF_TF2}from tensorflow.contrib import slim\n")  # TF 2 never had it
    assert reading.read("some_library", file).world == "1.15"


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


@pytest.mark.parametrize(("options", "is_tf2"), [([], "False"), (["--tf2"], "True")])
def test_adanet_sees_the_tensorflow_of_its_program(site, tmp_path, options, is_tf2):
    """By this switch it chooses the summaries of TF 1 or of TF 2."""
    folder = site("other", "")
    (folder / "adanet-0.9.0.dist-info").mkdir()
    (folder / "adanet").mkdir()
    (folder / "adanet" / "__init__.py").write_text("from tensorflow.python import tf2\n")
    program = tmp_path / "program.py"
    program.write_text("import adanet\nprint(adanet.tf2.enabled())\n")
    done = subprocess.run(
        [fresh.python(), "-m", "estimator2strategy", "run", *options, str(program)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == [is_tf2], done.stderr


# A library that cannot be imported: one sentence, with the command that mends it.


@pytest.fixture
def known(monkeypatch, site):
    """Puts a library into the table, and a release of it into a folder."""
    row = table.Library("some_known", "some-known", "2", "", "1.5", ("some-beside",), ("attrs",))
    monkeypatch.setattr(table, "rows", lambda: (row,))
    monkeypatch.setattr(table, "dropped", lambda: {"some_known": frozenset({"Old", "old"})})

    def make(release: str, source: str):
        folder = site("other", "")
        (folder / f"some_known-{release}.dist-info").mkdir()
        (folder / "some_known").mkdir()
        (folder / "some_known" / "__init__.py").write_text(source)

    served.release_of.cache_clear()
    yield make
    served.release_of.cache_clear()


INSTALL = "pip install --no-deps some-known==1.5 some-beside && pip install attrs"


def test_the_install_command_names_what_the_pins_leave_out(known):
    assert table.known("some_known")[0].install == INSTALL
    assert table.pip_install("setuptools<82") == 'pip install "setuptools<82"'


def test_a_missing_library_is_said_with_its_command(known):
    served.install()
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("some_known")
    assert str(caught.value) == f"some_known is not installed: {INSTALL}"
    assert caught.value.name == "some_known"


def test_a_missing_library_can_still_be_asked_for(known):
    served.install()
    assert importlib.util.find_spec("some_known") is None


def test_a_module_that_the_table_does_not_name_has_pythons_message(known):
    known("1.5", "import some_unheard_of")
    served.install()
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'some_unheard_of'$"):
        importlib.import_module("some_known")


def test_a_release_that_is_not_served_is_told_what_it_needs(known):
    known("2.1", "import attr.no_such_module")
    served.install()
    with pytest.raises(ImportError, match=r"^some_known 2.1 needs attr, .*: pip install attrs$"):
        importlib.import_module("some_known")


NEEDS_BESIDE = (
    "some_known 1.5 needs some_beside, which is not installed: pip install --no-deps some-beside"
)


@pytest.mark.parametrize("between", ["some_known", "some_helper"])
def test_a_part_of_a_library_that_lacks_a_module_is_told_its_command(known, site, between):
    known("1.5", "")
    folder = site("some_helper", "import some_beside")
    by = {"some_known": "import some_beside", "some_helper": "import some_helper"}[between]
    (folder / "some_known" / "part.py").write_text(by)
    served.install()
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("some_known.part")
    assert str(caught.value) == NEEDS_BESIDE
    assert caught.value.name == "some_beside"


def test_a_library_can_still_do_without_a_module(known):
    known("1.5", "try:\n    import some_beside\nexcept ModuleNotFoundError:\n    beside = None\n")
    served.install()
    assert importlib.import_module("some_known").beside is None


def test_a_program_that_imports_the_module_itself_has_pythons_message(known):
    served.install()
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'some_beside'$"):
        importlib.import_module("some_beside")


def test_a_library_of_todays_tensorflow_is_left_alone_and_told_what_it_needs(
    known, monkeypatch, capsys
):
    (row,) = table.rows()
    today = dataclasses.replace(row, below="", world=table.TODAY, needs=("some-beside==1.0",))
    monkeypatch.setattr(table, "rows", lambda: (dataclasses.replace(today, beside=()),))
    known("1.5", "import tensorflow as tf\ndef part():\n    import some_beside\n")
    served.install()
    module = importlib.import_module("some_known")
    assert module.tf is sys.modules["tensorflow"]
    assert capsys.readouterr().err == ""
    with pytest.raises(ModuleNotFoundError, match=r": pip install some-beside==1.0$"):
        module.part()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "import some_beside.apis",
            "some_known 1.5 needs some_beside, which is not installed: "
            "pip install --no-deps some-beside",
        ),
        (
            "raise ModuleNotFoundError('no pkg_resources', name='pkg_resources')",
            "some_known 1.5 needs pkg_resources, which is not installed: "
            'pip install "setuptools<82"',
        ),
        (
            "raise TypeError('Descriptors cannot be created directly.\\nMore.')",
            "some_known 1.5 has files that were made for an older protobuf (TypeError: Descriptors "
            "cannot be created directly.): export PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python",
        ),
        (
            "raise ImportError('/x/core.so: undefined symbol: _ZN4absl')",
            "some_known 1.5 was compiled for another TensorFlow (ImportError: /x/core.so: "
            "undefined symbol: _ZN4absl): pip install --no-deps --upgrade some-known",
        ),
    ],
)
def test_a_library_that_does_not_load_is_said_with_its_command(known, source, sentence):
    known("1.5", source)
    served.install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module("some_known")
    assert str(caught.value) == sentence


def test_the_package_that_does_not_load_is_the_one_that_is_named(known, site):
    site("some_ops", "raise ImportError('/x/ops.so: undefined symbol: _ZN4absl')")
    known("1.5", "import some_ops")
    served.install()
    with pytest.raises(ImportError, match=r"^some_ops was compiled .* --upgrade some-ops$"):
        importlib.import_module("some_known")


def test_a_library_of_ops_for_another_tensorflow_is_said_with_its_command(site, monkeypatch):
    monkeypatch.setattr(remedies, "COMPILED", {"some_compiled"})
    site("some_compiled", "raise ImportError('/x/ops.so: undefined symbol: _ZN4absl')")
    served.install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module("some_compiled")
    assert str(caught.value) == (
        "some_compiled was compiled for another TensorFlow (ImportError: /x/ops.so: undefined "
        "symbol: _ZN4absl): pip install --no-deps --upgrade some-compiled"
    )


def test_another_release_that_needs_what_is_gone_is_sent_to_the_one_that_was_tried(known):
    known("1.2", "from tensorflow.python.no_such_module import name")
    served.install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module("some_known")
    assert str(caught.value).startswith("some_known 1.2 does not import here (ModuleNotFoundError")
    assert str(caught.value).endswith(f"; 1.5 does: {INSTALL}")


def test_the_sentence_of_a_library_that_it_imports_stays_alone(known, site):
    known("1.2", "import some_known.part")
    folder = site("some_other", "")
    part = folder / "some_known" / "part.py"
    part.write_text("from some_compiled import name\n")
    site("some_compiled", "raise ImportError('/x/ops.so: undefined symbol: _ZN4absl')")
    served.install()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(remedies, "COMPILED", {"some_compiled"})
        with pytest.raises(ImportError, match=r"^some_compiled was compiled for another"):
            importlib.import_module("some_known")


def test_an_error_of_the_release_that_was_tried_is_its_own(known):
    known("1.5", "raise AttributeError('mine')")
    served.install()
    with pytest.raises(AttributeError, match=r"^mine$"):
        importlib.import_module("some_known")


GOES_ON = "try:\n    import {}\n    __version__ = '1.5'\nexcept ImportError as e:\n    print(e)\n"


def test_an_import_error_that_a_library_only_prints_ends_the_import(known, monkeypatch):
    monkeypatch.setattr(remedies, "_GO_ON", {"some_known"})
    known("1.5", GOES_ON.format("json\n    from some_beside.apis import name"))
    served.install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module("some_known")
    assert str(caught.value) == (
        "some_known 1.5 needs some_beside, which is not installed: "
        "pip install --no-deps some-beside"
    )


def test_a_library_that_might_print_and_imports_is_not_read_again(known, monkeypatch):
    monkeypatch.setattr(remedies, "_GO_ON", {"some_known"})
    monkeypatch.setattr(remedies.ast, "parse", None)
    known("1.5", GOES_ON.format("json"))
    served.install()
    assert importlib.import_module("some_known").__version__ == "1.5"


def test_another_release_of_what_stands_beside_is_said_with_its_command(known, site, monkeypatch):
    row = dataclasses.replace(table.rows()[0], beside=("some-pinned==1.2",))
    monkeypatch.setattr(table, "rows", lambda: (row,))
    monkeypatch.setitem(remedies._DISTRIBUTIONS, "some_pinned", "some-pinned==1.2")
    site("some_pinned", "")
    known("1.5", "from some_pinned import sql")
    served.install()
    with pytest.raises(ImportError) as caught:
        importlib.import_module("some_known")
    assert str(caught.value).startswith(
        "some_known 1.5 needs some-pinned==1.2 (ImportError: cannot"
    )
    assert str(caught.value).endswith("): pip install --no-deps some-pinned==1.2")


def test_a_dropped_name_is_said_with_the_release_that_has_it(known):
    known("2.1", "New = 1")
    served.install()
    sentence = f"some-known 2.1 has dropped some_known.Old; 1.5 has it: {INSTALL}"
    with pytest.raises(ImportError) as caught:
        exec("from some_known import Old", {})
    assert str(caught.value) == sentence
    with pytest.raises(ImportError) as caught:
        exec("import some_known.old", {})
    assert str(caught.value) == sentence.replace("Old", "old")
    module = importlib.import_module("some_known")
    with pytest.raises(AttributeError) as lost:
        module.Old  # noqa: B018
    assert str(lost.value) == sentence
    assert not hasattr(module, "Old")
    with pytest.raises(AttributeError, match=r"^module 'some_known' has no attribute 'other'$"):
        module.other  # noqa: B018
    with pytest.raises(ImportError, match=r"^cannot import name 'other'"):
        exec("from some_known import other", {})


def test_a_release_that_has_the_name_says_nothing(known, capsys):
    known("1.4", "Old = 1")
    served.install()
    assert importlib.import_module("some_known").Old == 1
    assert importlib.util.find_spec("some_known.old") is None


def test_another_package_of_a_known_name_is_read(known, capsys):
    known("1.4", "import tensorflow as tf\n")
    (folder,) = Path(sys.path[0]).glob("*.dist-info")
    folder.rename(folder.with_name("another-1.4.dist-info"))
    served.install()
    importlib.import_module("some_known")
    assert capsys.readouterr().err == ""


def test_the_guide_has_the_command_of_every_row():
    guide = (ROOT / "migration_guide" / "libraries.md").read_text(encoding="utf-8")
    for row in table.rows():
        assert f"`{row.install}`" in guide


def test_every_row_says_how_to_install_it():
    for row in table.rows():
        assert f"{row.distribution}=={row.release}" in row.install
        assert not row.below or table.find(row.module, row.release) is row
        assert row.world in ("", "1.15", "2.15", table.TODAY)
    assert set(table.dropped()) == {row.module for row in table.rows() if row.below} - {
        "tensorflow_ranking"
    }
