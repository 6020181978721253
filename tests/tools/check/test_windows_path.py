"""Paths that only Windows reads as folders."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings


@pytest.mark.parametrize(
    ("path", "count"),
    [
        (r"data\\train.csv", 1),
        (r"..\\data\\", 1),
        (r"C:\\Users\\me\\data.csv", 1),
        ("data/train.csv", 0),
        (r"data/a\n", 0),
        (r"\\d+", 0),
    ],
)
def test_a_path_with_backslashes_is_told(path, count):
    text = f"import pandas as pd\n\ntable = pd.read_csv('{path}')\n"
    rules = [f.rule for f in check_text(text, Settings()).findings]
    assert rules.count("E2S025") == count
    text = f"import tensorflow as tf\n\nx = tf.estimator.Estimator(f, model_dir='{path}')\n"
    rules = [f.rule for f in check_text(text, Settings()).findings]
    assert rules.count("E2S025") == count


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (r"path = os.path.dirname(file) + '\\data\\'", 1),
        (r"path = os.path.join(folder, 'data\\train.csv')", 1),
        (r"path = os.getcwd() + '/data'", 0),
        (r"path = text + '\\data'", 0),
        ("if os.name == 'nt':\n    " + r"path = os.getcwd() + '\\data'", 0),
    ],
)
def test_a_path_below_a_folder_is_told(line, count):
    rules = [f.rule for f in check_text(f"import os\n\n{line}\n", Settings()).findings]
    assert rules.count("E2S025") == count
