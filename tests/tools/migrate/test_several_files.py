"""model-fn-to-keras on programs of several files: all of them change, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan

MODEL = """\
import estimator2strategy.tf1 as tf

from layers import block


def price_model_fn(features, labels, mode, params):
    net = block(features, 8)
    y = tf.keras.layers.Dense(1, name="y")(net)
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)
    optimizer.iterations = tf.train.get_or_create_global_step()
    train_op = optimizer.apply_gradients(zip(tf.gradients(loss, tf.trainable_variables()), x))
    return tf.estimator.EstimatorSpec(mode, y, loss, train_op)
"""
LAYERS = """\
import estimator2strategy.tf1 as tf


def block(net, units):
    net = tf.keras.layers.Dense(units, name="first")(net)
    return tf.keras.layers.Dense(units, name="second")(net)
"""
INPUTS = """\
import estimator2strategy.tf1 as tf


def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [2.0]))
"""
MAIN = """\
from estimator2strategy import KerasLoop

import inputs
from model import price_model_fn


def main():
    loop = KerasLoop(price_model_fn, "model", params={})
    loop.train(inputs.input_fn, max_steps=10)
"""
FILES = {"model.py": MODEL, "layers.py": LAYERS, "inputs.py": INPUTS, "main.py": MAIN}


def migrated(folder: Path, files: dict[str, str], *given: str):
    """The plan, and the files as they become; of the paths that are given, or of the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    paths = [str(folder / name) for name in given or [""]]
    plan = make_plan(paths, [codemods()["model-fn-to-keras"]], tier=SafetyTier.REVIEW)
    found = dict(files)
    for planned in plan.changed:
        found[str(planned.file.path.relative_to(folder))] = planned.migrated.text
    return plan, found


def assert_stays(folder, files, message, *given, marked):
    """No file changes but for a mark with this message."""
    plan, found = migrated(folder, files, *given)
    assert [mark.message for mark in plan.marks] == [f"model-fn-to-keras: {message}"]
    without = {
        name: [x for x in text.splitlines() if "TODO" not in x] for name, text in found.items()
    }
    assert without == {name: text.splitlines() for name, text in files.items()}
    assert [name for name, text in found.items() if "TODO" in text] == [marked]


def test_model_layers_and_loop_change_in_their_own_files(tmp_path):
    plan, found = migrated(tmp_path, FILES)
    assert plan.marks == []
    assert "class Block(keras.layers.Layer):" in found["layers.py"]
    assert "from layers import Block\n" in found["model.py"]
    assert 'self.block = Block(8, name="block")' in found["model.py"]
    assert "class PriceModel(keras.Model):" in found["model.py"]
    assert "from model import PriceModel, make_optimizer\n" in found["main.py"]
    assert 'train(model, inputs.input_fn(), 10, "model")' in found["main.py"]
    assert "def train(" in found["main.py"]
    assert found["inputs.py"] == INPUTS
    assert all("import keras\n" in found[name] for name in ("main.py", "model.py", "layers.py"))


@pytest.mark.parametrize(
    ("imported", "named", "made"),
    [
        ("import model", "model.price_model_fn", "keras_model = model.PriceModel(params)"),
        ("import model as nets", "nets.price_model_fn", "model = nets.PriceModel(params)"),
        ("from model import price_model_fn as fn", "fn", "model = PriceModel(params)"),
    ],
)
def test_however_the_file_of_the_model_is_imported(imported, named, made, tmp_path):
    main = MAIN.replace("from model import price_model_fn", imported)
    main = main.replace("KerasLoop(price_model_fn", f"KerasLoop({named}")
    plan, found = migrated(tmp_path, FILES | {"main.py": main})
    assert plan.marks == []
    assert made in found["main.py"]
    assert "price_model_fn" not in found["main.py"]


def test_files_of_a_package_keep_their_relative_imports(tmp_path):
    files = {f"trainer/{name}": text for name, text in FILES.items()}
    files["trainer/__init__.py"] = ""
    files["trainer/main.py"] = MAIN.replace("import inputs", "from . import inputs").replace(
        "from model import price_model_fn", "from .model import price_model_fn"
    )
    files["trainer/model.py"] = MODEL.replace(
        "from layers import block", "from . import layers"
    ).replace("block(features", "layers.block(features")
    plan, found = migrated(tmp_path, files)
    assert plan.marks == []
    assert "from .model import PriceModel, make_optimizer\n" in found["trainer/main.py"]
    assert "layers.Block(8" in found["trainer/model.py"]
    assert "from . import layers\n" in found["trainer/model.py"]


def test_two_programs_that_share_a_model_fn_change_together(tmp_path):
    evaluate = MAIN.replace("train(inputs.input_fn, max_steps=10)", "evaluate(inputs.input_fn)")
    plan, found = migrated(tmp_path, FILES | {"evaluate.py": evaluate})
    assert plan.marks == []
    assert "model.evaluate(inputs.input_fn()" in found["evaluate.py"]
    assert "def train(" not in found["evaluate.py"]
    assert "from model import PriceModel, make_optimizer\n" in found["evaluate.py"]
    assert 'train(model, inputs.input_fn(), 10, "model")' in found["main.py"]


def test_nothing_changes_where_another_file_reads_the_model_fn(tmp_path):
    test = "from model import price_model_fn\n\nprint(price_model_fn(1, 2, 3, 4))\n"
    message = "price_model_fn becomes a part of a Keras model: change this first"
    assert_stays(tmp_path, FILES | {"check.py": test}, message, marked="check.py")


def test_nothing_changes_where_a_package_hands_the_layer_on(tmp_path):
    files = FILES | {"shared/__init__.py": "from layers import block\n"}
    message = "block becomes a part of a Keras model: change this first"
    assert_stays(tmp_path, files, message, marked="shared/__init__.py")


def test_nothing_changes_where_the_file_of_the_model_is_not_given(tmp_path):
    message = f"migrate {tmp_path / 'model.py'} with this file: it has model_fn"
    given = ("main.py", "inputs.py")
    assert_stays(tmp_path, FILES, message, *given, marked="main.py")


def test_a_mark_stands_in_the_file_of_its_line(tmp_path):
    layers = LAYERS.replace('"first")', '"first", units=net.shape[1])').replace("(units, ", "(")
    assert_stays(
        tmp_path,
        FILES | {"layers.py": layers},
        "a layer is made before net is known: use a number here",
        marked="layers.py",
    )


def test_nothing_changes_where_a_line_of_a_layer_is_shared(tmp_path):
    layers = f"{LAYERS.rstrip()}; x = 1\n".replace("def block", "z = 1; block_of = 2\ndef block")
    layers = layers.replace("(net)\n    return", "(net); y = 0\n    return")
    plan, found = migrated(tmp_path, FILES | {"main.py": MAIN.replace("loop = ", "a = 1; loop = ")})
    assert [place.line for place in plan.skipped] == [8]
    assert found == FILES | {"main.py": MAIN.replace("loop = ", "a = 1; loop = ")}


def test_a_function_of_the_program_is_not_hidden(tmp_path):
    main = MAIN.replace("def main():", "def train():\n    main()\n\n\ndef main():")
    plan, found = migrated(tmp_path, FILES | {"main.py": main})
    assert plan.marks == []
    assert "def train_model(model, data" in found["main.py"]
    assert 'train_model(model, inputs.input_fn(), 10, "model")' in found["main.py"]
