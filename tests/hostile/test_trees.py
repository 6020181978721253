"""Each hostile tree ends as the table says; `python -m tests.hostile` counts them."""

from __future__ import annotations

import pytest

from tests.hostile.__main__ import PAGE
from tests.hostile.tree_rows import AREAS
from tests.hostile.trees import Tree, _injected, result_of

SLOW = {"folders deeper than a path may be", "calls in calls", "a file of 2 MB on one line"}
CASES = [
    pytest.param(
        tree, id=f"{area}: {tree.name}", marks=[pytest.mark.slow] if tree.name in SLOW else []
    )
    for area, trees in AREAS.items()
    for tree in trees
]


@pytest.mark.parametrize("tree", CASES)
def test_a_hostile_tree_does_no_harm(tree):
    assert result_of(tree).wrong == []


def test_names_of_trees_tell_them_apart():
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


def test_a_tree_of_which_nothing_is_said_is_wrong():
    silent = Tree("a file", lambda folder: None, ("odd.py",))
    assert len(result_of(silent).wrong) == 2


def test_a_command_that_is_printed_is_seen():
    assert _injected("x\n  ::error file=x::y\n", "text")
    assert _injected("::error file=x::y\n", "github")
    assert not _injected("::error file=x,line=1,col=1,title=E2S101::y\n", "github")


def test_the_page_counts_the_trees_of_the_table():
    section = PAGE.read_text().partition("## Hostile trees")[2].partition("\n## ")[0]
    assert f"| **all** | {len(CASES)} | {len(CASES)} | 0 |" in section
