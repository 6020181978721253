"""The table of what has the place of names that other libraries have dropped."""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings

import pytest

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

ROWS = rows.by_hand("today")


def test_each_row_is_of_a_name_that_is_gone():
    assert [n for n in ROWS if not (row := rows.find(n)) or not row.gone or row.name != n] == []


LIBRARIES = {
    *("PIL", "gensim", "h5py", "joblib", "keras", "librosa", "matplotlib", "networkx", "numpy"),
    *("pandas", "scipy", "seaborn", "skimage", "sklearn", "statsmodels", "werkzeug"),
}
INSTALLED = sorted(name for name in LIBRARIES if importlib.util.find_spec(name))
# Old name -> the names that its advice gives.
GIVEN = {
    old: set(re.findall(r"(?<![\w.'\"])[A-Za-z]\w*(?:\.\w+)+", today))
    for old, today in ROWS.items()
}


def given(libraries):
    """(old name, name that the advice gives) of these libraries."""
    return [(o, n) for o, names in GIVEN.items() for n in names if n.split(".")[0] in libraries]


def test_names_that_the_advice_gives_are_not_gone_themselves():
    assert [
        (old, name) for old, name in given(LIBRARIES) if (row := rows.find(name)) and row.gone
    ] == []


@pytest.mark.parametrize("library", INSTALLED)
def test_names_that_the_advice_gives_are_there(library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [(old, name) for old, name in given({library}) if not exists(name)] == []


def exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            "import matplotlib.pyplot as plt\n\nplt.hold(True)\n",
            "Nothing: plots of the same axes are kept; cla() clears them.",
        ),
        (
            "from gensim.summarization import summarize\n",
            "gensim 3.8 had it: copy what the program needs of its source.",
        ),
        ("import scipy\n\nscipy.array([1])\n", "Today: numpy.array."),
        ("import numpy as np\n\nx = np.math.cos(1)\n", "Today: import math."),
        (
            "from numpy.lib.function_base import _quantile\n",
            "NumPy 1.18 had it: copy what the program needs of its source.",
        ),
        (
            "from skimage.measure import compare_ssim\n",
            "Today: skimage.metrics.structural_similarity, whose multichannel=True is "
            "channel_axis=-1.",
        ),
    ],
)
def test_the_advice_says_what_to_write(text, advice):
    found = check_text(text, Settings()).findings
    assert [f.fix for f in found if f.rule == "E2S109"] == [advice]


def test_each_library_has_the_release_that_is_told():
    assert rows.by_hand("old").keys() == rows.libraries()
