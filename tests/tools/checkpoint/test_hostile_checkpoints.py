"""Checkpoints of strangers are read without leaving their folder, or refused in a sentence."""

from __future__ import annotations

import json
import os
import shutil
import zipfile

import h5py
import numpy as np
import pytest

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import keras_file, keras_probe
from estimator2strategy.tools.checkpoint.checkpoint_command import main
from estimator2strategy.tools.checkpoint.opening import open_store
from tests.tools.golden.parity_replay import GOLDENS


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(GOLDENS / "parity_tf115" / "checkpoints", tmp_path / "model_dir")


def refused(path, *said):
    with pytest.raises(CheckpointError) as error:
        open_store(str(path))
    for part in said:
        assert part in str(error.value)


def test_a_list_that_leads_out_of_its_folder_is_refused(folder):
    outside = shutil.copytree(folder, folder.parent / "outside")
    for name in (f"{outside}/model.ckpt-20", "../outside/model.ckpt-20"):
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')
        refused(folder, "which is not in its folder", "there are model.ckpt-0, model.ckpt-20")


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"model_checkpoint_path: {", b"x" * 10_000])
def test_a_broken_list_names_the_checkpoints_that_are_there(folder, data):
    (folder / "checkpoint").write_bytes(data)
    refused(folder, "there are model.ckpt-0, model.ckpt-20")


def test_a_fifo_is_not_waited_for(folder):
    os.mkfifo(folder / "checkpoint")
    refused(folder, "it is a FIFO")
    (folder / "model.ckpt-20.index").unlink()
    os.mkfifo(folder / "model.ckpt-20.index")
    refused(folder / "model.ckpt-20", "it is a FIFO")


def test_a_damaged_tensor_is_a_sentence(folder, capsys):
    path = folder / "model.ckpt-20.data-00000-of-00001"
    path.write_bytes(bytes(path.stat().st_size))
    prefix = str(folder / "model.ckpt-20")
    assert main(["diff", prefix, str(folder / "model.ckpt-0")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("e2s checkpoint: ")
    assert "cannot be read" in said


def test_a_meta_file_that_is_random_is_left_aside(folder):
    expected = {entry.key for entry in open_store(str(folder / "model.ckpt-20")).entries}
    (folder / "model.ckpt-20.meta").write_bytes(b"\xff" * 100)
    assert {entry.key for entry in open_store(str(folder / "model.ckpt-20")).entries} == expected


def weights(path):
    with h5py.File(path, "w") as file:
        file["layers/dense/vars/0"] = np.ones([2, 3])
    return path


def test_a_weights_file_whose_data_is_elsewhere_is_refused(tmp_path):
    secret = weights(tmp_path / "secret.h5")
    (tmp_path / "raw").write_bytes(bytes(100))
    for name, make in {
        "external link": lambda file: file.__setitem__("x", h5py.ExternalLink(secret, "layers")),
        "soft link": lambda file: file.__setitem__("x", h5py.SoftLink("/layers")),
        "raw": lambda file: file.create_dataset(
            "x", (4,), "f4", external=[(str(tmp_path / "raw"), 0, 16)]
        ),
    }.items():
        path = weights(tmp_path / f"{name}.weights.h5")
        with h5py.File(path, "a") as file:
            make(file)
        refused(path, "x", "file")


def test_groups_in_one_another_come_to_an_end(tmp_path):
    path = weights(tmp_path / "circle.weights.h5")
    with h5py.File(path, "a") as file:
        file["layers/again"] = file["layers"]
    refused(path, "deep")


def test_a_file_on_which_hdf5_never_ends_is_given_a_time(tmp_path):
    path = weights(tmp_path / "x.weights.h5")
    assert keras_probe.problem(str(path)) is None
    assert "does not come to its end" in keras_probe.problem(str(path), seconds=0)


def test_weights_that_hdf5_only_copies_are_not_read_twice(tmp_path, monkeypatch):
    read = []
    take = h5py.Dataset.__getitem__

    def noted(data, *place):
        read.append(data.name)
        return take(data, *place)

    with h5py.File(weights(tmp_path / "x.weights.h5"), "a") as file:
        file.create_dataset("packed", data=np.ones(100), compression="gzip")
        file.create_dataset("names", data=["a", "b"], dtype=h5py.string_dtype())
        monkeypatch.setattr(h5py.Dataset, "__getitem__", noted)
        keras_probe._read(file)
    assert sorted(read) == ["/names", "/packed"]


def test_weights_that_lie_behind_the_end_of_the_file_are_refused(tmp_path):
    path = weights(tmp_path / "x.weights.h5")
    with h5py.File(path, "r") as file:
        found = file["layers/dense/vars/0"].id
        begin, size = (
            number.to_bytes(8, "little")
            for number in (found.get_offset(), found.get_storage_size())
        )
    data = path.read_bytes()
    assert data.count(begin + size) == 1  # in the description of the dataset
    path.write_bytes(data.replace(begin + size, (10**6).to_bytes(8, "little") + size))
    refused(path, "cannot be read")


def config(path, *layers):
    with zipfile.ZipFile(path, "w") as archive:
        found = [{"module": module, "class_name": name} for module, name in layers]
        archive.writestr("config.json", json.dumps({"config": {"layers": found}}))
    return str(path)


def test_a_keras_archive_that_runs_code_or_reads_files_is_not_loaded(tmp_path):
    path = tmp_path / "x.keras"
    assert keras_file.is_plain(config(path, ("keras.layers", "Dense")))
    assert not keras_file.is_plain(config(path, ("keras.layers", "Lambda")))
    assert not keras_file.is_plain(config(path, ("keras.layers", "StringLookup")))
    assert not keras_file.is_plain(config(path, ("os", "system")))
    path.write_bytes(b"PK")
    assert not keras_file.is_plain(str(path))


@pytest.mark.parametrize(
    "row",
    [
        {"source": ["x"], "target": "x"},
        {"source": "x", "target": None},
        {"source": "x", "target": "x", "scale": "nan"},
        {"source": "x", "target": "x", "scale": "0"},
        "x",
    ],
)
def test_a_mapping_with_a_wrong_row_is_a_sentence(folder, row, capsys):
    path = folder / "map.json"
    path.write_text(json.dumps({"rows": [row]}))
    prefixes = [str(folder / f"model.ckpt-{step}") for step in (0, 20)]
    assert main(["diff", *prefixes, "--map", str(path)]) == 2
    assert "is no mapping" in capsys.readouterr().err


def test_slots_of_an_optimizer_that_is_not_named_ask_for_the_model(tmp_path, capsys):
    path = weights(tmp_path / "x.weights.h5")
    with h5py.File(path, "a") as file:
        file["optimizer/vars/2"] = np.ones([2, 3])
    assert main(["convert", str(path), str(tmp_path / "out" / "x-1"), "--to", "tf1"]) == 2
    assert "give --model" in capsys.readouterr().err
