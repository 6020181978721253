"""Attributes that objects of other libraries have lost, where the source tells their class."""

from __future__ import annotations

import importlib

import pytest

from estimator2strategy.engine.names import rows
from estimator2strategy.tools.check.checking import check, check_text
from estimator2strategy.tools.check.settings import Settings
from tests.tools.check.checked_programs import write

IMPORTS = """\
import h5py
import networkx as nx
import numpy as np
import pandas as pd
from gensim.models import KeyedVectors, Word2Vec
from PIL import Image, ImageDraw, ImageFont
from sklearn.feature_extraction.text import CountVectorizer

"""


def found(text):
    report = check_text(IMPORTS + text, Settings())
    told = [f for f in report.findings if f.rule in ("E2S109", "E2S114")]
    return [f"{f.message} -> {f.fix}" for f in told]


@pytest.mark.parametrize(
    ("text", "today"),
    [
        ("table = pd.read_csv('a')\ntable.append(table)", "pandas.concat([table, other])"),
        ("pd.DataFrame({}).dropna()['age'].append(1)", "pandas.concat([column, other])"),
        ("names = CountVectorizer()\nnames.get_feature_names()", "get_feature_names_out()"),
        ("draw = ImageDraw.Draw(Image.new('L', (1, 1)))\ndraw.textsize('a')", "textbbox"),
        ("ImageFont.truetype('a').getsize('b')", "getbbox(text)"),
        ("graph = nx.Graph()\ngraph.node[1]", "nodes"),
        ("graph = nx.path_graph(3)\ngraph.edges_iter()", "edges()"),
        ("with h5py.File('a') as file:\n    x = file['b'].value", "dataset[()]"),
        ("def f(name):\n    return h5py.File('a')[name]['b'].value", "dataset[()]"),
        ("model = Word2Vec.load('a')\nmodel.most_similar('b')", "wv.most_similar"),
        ("vectors = KeyedVectors.load_word2vec_format('a')\nvectors.vocab", "key_to_index"),
        ("np.zeros(3).ptp()", "numpy.ptp(array)"),
        ("def f(rows):\n    return rows.append({}, ignore_index=True)", "pandas.concat"),
        ("table = pd.read_csv('a')[['b', 'c']]\ntable.append(table)", "pandas.concat"),
        ("names = ['b']\ntable = pd.read_csv('a')\ntable[names].append(table)", "pandas.concat"),
        ("table = pd.read_csv('a')\ntable[table['b'] > 3][:9].append(table)", "pandas.concat"),
        ("def f(t):\n    t.set_value(0, 'b', 1)\n\nf(pd.read_csv('a'))", "at[...] = value"),
        ("def f(x, t):\n    t.append(t)\n\nf(1, t=pd.read_csv('a'))", "pandas.concat"),
    ],
)
def test_what_an_object_has_lost_is_an_error_with_todays_way(text, today):
    (message,) = found(text + "\n")
    assert "gone" in message
    assert f"Today: {today}" in message


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("pd.read_csv('a').drop('b', 1)", "Give the others by name: axis=1."),
        ("pd.read_csv('a').fillna(method='ffill')", "Today: the method ffill or bfill."),
        ("def f(rows):\n    return rows.drop(['a'], 1)", "Give the others by name: axis=1."),
        ("pd.Series([1]).sort_index(0)", "Give them by name: axis=0."),
    ],
)
def test_arguments_that_a_method_refuses_are_errors(text, advice):
    (message,) = found(text + "\n")
    assert message.endswith(f"-> {advice}")


@pytest.mark.parametrize(
    "text",
    [
        "def f(table):\n    table.append(1)\n    table.drop('a', axis=1)",
        "table = pd.read_csv('a')\ntable = table.values.tolist()\ntable.append(1)",
        "table = [1]\nif table:\n    table = pd.read_csv('a')\ntable.append(1)",
        "parts = pd.read_csv('a', chunksize=3)\nparts.append(1)",
        "table = pd.read_csv('a')\nx = table.node, table.first",
        "for table in [pd.read_csv('a')]:\n    table.append(1)",
        "table = pd.read_csv('a')\ntable.drop(columns='a').sort_values('b')",
        "try:\n    x = np.zeros(3).ptp()\nexcept AttributeError:\n    x = 0",
        "def f(t):\n    t.append(1)\n\nf(pd.read_csv('a'))\nf([])",
        "def f(t):\n    t.append(1)\n\nf(pd.read_csv('a'))\nmap(f, [[]])",
        "def f(t):\n    t = []\n    t.append(1)\n\nf(pd.read_csv('a'))",
        "def f(t=()):\n    t.append(1)\n\nf(pd.read_csv('a'))\nf()",
        "def f(t):\n    t.append(1)\n\nf(*[pd.read_csv('a')])",
        "class A:\n    def f(self, t):\n        t.append(1)\n\nA().f(pd.read_csv('a'))",
        "def f(t):\n    f(t)\n    t.append(1)",
        "table = pd.read_csv('a')\ntable[some()].append(1)",
    ],
)
def test_an_object_that_may_be_another_is_no_finding(text):
    assert found(text + "\n") == []


def test_a_table_stays_one_through_its_own_methods():
    text = "table = pd.read_csv('a')\ntable = table.dropna()\ntable = table.append({})\n"
    assert len(found(text)) == 1


def test_attributes_of_self_are_known_by_what_the_file_gives_them():
    text = (
        "class Data:\n    def __init__(self):\n        self.table = None\n"
        "        self.table = self._read()\n\n"
        "    def _read(self):\n        return pd.read_csv('a')\n\n"
        "    def add(self, row):\n        self.table.append(row)\n"
    )
    assert len(found(text)) == 1
    assert found(f"{text}\n\ndata = Data()\ndata.table = []\n") == []


def test_arguments_are_what_calls_in_other_files_give(tmp_path):
    files = "def add(table):\n    table.append({})\n"
    main = "import pandas as pd\nimport files\n\nfiles.add(pd.read_csv('a'))\n"
    write(tmp_path, files=files, main=main)
    report = check([str(tmp_path)], Settings())
    assert [f.rule for f in report.findings] == ["E2S109"]


def test_functions_of_another_file_are_read(tmp_path):
    files = "import pandas as pd\n\n\ndef read():\n    return pd.read_csv('a')\n"
    write(tmp_path, files=files, main="import files\n\ntable = files.read()\ntable.append({})\n")
    report = check([str(tmp_path)], Settings())
    assert [f.rule for f in report.findings] == ["E2S109"]


def of_installed():
    """(class, lost name) of the libraries that are installed."""
    every = (rows.facts(library).get("gone", {}) for library in rows.libraries())
    for of, names in (pair for gone in every for pair in gone.items()):
        if of.endswith("()"):
            home, _, last = of[:-2].rpartition(".")
            try:
                found = getattr(importlib.import_module(home), last)
            except ImportError:
                continue
            yield from ((found, name) for name in names.split())


def test_the_objects_of_what_is_installed_do_not_have_them():
    every = list(of_installed())
    assert len(every) > 20
    # Objects of keras.Model(inputs, outputs) are of a class below.
    assert [(of, name) for of, name in every if hasattr(of, name)] == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("table['a'][table['a'] < 0] = 0", 1),
        ("table['a'].loc[3] = 0", 1),
        ("table['a'][3] += 1", 1),
        ("table['a'].fillna(0, inplace=True)", 1),
        ("part = table[['a', 'b']].drop_duplicates()\npart['a'].fillna(0, inplace=True)", 1),
        ("for name in ['a', 'b']:\n    table[name].fillna(0, inplace=True)", 1),
        ("for name in table.columns:\n    table[name][3] = 0", 1),
        ("name = 'a'\ntable[name].fillna(0, inplace=True)", 1),
        ("for name in names():\n    table[name].fillna(0, inplace=True)", 0),
        ("for name in [['a'], ['b']]:\n    table[name].fillna(0, inplace=True)", 0),
        ("table['a'] = table['a'].fillna(0)", 0),
        ("table.loc[3, 'a'] = 0", 0),
        ("table.fillna(0, inplace=True)", 0),
        ("column = table['a']\ncolumn[3] = 0", 0),
        ("tables = {'a': table}\ntables['a']['b'] = 0", 0),
    ],
)
def test_a_change_of_a_copied_column_is_an_error(line, count):
    report = check_text(f"{IMPORTS}table = pd.read_csv('a')\n{line}\n", Settings())
    assert [f.rule for f in report.findings].count("E2S119") == count


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("pd.read_csv('a')", "ERROR"),
        ("pd.read_csv('a').dropna()", "ERROR"),
        ("pd.read_excel('a', sheet_name=1)", "WARNING"),
        ("pd.read_excel('a', sheet_name=None)", None),
        ("pd.read_csv('a', header=None)", None),
        ("pd.read_csv('a', names=range(3))", None),
        ("pd.read_csv('a').rename(columns={'a': 0})", None),
        ("pd.DataFrame([[1, 2]])", None),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        "for i, row in table.iterrows():\n    print(row[0], row['a'], row.iloc[0], row[0:2])",
        "print([row['a'] for i, row in table.iterrows() if row[-1] > 0])",
    ],
)
def test_an_item_of_a_row_by_its_place_is_a_finding_where_columns_have_names(made, found, use):
    report = check_text(f"{IMPORTS}table = {made}\n{use}\n", Settings())
    severities = [f.severity.name for f in report.findings if f.rule == "E2S120"]
    assert severities == ([found] if found else [])


@pytest.mark.parametrize(
    "line",
    [
        "row = list(row)",
        "table.columns = range(3)",
        "row[0] = 1",
        "print(other[0], row[n])",
        "rows.sort(key=lambda row: row[0])",
    ],
)
def test_other_items_of_rows_are_no_finding(line):
    text = f"{IMPORTS}table = pd.read_csv('a')\nfor i, row in table.iterrows():\n    {line}\n"
    text += "    print(row[0])\n" if line.startswith(("row = ", "table")) else ""
    report = check_text(text, Settings())
    assert [f for f in report.findings if f.rule == "E2S120"] == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("x.drop('a', 1)", 1),
        ("x.columns.drop(['a'], 1)", 0),
        ("names = x.columns\nnames.drop(['a'], 1)", 0),
    ],
)
def test_the_names_of_columns_are_dropped_with_another_second_argument(line, count):
    lines = "".join(f"    {part}\n" for part in line.splitlines())
    report = check_text(f"{IMPORTS}def f(x):\n{lines}", Settings())
    assert [f.rule for f in report.findings].count("E2S114") == count
