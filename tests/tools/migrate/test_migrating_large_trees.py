"""A tree that is too large to be held as trees of syntax is migrated in parts."""

from __future__ import annotations

import dataclasses
import gc

import pytest

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from estimator2strategy.tools.reader.source import Source

# Only together do the files say what `tf` is: two of them have no name that tells.
OLD = "import tensorflow as tf\n\nx = tf.to_float(1)\n"
EITHER = "import tensorflow as tf\n\ny = tf.reduce_sum(1)\n"


@pytest.fixture
def tree(tmp_path):
    for name, text in {"a": EITHER, "b": OLD, "c": EITHER, "d": "z = 1\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def plan_of(tree, **limits):
    chosen = [codemod for codemod in codemods().values() if codemod.stage == 2]
    return make_plan([str(tree)], chosen, tier=SafetyTier.REVIEW, **limits)


def test_the_parts_become_what_the_whole_becomes(tree):
    whole, parts = plan_of(tree), plan_of(tree, together=1)
    assert [planned.file.path.name for planned in whole.changed] == ["a.py", "b.py", "c.py"]
    assert parts == whole


def test_a_file_that_stays_as_it_is_is_counted_and_not_kept(tree):
    plan = plan_of(tree)
    assert plan.files == 4
    assert "d.py" not in {planned.file.path.name for planned in plan.changed}


def live_sources():
    return sum(type(thing) is Source for thing in gc.get_objects())


def test_a_part_is_freed_before_the_next_is_read(tmp_path):
    for number in range(6):
        (tmp_path / f"train_{number}.py").write_text(OLD)
    gc.collect()
    before, live = live_sources(), []

    def find(module):
        live.append(live_sources() - before)
        return ()

    watching = dataclasses.replace(codemods()["imports"], find=find)
    make_plan([str(tmp_path)], [watching], tier=SafetyTier.SAFE, together=1)
    assert len(live) == 6
    assert max(live) < 4
