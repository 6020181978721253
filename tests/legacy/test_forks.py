"""A program that brings a tpu_estimator.py of its own is told so, and can use ours."""

from __future__ import annotations

import importlib
import sys

import pytest

from estimator2strategy.engine import legacy_code
from estimator2strategy.estimator import tpu
from estimator2strategy.legacy import importing

FORK = """
from tensorflow.contrib.tpu.python.tpu import session_support
class _InputPipeline(object):
  pass
class TPUEstimator(object):
  pass
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A program with a fork; returns how to import it."""
    (tmp_path / "forked").mkdir()
    (tmp_path / "forked" / "__init__.py").write_text("")
    (tmp_path / "forked" / "tpu_estimator.py").write_text(FORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(legacy_code, "_added", ())
    importing.install(importing.Scope(legacy=frozenset({"forked"})))
    yield lambda: importlib.import_module("forked.tpu_estimator")
    for name in [name for name in sys.modules if name.partition(".")[0] == "forked"]:
        del sys.modules[name]


def test_a_fork_is_refused_with_its_module_and_the_way_out(project):
    with pytest.raises(ImportError, match=r"copy of TensorFlow's own.*--fork=forked.tpu_estimator"):
        project()


def test_ours_takes_the_place_of_a_fork_that_is_named(project):
    importing.install(importing.Scope(forks=frozenset({"forked.tpu_estimator"})))
    module = project()
    assert issubclass(module.TPUEstimator, tpu.TPUEstimator)
    assert module.TPUEstimatorSpec is tpu.TPUEstimatorSpec
