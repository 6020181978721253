"""Tables of names: one form, one question, and a script for each that is run again here."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import library_names
import pytest

from estimator2strategy.engine.names import rows

ROOT = Path(__file__).resolve().parents[3]
TABLES = sorted((ROOT / "estimator2strategy/engine/names/read_off").glob("*.csv"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_table_names_the_script_that_makes_it_and_the_release_that_was_read(table):
    with table.open(encoding="utf-8", newline="") as file:
        columns, made_by, release, *others = csv.reader(file)
    assert columns == ["name", "fact", "value"]
    assert made_by[:2] == [table.stem, "made by"]
    assert Path(ROOT, made_by[2]).parent == Path(__file__).parent
    assert Path(ROOT, made_by[2]).is_file()
    assert release[:2] == [table.stem, "release"]
    known = {"gone", "refused", "most", "further", "before", "after", "v1", "v2"}
    assert {fact for _, fact, _ in others} <= known


def test_a_name_below_one_that_is_gone_has_the_row_of_that():
    row = rows.find("pandas.io.json.normalize.nested_to_record")
    assert (row.name, row.library) == ("pandas.io.json.normalize", "pandas")
    assert row.gone == rows.release("pandas")


def test_a_name_of_python_has_the_release_that_dropped_it():
    assert rows.find("itertools.izip").gone == "3"
    assert rows.find("imp.reload").gone == "3.12"
    assert rows.find("itertools.izip").today == "zip"
    assert rows.find("itertools.chain") is None


def test_a_function_has_the_arguments_that_it_refuses():
    assert "lr" in rows.find("keras.optimizers.Adam").refused
    assert rows.find("pandas.concat").most == 1


def test_an_attribute_of_objects_has_a_row():
    assert rows.find("pandas.Series().ix").gone == rows.release("pandas")
    assert "ix" in rows.of_objects()


def test_a_function_of_tensorflow_has_its_arguments_before_and_after():
    row = rows.find("tf.argmax")
    assert "dimension" in row.before
    assert "dimension" not in row.after


def test_a_name_that_is_what_it_was_has_no_row():
    assert rows.find("numpy.zeros") is None
    assert rows.find("curses.wrapper") is None  # Python 2 had a module of that name, too
    assert rows.find("tf.cast") is None
    assert rows.find("a_library.of.nobody") is None


OTHERWISE = {"sys.setdefaultencoding"}  # it was there after reload(sys)


def test_this_python_has_what_the_table_says():
    """The script reads this Python again."""
    script = Path(__file__).parent / "python_names.py"
    command = [sys.executable, str(script), "--names"]
    has = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    modules = {name for name in has if "." not in name}
    gone = rows.facts(rows.PYTHON)["gone"]
    wrong = []
    for module, names in gone.items():
        for entry in names.split():
            name, _, since = entry.partition(":")
            is_gone = tuple(map(int, (since or "3.10").split("."))) <= sys.version_info[:2]
            full = f"{module}.{name}".strip(".")
            is_there = name in (has.get(module, ()) if module else modules) or full in has
            if is_gone and is_there and full not in OTHERWISE:
                wrong.append(full)
    assert wrong == []


@pytest.mark.parametrize("library", ["keras", "numpy", "pandas"])
@pytest.mark.filterwarnings("ignore")
def test_a_library_has_lost_what_the_table_says(library):
    """The script tries the names again on what is installed."""
    try:
        version = importlib.import_module(library).__version__
    except ImportError:
        pytest.skip(f"{library} is not installed")
    if rows.release(library) != ".".join(version.split(".")[:2]):
        pytest.skip(f"the table is of {rows.read_off(library)}, and {version} is installed")
    gone = {k: v for k, v in rows.facts(library)["gone"].items() if not k.endswith("()")}
    before = {path: dict.fromkeys(names.split()) for path, names in gone.items()}
    found = library_names.table({"modules": before, "objects": {}}, (library,))["gone"]
    assert {k: set(v.split()) for k, v in found.items()} == {
        k: set(v.split()) for k, v in gone.items()
    }
