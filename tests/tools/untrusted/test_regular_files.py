"""Regular files alone are opened, up to a size."""

from __future__ import annotations

import os

import pytest

from estimator2strategy.tools.untrusted.regular_files import NotRegularError, read_bytes


def test_a_file_is_read_through_a_link(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    os.symlink("a", tmp_path / "b")
    assert read_bytes(tmp_path / "b") == b"x"


def test_a_fifo_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link")
    with pytest.raises(NotRegularError, match="a FIFO") as error:
        read_bytes(tmp_path / "pipe")
    assert error.value.strerror == "a FIFO"
    with pytest.raises(NotRegularError, match="a link to a FIFO"):
        read_bytes(tmp_path / "link")


def test_a_fifo_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"x")
    before = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda path: before)
    with pytest.raises(NotRegularError, match="a FIFO"):
        read_bytes(tmp_path / "pipe")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(NotRegularError, match="larger than 5 MB"):
        read_bytes(tmp_path / "large")


def test_a_device_is_not_opened():
    with pytest.raises(NotRegularError, match="a device"):
        read_bytes("/dev/zero")
