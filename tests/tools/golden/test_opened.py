"""A golden of a stranger is opened without running, unpickling or reading anything else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import shutil
import sys
import zipfile

import numpy as np
import pytest

from estimator2strategy.tools.golden import opened, verify
from estimator2strategy.tools.golden.recorder.batches import rebuilt
from estimator2strategy.tools.golden.recorder.options import RecordError
from estimator2strategy.tools.untrusted import archives
from tests.tools.golden.parity_replay import GOLDENS


@pytest.fixture
def golden(tmp_path):
    return shutil.copytree(GOLDENS / "parity_tf115", tmp_path / "golden")


def signed(golden, **changes):
    """Writes golden.json with other values, and the checksums of the files that are there."""
    about = json.loads((golden / "golden.json").read_text())
    about.update(changes)
    for name in about["sha256"] if "sha256" not in changes else ():
        about["sha256"][name] = hashlib.sha256((golden / name).read_bytes()).hexdigest()
    (golden / "golden.json").write_text(json.dumps(about))
    return about


def refused(golden, match):
    with pytest.raises(RecordError, match=match) as error:
        opened.read(str(golden))
    assert "\n" not in str(error.value)


def test_a_golden_as_it_was_written_is_read(golden):
    assert opened.read(str(golden)).about["train"]["steps"] == 20


def test_no_file_is_read_by_a_name_that_leaves_the_folder(golden):
    for name in ("../x", "/etc/x", "a/b", "..", ""):
        signed(golden, checkpoints={"first": name, "last": "model.ckpt-20"})
        refused(golden, "checkpoints.first is .*the name of a file in its folder")


def test_links_are_not_followed(golden):
    (golden / "batches.npz").rename(golden.parent / "batches.npz")
    (golden / "batches.npz").symlink_to("../batches.npz")
    refused(golden, "batches.npz is a link")


def test_a_fifo_is_not_waited_for(golden):
    (golden / "results.npz").unlink()
    os.mkfifo(golden / "results.npz")
    refused(golden, "results.npz is a FIFO")


def test_objects_are_not_unpickled(golden, tmp_path):
    class Payload:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    assert b"pwned" in pickle.dumps(Payload())
    arrays = dict(np.load(golden / "results.npz"))
    arrays["train/losses"] = np.array([Payload()], object)
    np.savez(golden / "results.npz", **arrays)
    signed(golden)
    refused(golden, r"train/losses.npy of results.npz has pickled objects")
    assert not (tmp_path / "pwned").exists()


def test_a_bomb_is_not_unpacked(golden, monkeypatch):
    monkeypatch.setattr(archives, "_HARMLESS", 1 << 20)
    np.savez_compressed(golden / "batches.npz", x=np.zeros(1 << 22))
    signed(golden)
    refused(golden, "it would unpack to")


def test_a_shape_that_its_bytes_do_not_fill_is_refused(golden):
    data = io.BytesIO()
    np.save(data, np.zeros(20))
    with zipfile.ZipFile(golden / "results.npz", "w") as archive:
        archive.writestr("train/losses.npy", data.getvalue().replace(b"(20,), ", b"(9000,)"))
    signed(golden)
    refused(golden, "train/losses.npy of results.npz says that it has 72,000 bytes")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train": 3}, "train is 3, and should be an object"),
        ({"batches": {}}, r"batches.train is missing"),
        ({"sha256": {"x": 1}}, "sha256.x is 1, and should be a text"),
        ({"notes": [{}]}, r"notes\[0\] is {}, and should be a text"),
        ({"source": {"program": "x"}}, "source.program is 'x', and should be a list"),
        ({"version": 2}, "version 2; this reads"),
    ],
)
def test_a_value_of_another_type_is_named(golden, change, said):
    signed(golden, **change)
    refused(golden, said)


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b"NaN"])
def test_what_is_no_json_is_a_sentence(golden, data):
    (golden / "golden.json").write_bytes(data)
    refused(golden, "golden")


@pytest.mark.parametrize("name", ["batches.npz", "checkpoints/model.ckpt-0.index"])
def test_a_truncated_file_is_a_sentence(golden, name):
    path = golden / name
    path.write_bytes(path.read_bytes()[:300])
    signed(golden)
    refused(golden, "cannot be read")


def test_batches_of_another_shape_are_named(golden):
    arrays = dict(np.load(golden / "batches.npz"))
    arrays["train/0/0"] = np.zeros([16, 7], np.float32)
    np.savez(golden / "batches.npz", **arrays)
    signed(golden)
    refused(golden, r"train/0/0 has the shape \[16, 7\], and should have \[16, 6\]|\[None, 6\]")


def test_a_structure_calls_no_function():
    tree = {"kind": "leaf", "index": 0}
    called = {"kind": "namedtuple", "type": "sys:exit", "keys": ["a"], "parts": [tree]}
    assert list(rebuilt(called, [3])) == [3]
    assert rebuilt({**called, "type": "no:such"}, [3]).a == 3
    assert "sys" in sys.modules


def test_the_command_says_it_in_one_line(golden, capfd):
    signed(golden, train=[])
    assert verify.main([str(golden)]) == 2
    said = capfd.readouterr().err.splitlines()
    assert said[-1].startswith("e2s verify: ")
    assert "train is [], and should be an object" in said[-1]
    assert not any("Traceback" in line for line in said)
