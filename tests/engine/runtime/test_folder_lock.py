"""Locks of folders: which ones keep everybody out, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator2strategy.engine.runtime import folder_lock
from estimator2strategy.engine.runtime.folder_lock import FolderLock, excludes_all, is_held

MOUNTS = """/dev/vda / ext4 rw,relatime 0 0
server:/a /nfs nfs4 rw,vers=4.2,local_lock=none 0 0
server:/b /nfs/of\\040one nfs rw,vers=3,local_lock=all 0 0
bucket /bucket fuse.gcsfuse rw 0 0
share /share 9p rw 0 0
fast /fast lustre rw,flock 0 0
near /near lustre rw,localflock 0 0
tmpfs /fast/tmp tmpfs rw 0 0
"""
PLACES = {
    "/home/me": True,
    "/nfs/model": True,
    "/nfs/of one/model": False,
    "/nfsother": True,
    "/bucket/model": False,
    "/share": False,
    "/fast/model": True,
    "/near/model": False,
    "/fast/tmp/model": True,
}


@pytest.mark.parametrize("place", PLACES)
def test_locks_are_trusted_only_where_all_machines_take_part(place, monkeypatch):
    monkeypatch.setattr(folder_lock.Path, "read_text", lambda *args, **kwargs: MOUNTS)
    assert excludes_all(place) is PLACES[place]


def test_no_lock_is_trusted_where_file_systems_cannot_be_told(monkeypatch):
    def missing(*args, **kwargs):
        raise FileNotFoundError("/proc/self/mounts")

    monkeypatch.setattr(folder_lock.Path, "read_text", missing)
    assert not excludes_all("/home/me")


def test_a_lock_is_held_until_it_is_released(tmp_path):
    lock = FolderLock.of_folder(str(tmp_path))
    assert is_held(str(tmp_path))
    with pytest.raises(BlockingIOError):
        FolderLock.of_folder(str(tmp_path))
    lock.release()
    assert not is_held(str(tmp_path))
    FolderLock.of_folder(str(tmp_path)).release()


def test_a_lock_is_of_the_folder_and_not_of_its_name(tmp_path):
    folder = tmp_path / "temp-1"
    folder.mkdir()
    lock = FolderLock.of_folder(str(folder))
    assert lock.is_of(folder)
    folder.rename(tmp_path / "1")
    assert not lock.is_of(folder)
    Path(folder).mkdir()
    assert not lock.is_of(folder)
    lock.release()
