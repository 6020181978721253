"""Some kills of each kind of training; `python -m tests.hostile kills` does a thousand."""

from __future__ import annotations

import re

import pytest

from tests.hostile import kills
from tests.hostile.__main__ import PAGE


@pytest.mark.slow
def test_trainings_that_are_killed_lose_nothing_and_leave_nothing():
    assert_nothing_is_lost(kills.counts(12, of_one=4, at_once=2))


@pytest.mark.slow
def test_under_jax_they_lose_nothing_and_leave_nothing():
    pytest.importorskip("jax", minversion="0.10")
    assert_nothing_is_lost(kills.counts_under_jax(12, of_one=6, at_once=2))


def assert_nothing_is_lost(found):
    assert [line for count in found.values() for line in count.wrong] == []
    assert sum(count.kills for count in found.values()) >= 8
    assert all(count.trainings for count in found.values())


def test_a_file_that_nothing_clears_is_counted(tmp_path):
    training = kills.Training("device", tmp_path / "model")
    training.model_dir.mkdir()
    (training.model_dir / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-4"\n')
    for name in ("model.ckpt-4.index", "events.out.tfevents.1", "model.ckpt-8.meta"):
        (training.model_dir / name).write_bytes(b"12345")
    left = training.leftovers()
    assert [(path.rpartition("/")[2], size) for path, _, size in left] == [("model.ckpt-8.meta", 5)]
    count = kills.Count()
    kills._compare_litter(count, "device", left)
    assert (count.litter, count.cleared) == (5, 0)


def test_links_to_a_checkpoint_that_is_written_again_are_told_by_their_folder(tmp_path):
    training = kills.Training("device", tmp_path / "model")
    before = training.model_dir / ".saving.model.ckpt-4.before"
    before.mkdir(parents=True)
    (training.model_dir / "checkpoint").touch()
    (before / "model.ckpt-4.index").write_bytes(b"12345")
    assert [path for path, *_ in training.leftovers()] == [str(before)]


def test_a_start_that_goes_back_too_far_is_counted():
    count = kills.Count()
    kills._compare_start(count, "device", first=4, done=20, latest=12)
    assert count.lost_checkpoints == 1
    assert len(count.wrong) == 2


@pytest.mark.parametrize(
    ("title", "kinds"), [("Kills", kills.TITLES), ("Kills under JAX", kills.TITLES_UNDER_JAX)]
)
def test_the_page_has_a_row_for_each_kind_and_nothing_that_was_lost(title, kinds):
    _, _, rest = PAGE.read_text().partition(f"\n## {title}\n")
    section = rest.partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| \d+ \|.*\| (\d+) \| (\d+) \| (\d+) \| \d+ \|$", section, re.M)
    assert [name for name, *_ in rows] == [*kinds.values(), "**all**"]
    assert {number for _, *numbers in rows for number in numbers} == {"0"}
