"""The search for the largest batch, on compilers whose memory is a formula."""

from __future__ import annotations

import pytest

from estimator2strategy.engine.xla import fit, tpus
from estimator2strategy.engine.xla.tpu_compiler import Compiled, CompileStatus

TPU = tpus.table()["v3-8"]
MIB = 1 << 20


def compiler(memory, tried, ends_at=None):
    """Counts batches in `tried`; `memory(batch)` is in MiB."""

    def compile_batch(batch: int) -> Compiled:
        tried.append(batch)
        peak = int(memory(batch) * MIB)
        if ends_at is not None and batch >= ends_at:
            return Compiled(TPU, CompileStatus.TIMED_OUT)
        status = CompileStatus.TOO_LARGE if peak > TPU.hbm_bytes else CompileStatus.COMPILES
        return Compiled(TPU, status, peak, argument_bytes=int(memory(0) * MIB))

    return compile_batch


def search(memory, start, **how):
    tried: list[int] = []
    compile_batch = compiler(memory, tried, **how)
    return fit.largest(compile_batch, start, compile_batch(start)), tried


def largest_by_formula(memory):
    batch = 0
    while memory(batch + 1) * MIB <= TPU.hbm_bytes:
        batch += 1
    return batch


SHAPES = {
    "linear": lambda b: 1000 + 37.5 * b,
    "small model": lambda b: 1 + 3 * b,
    "padded to eight": lambda b: 2000 + 300 * -(-b // 8),
    "growing faster": lambda b: 500 + 10 * b + 0.1 * b * b,
    "flat, then steep": lambda b: max(4000, 90 * b),
    "compiler spares memory near the limit": lambda b: 800 + 60 * b - (2000 if b > 200 else 0),
    "few": lambda b: 3000 + 4000 * b,
}


@pytest.mark.parametrize("start", [1, 8, 100, 5000])
@pytest.mark.parametrize("memory", SHAPES.values(), ids=SHAPES)
def test_the_largest_batch_is_found_within_its_precision(memory, start):
    found, tried = search(memory, start)
    answer = largest_by_formula(memory)
    assert found.batch <= answer < found.too_large
    assert found.too_large - found.batch <= fit.grain_of(found.batch)
    assert found.best.status is CompileStatus.COMPILES
    assert found.best.peak_bytes == int(memory(found.batch) * MIB)
    assert [batch for batch, _ in found.tried] == tried
    assert len(set(tried)) == len(tried)


@pytest.mark.parametrize("start", [8, 100])
def test_a_line_takes_few_compilations(start):
    _, tried = search(SHAPES["linear"], start)
    assert len(tried) <= 5


def test_precision_is_that_of_padding_then_three_percent():
    assert [fit.grain_of(batch) for batch in (1, 7, 8, 500, 512, 4096)] == [1, 1, 8, 8, 16, 128]


def test_a_model_that_is_too_large_by_itself_fits_no_batch():
    found, _ = search(lambda b: 20_000 + b, start=64)
    assert (found.batch, found.too_large, found.best) == (0, 1, None)


def test_a_search_that_meets_no_limit_ends():
    found, tried = search(lambda b: 1 + b / 1e6, start=8)
    assert found.batch == 1 << 17
    assert found.too_large is None
    assert len(tried) < 10


def test_a_compilation_that_is_given_up_ends_the_search():
    found, _ = search(SHAPES["linear"], start=8, ends_at=50)
    assert found.failed.status is CompileStatus.TIMED_OUT
    assert found.batch == 8
