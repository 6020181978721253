"""Libraries built on Estimators are told beforehand, at the release that is pinned or installed."""

from __future__ import annotations

import pytest

from estimator2strategy.engine.libraries import served
from estimator2strategy.tools.check import pinned_releases
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.pinned_releases import admits, pinned
from estimator2strategy.tools.check.settings import Settings, Target

HUB = "import tensorflow_hub as hub\n\nmodule = hub.Module(path)\n"
ON_HUB_015 = (
    "0.15.0 has it, and runs unchanged: `pip install --no-deps tensorflow-hub==0.15.0 && "
    'pip install "setuptools<82"`.'
)


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    monkeypatch.setattr(served, "release_of", lambda module: "")
    monkeypatch.setattr(served, "of_installed", lambda module: None)


def told(folder, program, target=Target.FACADE, **files):
    """The severity and message of each finding about such libraries."""
    package = folder / "trainer"
    package.mkdir()
    (package / "task.py").write_text(program)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    found = check([str(package)], Settings(target=target)).findings
    return [(f.severity, f.message, f.fix) for f in found if f.rule in ("E2S801", "E2S802")]


def test_a_library_that_is_served_is_a_note(tmp_path):
    ((severity, message, fix),) = told(tmp_path, "import tensorflow_ranking as tfr\n")
    assert severity == Severity.INFO
    assert message == "tensorflow_ranking was written for Estimators, and is served"
    assert fix == (
        "Run the program with `e2s run`. It is installed by `pip install --no-deps "
        "tensorflow-ranking==0.5.5 tensorflow-serving-api`."
    )


def test_a_library_of_todays_tensorflow_is_no_finding(tmp_path):
    assert told(tmp_path, "import kfac\nimport trfl\n", Target.TF2) == []


def test_on_tensorflow_alone_it_is_an_error(tmp_path):
    program = "import tensorflow_ranking as tfr\n"
    ((severity, message, _),) = told(tmp_path, program, Target.TF2)
    assert severity == Severity.ERROR
    assert message.endswith("and does not import without this package")


def test_a_program_that_imports_this_package_is_served(tmp_path):
    program = "import estimator2strategy.tf1 as tf\nimport adanet\n"
    assert [severity for severity, *_ in told(tmp_path, program)] == [Severity.INFO]


def test_a_name_that_the_newest_release_has_dropped_is_an_error_with_the_one_that_has_it(tmp_path):
    assert told(tmp_path, HUB) == [
        (
            Severity.ERROR,
            "tensorflow_hub.Module is gone: tensorflow-hub of today does not have it",
            ON_HUB_015,
        )
    ]


def test_the_pinned_release_decides(tmp_path):
    (found,) = told(tmp_path, HUB, requirements__txt="tensorflow_hub==0.12.0  # the old one\n")
    assert found[:2] == (
        Severity.INFO,
        "tensorflow_hub 0.12.0 was written for Estimators, and is served",
    )


def test_a_pinned_release_that_lacks_the_name_is_named(tmp_path):
    (found,) = told(tmp_path, HUB, setup__py="setup(install_requires=['tensorflow-hub>=0.16.1'])\n")
    assert found[1] == "tensorflow_hub.Module is gone: tensorflow-hub 0.16.1 does not have it"


def test_names_that_are_still_there_are_no_finding(tmp_path):
    assert told(tmp_path, "import tensorflow_hub as hub\n\nlayer = hub.KerasLayer(path)\n") == []


def test_the_installed_release_decides_where_none_is_pinned(tmp_path, monkeypatch):
    monkeypatch.setattr(served, "release_of", lambda module: "0.15.0")
    monkeypatch.setattr(served, "of_installed", lambda module: served.Served("0.15.0", ""))
    (found,) = told(tmp_path, HUB)
    assert found[1] == "tensorflow_hub 0.15.0 was written for Estimators, and is served"


def test_a_module_of_the_program_is_no_library(tmp_path):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "bert.py").write_text("x = 1\n")
    (tmp_path / "trainer" / "task.py").write_text("import bert\n")
    found = check([str(tmp_path)], Settings()).findings
    assert [f for f in found if f.rule == "E2S801"] == []


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("requirements.txt", "tensorflow-hub==0.15.0\n", "0.15.0"),
        ("requirements-gpu.txt", "x\nTensorFlow_Hub[extra] ~= 0.9 ; python_version>'3'\n", "0.9"),
        ("requirements.txt", "tensorflow-hub>=0.7,<0.16\n", "0.15.0"),
        ("requirements.txt", "tensorflow-hub>=0.7\n", ""),
        ("requirements.txt", "tensorflow-hub>=0.16\n", "0.16"),
        ("requirements.txt", "# tensorflow-hub\nmy-tensorflow-hub==0.2\n", ""),
        ("setup.py", "install_requires=['tensorflow-hub<=0.12', 'six==1.0']\n", "0.12"),
        ("setup.py", "['tensorflow-hub', 'six==1.0']\n", ""),
        ("pyproject.toml", 'dependencies = ["tensorflow-hub == 0.16.1"]\n', "0.16.1"),
        ("pyproject.toml", 'tensorflow-hub = "^0.14.0"\n', "0.14.0"),
        ("environment.yml", "  - tensorflow-hub=0.13\n", "0.13"),
    ],
)
def test_the_release_that_requirements_ask_for(tmp_path, name, text, release):
    (tmp_path / name).write_text(text)
    assert pinned("tensorflow_hub", str(tmp_path / "trainer" / "task.py")) == release


@pytest.mark.parametrize(
    ("requirements", "installed", "fits"),
    [
        ("setuptools==80.9.0", {}, True),
        ("setuptools<82", {}, True),
        ("setuptools<=81", {}, True),
        ("setuptools<90", {}, False),
        ("setuptools==82.0.1", {"tensorflow_hub": "0.15.0", "setuptools": "65.5.0"}, False),
        ("tensorflow-hub==0.15.0", {"tensorflow_hub": "0.15.0", "setuptools": "65.5.0"}, True),
        ("tensorflow-hub==0.15.0", {"tensorflow_hub": "0.15.0", "setuptools": "82.0.1"}, False),
        ("tensorflow-hub==0.15.0", {"tensorflow_hub": "0.15.0"}, False),
        # Nothing says that the program runs here.
        ("tensorflow-hub==0.15.0", {"setuptools": "65.5.0"}, False),
    ],
)
def test_a_library_is_right_beside_the_release_that_it_needs(
    tmp_path, monkeypatch, requirements, installed, fits
):
    monkeypatch.setattr(pinned_releases, "_installed", lambda name: installed.get(name, ""))
    (tmp_path / "requirements.txt").write_text(f"{requirements}\n")
    task = tmp_path / "task.py"
    task.write_text("import tensorflow_hub as hub\n")
    assert admits("setuptools<82", "tensorflow_hub", str(task)) == fits
    rules = {f.rule for f in check([str(task)], Settings()).findings}
    assert ("E2S107" in rules) != fits


def test_tensorboard_is_right_where_it_is_installed_or_asked_for(tmp_path, monkeypatch):
    task = tmp_path / "task.py"
    task.write_text("from tensorboard.plugins import projector\n")
    monkeypatch.setattr(pinned_releases, "_installed", lambda name: "")
    assert [f.rule for f in check([str(task)], Settings()).findings] == ["E2S107"]
    monkeypatch.setattr(pinned_releases, "_installed", lambda name: "2.21.0")
    assert not check([str(task)], Settings()).findings
    monkeypatch.undo()
    (tmp_path / "setup.py").write_text("setup(install_requires=['tensorboard'])\n")
    assert not check([str(task)], Settings()).findings
