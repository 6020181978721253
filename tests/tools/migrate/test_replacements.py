"""Each row of the table of Keras replacements holds: TF 1.15's numbers against the Keras here."""

from __future__ import annotations

import ast
import inspect
import re

import keras
import pytest
import tensorflow as tf

from benchmarks import replacement_rows
from benchmarks import replacements as compared
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tools.migrate.apply import apply
from estimator2strategy.tools.migrate.codemod import codemods
from estimator2strategy.tools.migrate.codemods import new_names
from pages import replacements

pytestmark = [
    pytest.mark.skipif(
        not keras.__version__.startswith("3.15."), reason="the table is that of Keras 3.15"
    ),
    pytest.mark.filterwarnings("ignore"),
]
ROWS = list(zip(replacement_rows.rows(), replacements.measured(), strict=True))


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
            if said["digits"] >= replacements.EQUAL_DIGITS:
                # The last digit depends on the processor.
                assert cell["digits"] >= replacements.EQUAL_DIGITS - 1, where
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
    assert replacements.differing(recorded["written"]) == []


def test_every_optimizer_that_keras_has_not_is_written_out():
    for row, recorded in ROWS:
        equal = "keras3" in recorded and not replacements.differing(recorded["keras3"])
        assert equal or row.written or row.kind != "optimizer", row.legacy


def test_the_numbers_that_were_found_by_hand():
    """Keras 3's momentum moves a row that rests, its Adam adds up after squaring, and so on."""
    cells = {(row.legacy, row.keras3): recorded for row, recorded in ROWS}
    momentum = cells["tf.train.MomentumOptimizer(rate, 0.9)", "keras.optimizers.SGD(rate, 0.9)"]
    assert replacements.differing(momentum["keras3"]) == ["rate changes", "rows that rest"]
    assert replacements.differing(momentum["keras2"]) == ["rate changes"]
    adam = cells["tf.train.AdamOptimizer(rate)", "keras.optimizers.Adam(rate, epsilon=1e-8)"]
    assert replacements.differing(adam["keras3"]) == ["an id twice"]
    assert replacements.differing(adam["keras2"]) == []
    norm = cells[
        "tf.layers.BatchNormalization(momentum=0.0)",
        "keras.layers.BatchNormalization(momentum=0.0)",
    ]["keras3"]["8 values of an image"]
    assert (norm["keras"], norm["legacy"]) == ("5.25", "6")


def _migrated(codemod, body):
    program = f"import estimator2strategy.tf1 as tf\n\n\n{body}"
    return apply(program, [codemods()[codemod]])


def _call(text):
    """A call as its function, and its arguments by name with the defaults."""
    node = ast.parse(text, mode="eval").body
    function = namespace.resolve("tf")
    for name in ast.unparse(node.func).split(".")[1:]:
        function = getattr(function, name)
    given = inspect.signature(function).bind(
        *map(ast.unparse, node.args), **{k.arg: ast.unparse(k.value) for k in node.keywords}
    )
    given.apply_defaults()
    named = {name: str(value) for name, value in given.arguments.items() if name != "name"}
    return ast.unparse(node.func), named


@pytest.mark.parametrize(
    ("row", "recorded"),
    [pair for pair in ROWS if pair[0].kind == "optimizer"],
    ids=lambda value: getattr(value, "legacy", ""),
)
def test_stage_5_writes_an_optimizer_that_is_equal_or_marks_it(row, recorded):
    optimizer = row.legacy.replace("rate", "0.1", 1).replace("(0.01, rate", "(0.01, 0.1")
    outcome = _migrated(
        "keras-optimizers",
        f"def model_fn(loss):\n    optimizer = {optimizer}\n    return optimizer.minimize(loss)\n",
    )
    written = re.search(r"optimizer = (tf\.keras\..*)", outcome.text)
    if written is None:
        assert len(outcome.marks) == 1
        return
    assert _call(written[1].replace("0.1", "rate", 1)) == _call(row.keras2)
    # A momentum whose rate changes gets a mark.
    constant = {"rate changes"} if "Momentum" in row.legacy else set()
    assert set(replacements.differing(recorded["keras2"])) == constant


def test_momentum_stays_where_its_rate_changes():
    outcome = _migrated(
        "keras-optimizers",
        "def model_fn(loss, rate):\n    optimizer = tf.train.MomentumOptimizer(rate, 0.9)\n"
        "    return optimizer.minimize(loss)\n",
    )
    assert len(outcome.marks) == 1
    assert not outcome.counts


def test_argument_that_keras_has_not_is_marked_and_not_dropped():
    text = "optimizer = tf.train.AdamOptimizer(0.1, amsgrad=True)"
    outcome = _migrated(
        "keras-optimizers",
        f"def model_fn(loss):\n    {text}\n    return optimizer.minimize(loss)\n",
    )
    assert text in outcome.text
    assert "Keras has nothing for amsgrad" in outcome.text


@pytest.mark.parametrize(
    ("row", "recorded"),
    [pair for pair in ROWS if pair[0].kind == "schedule"],
    ids=lambda value: getattr(value, "legacy", ""),
)
def test_stage_5_writes_a_schedule_that_is_equal_or_leaves_it(row, recorded):
    outcome = _migrated("schedules", f"rate = {row.legacy}\n")
    if outcome.counts:
        assert f"rate = {row.keras2}\n" in outcome.text
        assert replacements.differing(recorded["keras2"]) == []
    else:
        assert row.legacy.startswith(("tf.train.natural_exp", "tf.train.linear_cosine"))


@pytest.mark.parametrize(
    "legacy", dict.fromkeys(row.legacy for row, _ in ROWS if row.kind == "metric")
)
def test_stage_3_writes_a_metric_that_is_equal_or_marks_it(legacy):
    outcome = _migrated("metrics-to-keras", f"def metric_fn():\n    return {{'m': {legacy}}}\n")
    made = re.search(r"m_metric = (.*)\n    m_metric\.update_state\((.*)\)\n", outcome.text)
    if made is None:
        assert len(outcome.marks) == 1
        return
    keras2 = re.sub(r"(, )?name='m'", "", made[1]).replace("num_classes=", "")
    values = made[2].replace("sample_weight=", "")
    (recorded,) = (
        recorded
        for row, recorded in ROWS
        if (row.legacy, row.keras2, row.values) == (legacy, keras2, values)
    )
    # The section of the codemod names this one.
    known = ["no positives"] if legacy.startswith("tf.metrics.auc(") else []
    assert replacements.differing(recorded["keras2"]) == known


def test_average_of_keras_starts_a_step_later_than_that_of_moving_average_optimizer():
    variable = keras.Variable([1.0])
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9)
    optimizer.build([variable])
    averages = []
    for _ in range(3):
        optimizer.apply([tf.constant([1.0])], [variable])
        averages.append(float(optimizer._model_variables_moving_average[0].numpy()[0]))
    assert averages == pytest.approx([0.9, 0.89, 0.871])  # TF 1.15: 0.99, 0.971, 0.9439


def test_stage_8_marks_each_optimizer_that_trains_looked_up_rows_otherwise():
    situations = {"ids", "rows that rest", "an id twice"}
    differ = {}
    for row, recorded in ROWS:
        if row.kind == "optimizer" and row.keras3 and row.written:
            name = re.match(r"keras\.optimizers\.(\w+)\(", row.keras3)[1]
            if situations & set(replacements.differing(recorded["keras3"])):
                differ.setdefault(name, set()).add(row.written.partition("(")[0])
    del differ["Lion"]  # no optimizer of tf-keras becomes this one
    assert differ.keys() == new_names._OPTIMIZERS.keys()
    for name, (_, written) in new_names._OPTIMIZERS.items():
        assert written in differ[name]


def test_hashed_crossing_has_the_buckets_of_crossed_column():
    # Of tf.feature_column.crossed_column in TensorFlow 1.15.5, in this order of the keys.
    words = tf.constant(["x", "yy", "", "school", "master", "q"])
    numbers = tf.constant([1, 2, 3, -4, 500000, 0], tf.int64)
    users = tf.constant([f"u{number}" for number in range(6)])
    expected = [
        (50, (words, users), [2, 27, 32, 36, 32, 33]),
        (50, (words, numbers), [27, 28, 37, 21, 8, 33]),
        (1000, (users, words), [654, 466, 159, 225, 997, 271]),
        (1000, (words, numbers, users), [526, 501, 19, 150, 844, 569]),
    ]
    for buckets, crossed, found in expected:
        assert keras.layers.HashedCrossing(buckets)(crossed).numpy().ravel().tolist() == found
