"""The Beam pipeline of the flowers example; run where apache-beam is installed (extra `beam`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("apache_beam")
FLOWERS = Path(__file__).resolve().parents[2] / "examples" / "flowers"


@pytest.mark.slow
def test_jpegs_become_tfrecords(tmp_path):
    import tensorflow as tf

    jpegs, records = tmp_path / "jpegs", tmp_path / "records"
    for program, flags in (
        ("make_jpegs.py", [f"--out={jpegs}", "--patches=10"]),
        ("to_tfrecords.py", [f"--jpegs={jpegs}", f"--out={records}", "--runner=DirectRunner"]),
    ):
        (jpegs / "train" / "china").mkdir(parents=True, exist_ok=True)
        (jpegs / "train" / "china" / "broken.jpg").write_bytes(b"no jpeg")
        subprocess.run([sys.executable, str(FLOWERS / program), *flags], check=True)
    counts = {}
    for split in ("train", "test"):
        files = sorted(map(str, records.glob(f"{split}-*.tfrecord")))
        assert len(files) == 4
        examples = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(files)]
        labels = [e.features.feature["image/class/label"].int64_list.value[0] for e in examples]
        counts[split] = (labels.count(0), labels.count(1))
    assert counts == {"train": (8, 8), "test": (2, 2)}
