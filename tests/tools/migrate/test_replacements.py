"""Each row of the table of Keras replacements holds: TF 1.15's numbers against the Keras here."""

from __future__ import annotations

import keras
import pytest

from benchmarks import replacements as compared
from estimator2strategy.tools.migrate import replacements, replacements_guide

pytestmark = [
    pytest.mark.skipif(
        not keras.__version__.startswith("3.15."), reason="the table is that of Keras 3.15"
    ),
    pytest.mark.filterwarnings("ignore"),
]
ROWS = list(zip(replacements.rows(), replacements_guide.measured(), strict=True))


@pytest.mark.parametrize(
    ("row", "recorded"), ROWS, ids=[f"{n} {row.legacy}" for n, (row, _) in enumerate(ROWS)]
)
def test_row_is_equal_to_the_digit_that_the_table_says(row, recorded):
    found = compared.measured(row)
    assert found.keys() == recorded.keys() - {"legacy"}
    for column, cells in found.items():
        for situation, cell in cells.items():
            said = recorded[column][situation]
            where = (column, situation, cell, said)
            if said["digits"] >= replacements_guide.EQUAL_DIGITS:
                # The last digit depends on the processor.
                assert cell["digits"] >= replacements_guide.EQUAL_DIGITS - 1, where
            else:
                assert _numbers(cell) == pytest.approx(_numbers(said), rel=1e-3), where


def _numbers(cell):
    return [float(cell["keras"]), float(cell["legacy"])]


def test_rows_are_those_of_the_recorded_table():
    assert [row.legacy for row, _ in ROWS] == [recorded["legacy"] for _, recorded in ROWS]
    assert {row.legacy for row, _ in ROWS} | {"tensorflow"} == compared.golden().keys()


@pytest.mark.parametrize(
    ("row", "recorded"), [pair for pair in ROWS if pair[0].written], ids=lambda value: None
)
def test_expression_that_is_said_to_be_equal_is_so_in_all_situations(row, recorded):
    assert replacements_guide.differing(recorded["written"]) == []


def test_every_optimizer_that_keras_has_not_is_written_out():
    for row, recorded in ROWS:
        equal = "keras3" in recorded and not replacements_guide.differing(recorded["keras3"])
        assert equal or row.written or row.kind != "optimizer", row.legacy


def test_the_numbers_that_were_found_by_hand():
    """Keras 3's momentum moves a row that rests, its Adam adds up after squaring, and so on."""
    cells = {(row.legacy, row.keras3): recorded for row, recorded in ROWS}
    momentum = cells["tf.train.MomentumOptimizer(rate, 0.9)", "keras.optimizers.SGD(rate, 0.9)"]
    assert replacements_guide.differing(momentum["keras3"]) == ["rate changes", "rows that rest"]
    assert replacements_guide.differing(momentum["keras2"]) == ["rate changes"]
    adam = cells["tf.train.AdamOptimizer(rate)", "keras.optimizers.Adam(rate, epsilon=1e-8)"]
    assert replacements_guide.differing(adam["keras3"]) == ["an id twice"]
    assert replacements_guide.differing(adam["keras2"]) == []
    norm = cells[
        "tf.layers.BatchNormalization(momentum=0.0)",
        "keras.layers.BatchNormalization(momentum=0.0)",
    ]["keras3"]["8 values of an image"]
    assert (norm["keras"], norm["legacy"]) == ("5.25", "6")
