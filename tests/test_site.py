"""The site of the guide, as `make docs` builds it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    return folder


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"?([^\"> ]+)", page.read_text())
        assert [address for address in loaded if "//" in address] == []
    assert (site / "_iframe-worker.js").is_file()


def test_the_search_has_each_message_as_a_title_of_its_own(site):
    docs = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    titles = {doc["title"]: doc for doc in docs if "#message-" in doc["location"]}
    found = titles["These layers do not fit:"]
    assert found["boost"] == 4
    assert "transfer_weights" in found["text"]
    identity = found["location"].partition("#")[2]
    assert f'<tr id="{identity}">' in (site / "troubleshooting.html").read_text()
    assert len(titles) > 60
    # What a page of a folder reads is the same.
    assert (site / "search" / "search_index.js").read_text().count("#message-") == len(titles)


def test_rules_are_titled_by_what_they_find_at_the_address_that_reports_name(site):
    page = (site / "rules" / "e2s2.html").read_text()
    (heading,) = re.findall(r'<h2 id="e2s201-fixed-batch-size">(.*?)<a', page)
    assert heading.startswith("E2S201: ")
