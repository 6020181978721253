"""`e2s guide`: the pages that messages name, wherever the package was installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator2strategy.tools.shell import guide

PACKAGE = Path(guide.__file__).parents[2]


def test_without_a_page_all_are_listed_with_their_titles(capsys):
    assert guide.main([]) == 0
    assert re.search(r"^  tpu +Your first day on a TPU VM$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("given", ["tpu", "tpu.md", "migration_guide/tpu.md#install"])
def test_a_page_is_printed_however_it_is_named(capsys, given):
    assert guide.main([given]) == 0
    assert capsys.readouterr().out.startswith("# Your first day on a TPU VM\n")


def test_an_unknown_page_is_answered_with_the_nearest(capsys):
    assert guide.main(["troubleshoting"]) == 2
    assert "Did you mean troubleshooting?" in capsys.readouterr().err
    assert guide.main(["E2S203"]) == 2
    assert "`e2s explain E2S203` explains a rule." in capsys.readouterr().err


def test_every_page_that_the_package_names_is_there():
    folder = guide.guide_folder()
    assert folder is not None
    named = re.compile(r"migration_guide/([\w/]+)\.md")
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = {name for text in texts for name in named.findall(text)}
    assert names <= guide.pages(folder).keys()
