"""Some seconds of mutations; `python -m tests.hostile mutations` runs an hour of them."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import mutants, mutations

ROOT = Path(__file__).parents[2]


def result_of(*arguments):
    command = [sys.executable, "-m", "tests.hostile.mutations", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False, timeout=500)
    return json.loads(done.stdout)


def test_mutants_of_programs_end_no_tool_in_an_error():
    result = result_of("--seconds", "6", "--tool", "check", "--tool", "migrate")
    assert result["wrong"] == []
    assert all(result["counts"].values())


@pytest.mark.slow
def test_mutants_of_goldens_and_checkpoints_end_no_tool_in_an_error():
    result = result_of("--seconds", "25", "--tool", "verify", "--tool", "checkpoint")
    assert result["wrong"] == []
    assert all(result["counts"].values())


def test_a_mutant_of_a_document_leaves_the_values_for_others_as_they_were():
    before = copy.deepcopy(mutants._VALUES)
    for seed in range(1000):
        mutants.document(random.Random(seed), b'{"rows": [[{"x": 1}]]}')
    assert before == mutants._VALUES


def test_a_table_row_counts_its_mutants():
    counts = {"check": {"taken": 1200, "raw": 1}}
    section = mutations._section({"seconds": 3600, "counts": counts})
    assert "In 3,600 s:" in section
    assert "| `e2s check` | 1,201 | 1,200 | 0 | 1 | 0 | 0 |" in section
