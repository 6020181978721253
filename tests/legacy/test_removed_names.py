"""Legacy modules find the names that Python and NumPy have dropped; others do not."""

from __future__ import annotations

import collections
import sys
import types

import numpy as np
import pytest

from estimator2strategy.legacy import importing, removed_names


def executed(source: str) -> types.ModuleType:
    """A module with this source, run as legacy code."""
    module = types.ModuleType("program")
    importing.execute(compile(source, "program.py", "exec"), module)
    return module


def test_numpy_has_the_aliases_of_its_time():
    program = executed(
        "import numpy as np\n"
        "from numpy import float as number\n"
        "array = np.zeros([2], dtype=np.int)\n"
        "product = np.product([2, 3])\n"
        "pixels = np.fromstring(b'\\x01\\x02', dtype=np.uint8)\n"
        "pixels[0] = 7\n"
        "numbers = np.fromstring('1 2', sep=' ')\n"
    )
    assert program.number is float
    assert type(program.array) is np.ndarray
    assert program.array.dtype == np.int64
    assert program.product == 6
    assert program.pixels.tolist() == [7, 2]
    assert program.numbers.tolist() == [1.0, 2.0]
    assert program.np.random is np.random


def test_numpy_has_its_functions_types_and_warnings_of_the_time():
    program = executed(
        "import numpy as np\n"
        "import warnings\n"
        "warnings.simplefilter('ignore', np.VisibleDeprecationWarning)\n"
        "pixels = np.asfarray(['1', '2'])\n"
        "numbers = np.asfarray([1, 2], np.int32)\n"
        "small = np.asfarray([1, 2], np.float32)\n"
        "box = np.int0([1.7, -2.2])\n"
    )
    assert (program.pixels.dtype, program.pixels.tolist()) == (np.float64, [1.0, 2.0])
    assert (program.numbers.dtype, program.small.dtype) == (np.float64, np.float32)
    assert (program.box.dtype, program.box.tolist()) == (np.intp, [1, -2])


@pytest.mark.parametrize(
    "line",
    [
        "from sklearn import cross_validation, metrics",
        "import sklearn.cross_validation as cross_validation",
        "import sklearn.cross_validation\ncross_validation = sklearn.cross_validation",
        "from sklearn import grid_search as cross_validation",
    ],
)
def test_modules_of_sklearn_that_moved_have_their_old_names(line):
    selection = pytest.importorskip("sklearn.model_selection")
    assert executed(line).cross_validation is selection


@pytest.mark.parametrize(
    ("interpolation", "expected"),
    [("linear", 1.9), ("lower", 1.0), ("higher", 2.0), ("midpoint", 1.5), ("nearest", 2.0)],
)
def test_quantiles_take_interpolation(interpolation, expected):
    """The expected values are those of NumPy 1.18."""
    program = executed(
        "import numpy as np\n"
        "row = [1.0, 2.0, 4.0, 8.0]\n"
        f"how = {interpolation!r}\n"
        "got = [\n"
        "    np.percentile(row, 30, interpolation=how),\n"
        "    np.quantile(row, 0.3, None, None, False, how),\n"
        "    np.nanpercentile(row + [np.nan], 30, interpolation=how),\n"
        "    np.nanquantile(row + [np.nan], 0.3, interpolation=how),\n"
        "    np.quantile(row, 0.3, method=how),\n"
        "]\n"
    )
    assert program.got == pytest.approx([expected] * 5)


def test_rows_of_different_lengths_are_an_array_of_objects():
    program = executed(
        "import numpy as np\n"
        "rows = np.array([[1, 2], [3]])\n"
        "pairs = np.asarray(list(zip([[1, 2], [3, 4]], [[5], [6]])))\n"
        "numbers = np.array([[1, 2], [3, 4]], np.float32)\n"
    )
    assert program.rows.tolist() == [[1, 2], [3]]
    assert program.pairs.dtype == object
    assert program.pairs.shape == (2, 2)
    assert program.numbers.dtype == np.float32


def test_arguments_of_numpy_mean_what_they_meant():
    program = executed(
        "import numpy as np\n"
        "column = np.reshape([1, 2], newshape=[2, 1])\n"
        "row = np.reshape(column, -1)\n"
        "copied = np.array([1.5, 2.5], copy=False)\n"
        "same = np.array(copied, copy=False)\n"
        "numbers = np.cast[np.int32](copied)\n"
        "lowest = np.NINF\n"
    )
    assert program.column.tolist() == [[1], [2]]
    assert program.row.tolist() == [1, 2]
    assert program.copied.tolist() == [1.5, 2.5]
    assert program.same is program.copied
    assert program.numbers.dtype == np.int32
    assert program.lowest == -np.inf


def test_numpy_says_what_is_wrong_with_rows_of_a_given_type():
    with pytest.raises(ValueError, match="inhomogeneous"):
        executed("import numpy as np\nnp.array([[1, 2], [3]], dtype=np.float32)\n")


def test_modules_of_python_have_what_it_dropped():
    program = executed(
        "import collections, fractions, inspect, time\n"
        "from collections import Mapping, OrderedDict\n"
        "import collections.abc\n"
        "spec = inspect.getargspec(lambda a, b=2, *c, **d: 0)\n"
        "seconds = time.clock()\n"
        "divisor = fractions.gcd(6, 4)\n"
    )
    assert program.Mapping is collections.abc.Mapping
    assert program.OrderedDict is collections.OrderedDict
    assert tuple(program.spec) == (["a", "b"], "c", "d", (2,))
    assert program.spec.keywords == "d"
    assert program.seconds > 0
    assert program.divisor == 2


@pytest.mark.parametrize("name", ["numpy", "collections", "inspect", "time"])
def test_the_genuine_modules_stay_as_they_are(name):
    genuine = sys.modules[name]
    before = dict(vars(genuine))
    copy = removed_names.module(name)
    assert copy is not genuine
    assert vars(genuine) == before


def test_getargspec_refuses_what_it_refused():
    getargspec = removed_names.module("inspect").getargspec
    with pytest.raises(ValueError, match="keyword-only"):
        getargspec(lambda *, a: a)


@pytest.mark.parametrize("name", ["distutils.version", "distutils.util"])
def test_distutils_is_there_wherever_setuptools_is(name):
    program = executed(f"import {name} as module")
    assert program.module.__name__ == name


@pytest.mark.parametrize(
    ("name", "module", "advice"),
    [
        ("distutils.version", "distutils", "pip install setuptools"),
        ("imp", "imp", "Python 3.12 dropped it"),
    ],
)
def test_a_module_that_python_dropped_says_what_brings_it_back(name, module, advice, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as where there is none
    with pytest.raises(ModuleNotFoundError, match=advice) as raised:
        executed(f"import {name}")
    assert raised.value.name == module
    with pytest.raises(ModuleNotFoundError) as raised:
        exec(f"import {name}", {})
    assert advice not in str(raised.value)


def test_modules_that_packages_have_moved_are_found():
    program = executed(
        "from scipy.sparse.linalg.eigen.arpack import eigsh\n"
        "from sklearn.cross_validation import train_test_split\n"
        "from sklearn.externals import joblib\n"
        "from sklearn.externals.joblib import dump\n"
    )
    assert program.joblib.dump is program.dump
    assert program.eigsh.__module__.startswith("scipy.sparse.linalg")
    assert program.train_test_split.__module__.startswith("sklearn.model_selection")


def test_a_module_that_is_nowhere_is_still_missing():
    with pytest.raises(ModuleNotFoundError, match=r"scipy\.sparse\.linalg\.eigen\.other"):
        executed("from scipy.sparse.linalg.eigen.other import eigsh")
