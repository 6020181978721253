"""`e2s cache` says how much is kept, and deletes it."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.shell import cache


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("E2S_CACHE", str(tmp_path))
    for kind, size in (("jax", 2_500_000), ("of another program", 7)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "entry").write_bytes(b"0" * size)
    return tmp_path


def test_it_counts_and_lists(root, capsys):
    assert cache.main([]) == 0
    first, _, jax = capsys.readouterr().out.splitlines()
    assert first == str(root)
    assert jax.split()[:5] == ["jax", "1", "files", "2.5", "MB"]
    cache.main(["--list"])
    assert capsys.readouterr().out.count("MB  entry") == 1


def test_it_clears_what_is_kept_and_nothing_beside_it(root, capsys):
    assert cache.main(["--clear"]) == 0
    assert capsys.readouterr().out == "2.5 MB freed\n"
    assert [path.name for path in root.iterdir()] == ["of another program"]
    assert cache.main([]) == 0
    assert capsys.readouterr().out.count(" 0 files") == 1


def test_it_says_when_nothing_is_kept(monkeypatch, capsys):
    monkeypatch.setenv("E2S_CACHE", "off")
    assert cache.main([]) == 0
    assert capsys.readouterr().out == "Nothing is kept: E2S_CACHE=off\n"
