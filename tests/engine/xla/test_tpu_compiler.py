"""The real TPU compiler, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from legacy_models import BATCH, CLASSES, FEATURES, dense_net, program_of

from estimator2strategy.engine.replay.xla.lowering import lower
from estimator2strategy.engine.xla import tpu_compiler, tpus
from estimator2strategy.engine.xla.tpu_compiler import (
    CompileStatus,
    MissingLibtpuError,
    TpuCompiler,
)
from estimator2strategy.engine.xla.tpus import GIB

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libtpu is for Linux only")

V2, V3 = (tpus.table()[name] for name in ("v2-8", "v3-8"))


@pytest.fixture(scope="module")
def step() -> bytes:
    """A train step of eight cores."""
    return lower(program_of(dense_net))


def of_shape(*shape: int) -> bytes:
    """A program that has all of a matrix of float32 and its square in memory."""

    @tf.function(jit_compile=True)
    def squared(x):
        return tf.matmul(x, x)

    return squared.experimental_get_compiler_ir(tf.TensorSpec(shape))(stage="hlo_serialized")


# Results.


@pytest.mark.oldest
@pytest.mark.evidence("training", "compiled", "v3")
def test_a_train_step_compiles_for_a_tpu(step):
    result = TpuCompiler().compile(V3, step, 8)
    assert result.status is CompileStatus.COMPILES
    assert result.text == ""
    # Forward, and the gradient of the weights.
    assert result.flops >= 2 * 2 * (BATCH // 8) * FEATURES * CLASSES
    assert 0 < result.argument_bytes <= result.peak_bytes < V3.hbm_bytes
    assert result.excess_bytes == 0
    assert result.seconds > 0
    assert not result.kept


@pytest.mark.parametrize("name", tpus.table())
def test_the_compiler_has_each_tpu_of_the_table(name):
    tpu = tpus.table()[name]
    result = TpuCompiler().compile(tpu, of_shape(1 << 18, 1 << 18), tpu.devices)
    assert result.status is CompileStatus.TOO_LARGE
    # The compiler says the same of the memory as the table does.
    assert f"exceeds available HBM ({tpu.hbm_gib:.2f}G)" in result.text
    one_more = TpuCompiler().compile(tpu, of_shape(8, 8), tpu.devices + 1)
    assert f"has {tpu.devices} devices" in one_more.text


def test_a_program_that_is_too_large_says_by_how_far():
    side = 1 << 16  # of float32: 16 GiB
    result = TpuCompiler().compile(V2, of_shape(side, side), 8)
    assert result.status is CompileStatus.TOO_LARGE
    assert result.peak_bytes >= 2 * 16 * GIB
    assert result.excess_bytes == result.peak_bytes - V2.hbm_bytes
    assert not result.fits
    assert result.seconds > 0
    assert result.cpu_seconds > 0


def test_what_the_compiler_refuses_is_said_in_its_words():
    @tf.function(jit_compile=True)
    def fourier(x):
        return tf.signal.fft(x)

    spec = tf.TensorSpec([8, 16], tf.complex128)
    module = fourier.experimental_get_compiler_ir(spec)(stage="hlo_serialized")
    result = TpuCompiler().compile(V3, module, 8)
    assert result.status is CompileStatus.REFUSED
    assert "Unexpected operand type for FFT: c128" in result.text


@pytest.mark.parametrize(
    ("text", "gibibytes"),
    [
        ("HLO temporaries (16.03G) exceeds available HBM (15.48G). HLO module: x", 16.03),
        ("HLO temporaries (512.0M) exceeds available HBM (15.48G).", 0.5),
        ("HLO temporaries (1.5T) exceeds available HBM (15.48G).", 1536),
        ("Ran out of memory in memory space vmem.", 0),
    ],
)
def test_needed_memory_is_read_from_the_message(text, gibibytes):
    assert tpu_compiler.needed_bytes(text) == int(gibibytes * GIB)


# A compiler that hangs, dies, is not there.


@pytest.fixture
def python_that(tmp_path, monkeypatch):
    """`python_that("sleep 600")`: the compiler's process does that instead."""

    def become(command: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))

    return become


def test_a_compiler_that_hangs_is_given_up(python_that, step):
    python_that("exec sleep 600")
    result = TpuCompiler(seconds=0.2).compile(V3, step, 8)
    assert result.status is CompileStatus.TIMED_OUT
    assert result.text.startswith("It was not done after")


def test_a_compiler_that_dies_is_a_result_with_its_last_words(python_that, step):
    python_that("echo F0000 RET_CHECK failure >&2; kill -ABRT $$")
    result = TpuCompiler().compile(V3, step, 8)
    assert result.status is CompileStatus.CRASHED
    assert "signal 6" in result.text
    assert result.text.endswith("F0000 RET_CHECK failure")


def test_a_library_that_cannot_be_loaded_is_said(tmp_path, step):
    library = tmp_path / "libtpu.so"
    library.write_text("no library")
    result = TpuCompiler(library=library, cache=tmp_path / "kept").compile(V3, step, 8)
    assert result.status is CompileStatus.CRASHED
    assert "libtpu.so" in result.text
    assert not (tmp_path / "kept").exists()


def test_without_libtpu_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(tpu_compiler, "libtpu_path", lambda: None)
    with pytest.raises(MissingLibtpuError, match=r"pip install .*tpu-compile"):
        TpuCompiler()


def test_the_worker_does_without_tensorflow():
    code = "import sys; from estimator2strategy.engine.xla import worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not {"tensorflow", "numpy", "jax"} & set(done.stdout.split())


# What is kept.


def test_a_result_is_kept_by_what_was_compiled(tmp_path, step):
    compiler = TpuCompiler(cache=tmp_path / "kept")
    first = compiler.compile(V3, step, 8)
    again = compiler.compile(V3, step, 8)
    assert not first.kept
    assert again.kept
    assert (again.peak_bytes, again.flops) == (first.peak_bytes, first.flops)
    assert not compiler.compile(V2, step, 8).kept
    assert not compiler.compile(V3, lower(program_of(dense_net, batch=128)), 8).kept
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_what_another_libtpu_said_is_not_used(tmp_path, step):
    TpuCompiler(cache=tmp_path).compile(V3, step, 8)
    assert not TpuCompiler(cache=tmp_path, version="0.0.1").compile(V3, step, 8).kept


def test_a_kept_result_that_is_broken_is_compiled_anew(tmp_path, step):
    compiler = TpuCompiler(cache=tmp_path)
    compiler.compile(V3, step, 8)
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text()[:20])
    assert not compiler.compile(V3, step, 8).kept
    assert json.loads(kept.read_text())["code"] == "OK"


def test_limits_and_deaths_are_not_kept(python_that, tmp_path, step):
    python_that("kill -ABRT $$")
    compiler = TpuCompiler(cache=tmp_path / "kept")
    assert compiler.compile(V3, step, 8).status is CompileStatus.CRASHED
    assert not (tmp_path / "kept").exists()


def test_a_folder_that_cannot_be_written_to_costs_no_result(tmp_path, step):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert TpuCompiler(cache=blocked / "kept").compile(V3, step, 8).fits


def test_results_are_kept_in_the_users_cache_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert tpu_compiler.cache_folder() == Path("/somewhere/estimator2strategy/tpu")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert tpu_compiler.cache_folder() == Path("/home/me/.cache/estimator2strategy/tpu")


# The table.


def test_names_of_tpus_are_parsed():
    found, unknown = tpus.parse("v3-8, v5e-4,v3-8,v9-1,v5litepod-4")
    assert [tpu.name for tpu in found] == ["v3-8", "v5e-4"]
    assert unknown == ["v9-1"]


def test_the_table_is_plausible():
    for tpu in tpus.table().values():
        chips = 1
        for side in tpu.topology.partition(":")[2].split("x"):
            chips *= int(side)
        assert tpu.devices in (chips, 2 * chips)
        assert 0.9 < tpu.hbm_gib * tpu.devices / (tpu.chip_gib * chips) < 1.01
        assert tpu.hbm_bytes == pytest.approx(tpu.hbm_gib * GIB, abs=1)
