"""`e2s verify --runtime=jax`: goldens of the real TPUEstimator hold under JAX."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("jax", minversion="0.10")

from estimator2strategy.engine.replay.engines.on_jax import OnJax
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.tools.golden import output, verify
from tests.tools.golden.parity_replay import GOLDENS, replayed, statuses


@pytest.fixture
def blocks(jax_devices, monkeypatch):
    """Says how each block of steps ran, in a list of precisions."""
    ran = []
    run = OnJax.run

    def noting(self, steps, feeds):
        ran.append(self._values.precision)
        return run(self, steps, feeds)

    monkeypatch.setattr(OnJax, "run", noting)
    jax_devices(1)
    monkeypatch.delenv("E2S_RUNTIME")  # the option asks for it
    monkeypatch.setenv("E2S_PRECISION", "default")
    return ran


def under_jax(*arguments):
    options = verify.parser().parse_args(["golden", "--runtime=jax", *arguments])
    return verify._cores(options)


@pytest.mark.parametrize(
    ("golden", "flags"), [("parity_tf115", {}), ("parity_dropout_tf215", {"dropout": "0.3"})]
)
def test_goldens_pass_every_tier_in_the_highest_precision(
    golden, flags, blocks, capsys, monkeypatch
):
    monkeypatch.setitem(os.environ, "E2S_RUNTIME", "tensorflow")  # put back behind the test
    assert under_jax() == 0
    assert "highest precision" in capsys.readouterr().err
    comparison = replayed(golden, **flags)
    expected = dict.fromkeys(statuses(comparison), "PASSED") | {"replicas": "UNCHECKED"}
    assert statuses(comparison) == expected, output.text_of(comparison)
    assert len(blocks) > 10
    assert set(blocks) == {Precision.HIGHEST}


def test_cores_that_tensorflow_emulates_are_refused(blocks, capsys):
    arguments = [str(GOLDENS / "parity_tf115"), "--runtime=jax", "--cores=2"]
    assert verify.main(arguments) == 2
    assert "--cores are emulated by TensorFlow" in capsys.readouterr().err
