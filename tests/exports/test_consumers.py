"""The table of `migration_guide/serving.md` holds, as far as TensorFlow alone is needed.

The other rows are made by `python -m tests.exports`, outside CI.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from estimator2strategy import __main__
from tests.exports import cases, consumers, consumers_table, models

RESULTS = json.loads((Path(__file__).parent / "results.json").read_text())
BY_TENSORFLOW_ALONE = ("loaded", "trained", "tfsm_layer")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """A folder with an export of each kind."""
    folder = tmp_path_factory.mktemp("exports")
    for kind in models.KINDS:
        models.exported(kind, str(folder / kind))
    return folder


@pytest.mark.parametrize("kind", consumers_table.KINDS)
@pytest.mark.parametrize("row", BY_TENSORFLOW_ALONE)
def test_a_row_of_the_table(exports, row, kind):
    def answers(folder, case):
        return consumers.CONSUMERS[row](os.path.join(folder, "export"), case)

    found = cases.differences(str(exports), answers, [kind])[kind]
    expected = RESULTS[row][kind]
    if isinstance(expected, str):
        assert str(found).partition(":")[0] == expected.partition(":")[0]
    else:
        assert not isinstance(found, str), found
        assert found <= consumers_table.TOLERANCE


def test_a_tpu_estimators_export_is_read_by_keras_after_the_remedy(exports, tmp_path):
    source, target = str(exports / "tpu" / "export"), str(tmp_path / "one")
    assert __main__.main(["export-for", "--tags=serve", source, "--out", target]) == 0
    case = cases.read(str(exports / "tpu"))
    assert cases.difference(consumers.tfsm_layer(target, case), case) <= consumers_table.TOLERANCE


@pytest.mark.parametrize("kind", ["strings", "images"])
def test_parts_of_a_real_export_say_what_predict_says(exports, tmp_path, kind):
    import tensorflow as tf

    target = tmp_path / "parts"
    case = cases.read(str(exports / kind))
    asked = ["--parts", f"--signature={case['signature']}", "--out", str(target)]
    assert __main__.main(["export-for", *asked, str(exports / kind / "export")]) == 0
    known = consumers.tensors_of(case)
    for part in ("parsing", "numbers"):
        call = tf.saved_model.load(str(target / part)).signatures["serving_default"]
        known |= call(**{name: known[name] for name in call.structured_input_signature[1]})
    assert cases.difference(known[case["output"]], case) <= consumers_table.TOLERANCE


def test_the_page_has_the_table_of_the_results():
    assert consumers_table.table(RESULTS) in consumers_table.PAGE.read_text()


def test_no_reader_gives_other_numbers():
    for found in RESULTS.values():
        for value in found.values():
            assert isinstance(value, (str, type(None))) or value <= consumers_table.TOLERANCE
