"""Arguments that libraries took once, by every way of importing what takes them."""

from __future__ import annotations

import importlib
import inspect

import pytest

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.rules.libraries import dropped_arguments
from estimator2strategy.tools.check.settings import Settings, Target


def refused(text, target=Target.FACADE):
    report = check_text(text, Settings(target=target))
    return [f.message for f in report.findings if f.rule in ("E2S114", "E2S103")]


@pytest.mark.parametrize(
    "text",
    [
        "from keras.optimizers import Adam\n\nx = Adam(lr=0.1)\n",
        "from keras import optimizers\n\nx = optimizers.Adam(lr=0.1)\n",
        "import keras\n\nx = keras.optimizers.Adam(lr=0.1)\n",
        "import keras as k\n\nx = k.optimizers.SGD(lr=0.1, momentum=0.9)\n",
    ],
)
@pytest.mark.parametrize("target", Target)
def test_keras_alone_is_keras_3_for_both_targets(text, target):
    assert len(refused(text, target)) == 1


@pytest.mark.parametrize(
    "start",
    ["import tensorflow as tf\n\nk = tf.keras", "from tensorflow import keras as k"],
)
def test_tf_keras_is_keras_3_on_tensorflow_2_only(start):
    calls = "x = k.optimizers.Adam(lr=0.1)\ny = k.layers.Dense(1, batch_input_shape=(1, 2))\n"
    text = f"{start}\n\n{calls}"
    assert refused(text) == []
    assert len(refused(text, Target.TF2)) == 2


@pytest.mark.parametrize(
    "call",
    [
        "keras.layers.Dense(1, input_dim=3)",
        "keras.optimizers.Adam(0.1, decay=0.5)",
        "keras.layers.Embedding(3, 4, input_length=2)",
        "keras.optimizers.Adam(**{'lr': 0.1})",
    ],
)
def test_arguments_that_keras_3_still_takes_are_no_finding(call):
    assert refused(f"import keras\n\nx = {call}\n") == []


def test_a_call_that_may_fail_is_no_finding():
    call = "    x = keras.optimizers.Adam(lr=1)\n"
    assert refused(f"import keras\n\ntry:\n{call}except TypeError:\n    x = None\n") == []


@pytest.mark.parametrize(
    "call",
    [
        "np.reshape([1], newshape=[1, 1])",
        "np.percentile([1.0, 2.0], 30, interpolation='lower')",
        "np.nanquantile([1.0, 2.0], 0.3, interpolation='lower')",
    ],
)
def test_arguments_that_legacy_modules_may_give_numpy_are_errors_on_tensorflow_2_only(call):
    text = f"import numpy as np\n\nx = {call}\n"
    assert refused(text) == []
    assert len(refused(text, Target.TF2)) == 1


def test_arguments_at_positions_that_are_by_name_only_today():
    assert refused("import pandas as pd\n\nx = pd.concat([a, b], axis=1)\n") == []
    assert refused("import pandas as pd\n\nx = pd.concat([a, b], 1)\n") == [
        f"{rows.read_off('pandas')}: pandas.concat takes one argument by position"
    ]


def test_a_value_that_is_refused_today_is_found():
    text = "from sklearn.linear_model import SGDClassifier\n\nx = SGDClassifier(loss='log')\n"
    assert len(refused(text)) == 1
    assert refused(text.replace("'log'", "'hinge'")) == []


@pytest.mark.parametrize("library", ["numpy", "keras"])
def test_the_table_holds_for_the_release_that_is_installed(library):
    installed = ".".join(importlib.import_module(library).__version__.split(".")[:2])
    if rows.read_off(library) != f"{library} {installed}":
        pytest.skip(f"the table is of {rows.read_off(library)}, and {installed} is installed")
    for path, names in rows.facts(library)["gone"].items():
        if path.partition(".")[0] == library and not path.endswith("()"):
            module = importlib.import_module(path)
            assert [name for name in names.split() if hasattr(module, name)] == []
    for name, arguments in rows.facts(library)["refused"].items():
        if name.partition(".")[0] == library and "()" not in name:
            module, _, last = name.rpartition(".")
            value = getattr(importlib.import_module(module), last)
            value = value.__init__ if inspect.isclass(value) else value
            assert not set(arguments.split()) & set(inspect.signature(value).parameters)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("from sklearn.cluster import KMeans\n\nx = KMeans(n_jobs=2)\n", "Leave it out"),
        ("import numpy as np\n\nx = np.array2string(y, style=str)\n", "Leave it out"),
        ("import matplotlib.pyplot as p\n\np.grid(b=True)\n", "Today: visible."),
        (
            "from sklearn.linear_model import LogisticRegression as R\n\nx = R(multi_class='')\n",
            "OneVsRestClassifier",
        ),
        ("import keras\n\nx = keras.layers.Dense(1, weights=[])\n", "Today: set_weights"),
        ("import pandas as pd\n\nx = pd.read_excel('a', sheetname='b')\n", "Today: sheet_name."),
        ("import pandas as pd\n\npd.Series([1]).to_csv(path='a')\n", "Today: path_or_buf."),
        ("import gensim\n\nx = gensim.models.Doc2Vec([], size=9)\n", "Today: vector_size."),
        ("from gensim.models.doc2vec import Doc2Vec as D\n\nx = D(iter=9)\n", "Today: epochs."),
        ("import keras\n\nx = keras.callbacks.TensorBoard(batch_size=1)\n", "or leave it out"),
    ],
)
def test_the_advice_is_about_the_argument(text, advice):
    (finding,) = [f for f in check_text(text).findings if f.rule == "E2S114"]
    assert advice in finding.fix


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("numpy.reshape", "shape"),
        ("numpy.percentile", "method"),
        ("numpy.histogram", "density"),
        ("pandas.read_csv", "on_bad_lines"),
        ("pandas.read_excel", "sheet_name"),
        ("keras.callbacks.ModelCheckpoint", "save_freq"),
        ("matplotlib.widgets.EllipseSelector", "props"),
        ("matplotlib.widgets.PolygonSelector", "handle_props"),
        ("matplotlib.widgets.PolygonSelector", "grab_range"),
        ("matplotlib.widgets.SpanSelector", "interactive"),
        ("flask.send_file", "download_name"),
        ("flask.send_file", "max_age"),
        ("flask.send_file", "path_or_file"),
    ],
)
def test_what_is_proposed_is_taken_today(name, today):
    home, _, last = name.rpartition(".")
    function = getattr(pytest.importorskip(home), last)
    assert today in inspect.signature(function).parameters


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            "import pandas\n\npandas.read_csv('a', squeeze=True)\n",
            "Today: the method squeeze('columns') of the result.",
        ),
        (
            "import scipy.linalg\n\nscipy.linalg.solve(a, b, sym_pos=True)\n",
            "Today: assume_a='pos'.",
        ),
        ("import numpy as np\n\nnp.corrcoef(a, bias=1)\n", "Leave it out: nothing has its place."),
        ("from skimage.feature import hog\n\nhog(x, visualise=True)\n", "Today: visualize."),
        (
            "import pandas\n\npandas.concat(a, pandas.read_csv('b'))\n",
            "Put the tables into a list: pandas.concat([a, b]).",
        ),
        ("import pandas\n\npandas.concat(tables, 1)\n", "Give the others by name: axis=1."),
    ],
)
def test_the_advice_about_an_argument_says_what_to_write(text, advice):
    found = check_text(text, Settings()).findings
    assert [f.fix for f in found if f.rule == "E2S114"] == [advice]


def test_data_of_nltk_that_has_another_name_is_told():
    text = "import nltk\n\nnltk.download('punkt')\n"
    assert refused(text) == ["NLTK reads 'punkt_tab' since 3.9, not 'punkt'"]
    assert refused(f"{text}nltk.download('punkt_tab')\n") == []
    assert refused(text.replace("punkt", "stopwords")) == []


def test_arguments_of_the_methods_of_tables():
    text = "import pandas as pd\n\n\ndef clean(x):\n    return {}\n"
    for call in ("x.fillna(0, downcast='infer')", "x['a'].fillna(method='ffill')"):
        assert "pandas 3: fillna has no argument" in refused(text.format(call))[0]
    assert not refused(text.format("x.fillna(0, inplace=True)"))
    assert not refused("def clean(x):\n    return x.fillna(method='ffill')\n")


def test_tables_refuse_these_arguments_today():
    pandas = pytest.importorskip("pandas", minversion="3")
    for method, gone in dropped_arguments._OF_TABLES.items():
        taken = inspect.signature(getattr(pandas.DataFrame, method)).parameters
        assert not gone & taken.keys()
    assert not hasattr(pandas.DataFrame, "applymap")
