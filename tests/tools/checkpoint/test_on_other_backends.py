"""A model that was migrated to Keras 3 answers under JAX as TF 1.15 did, without TensorFlow.

torch is in no environment of these tests; `tests/ladder/test_stage9.py` runs it in one of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator2strategy.tools.checkpoint.checkpoint_command import main

pytest.importorskip("jax")

TESTS = Path(__file__).parents[2]
GOLDEN = str(TESTS / "goldens" / "parity_tf115")
TWIN = f"{TESTS / 'programs' / 'keras_twin.py'}:"


BIKES = str(TESTS / "ladder" / "goldens" / "bikes_tf115")
STAGE_9 = f"{TESTS / 'ladder' / 'stage9.py'}:"


def verified(capfd, *arguments, golden=GOLDEN):
    code = main(["verify", golden, "--backend", "jax", *arguments])
    return code, capfd.readouterr()


def test_what_stage_8_made_predicts_and_trains_under_jax_as_tf_1_15(capfd):
    code, said = verified(capfd, "--model", f"{STAGE_9}bikes", golden=BIKES)
    assert code == 0, said.err + said.out
    compared = [line.partition("  ")[0] for line in said.out.splitlines()[2:]]
    assert compared == [
        "predictions probabilities",
        "loss of each evaluation batch",
        "loss of each training step",
    ]
    assert said.out.count(" passed ") == 3


def test_another_learning_rate_of_what_stage_8_made_is_found_out(capfd):
    code, said = verified(capfd, "--model", f"{STAGE_9}bikes_at_another_rate", golden=BIKES)
    assert code == 1
    assert "so the optimizer or its settings are others" in said.out


def test_predictions_and_losses_of_tf_1_15_come_out_of_jax(capfd):
    code, said = verified(capfd, "--model", f"{TWIN}as_trained")
    assert code == 0, said.err + said.out
    lines = said.out.splitlines()
    assert lines[0].startswith("the same model: ")
    assert lines[0].endswith("keras_twin.py:as_trained on jax, no TensorFlow")
    assert [line.split()[:2] for line in lines[2:]] == [
        ["predictions", "probabilities"],
        ["loss", "of"],
        ["loss", "of"],
    ]
    assert all(" passed " in line for line in lines[2:])
    assert lines[4].startswith("loss of each training step ")


def test_another_optimizer_is_found_out_by_its_second_loss(capfd):
    code, said = verified(capfd, "--model", f"{TWIN}build")
    assert code == 1
    last = said.out.splitlines()[-1]
    assert "first at step 1, so the optimizer or its settings are others: 0.798" in last


def test_another_model_is_found_out_by_its_predictions(capfd):
    code, said = verified(capfd, "--model", f"{TWIN}without_relu")
    assert code == 1
    assert said.out.startswith("DIFFERENT: ")


@pytest.mark.parametrize(
    ("function", "words"),
    [("larger", "hidden/kernel: nothing has its shape"), ("nothing", "has no 'nothing'")],
)
def test_a_model_that_does_not_fit_is_told_which_variable_has_no_home(function, words, capfd):
    code, said = verified(capfd, "--model", TWIN + function)
    assert code
    assert words in said.err


def test_a_model_that_calls_tensorflow_is_told_its_line(capfd, tmp_path):
    (tmp_path / "calls.py").write_text(
        "import keras\nimport tensorflow as tf\n\n"
        "DATA = tf.data.Dataset\n\n"
        "class Sigmoid(keras.layers.Layer):\n"
        "    def call(self, x):\n"
        "        return tf.nn.sigmoid(x)\n\n"
        "def build():\n"
        "    x = keras.Input((6,))\n"
        "    y = keras.layers.Dense(8, name='hidden')(x)\n"
        "    y = keras.layers.BatchNormalization(name='norm')(y)\n"
        "    return keras.Model(x, keras.layers.Dense(3, name='logits')(Sigmoid()(y)))\n"
    )
    code, said = verified(capfd, "--model", f"{tmp_path / 'calls.py'}:build")
    assert code == 2
    assert "calls.py:8 calls tensorflow.nn.sigmoid, and there is no TensorFlow here" in said.err


def test_a_python_without_the_backend_is_a_sentence(capfd, tmp_path):
    (tmp_path / "needs.py").write_text(
        "import importlib, sys\n"
        "def build():\n"
        "    if sys.modules.get('tensorflow', 1) is None:\n"
        "        importlib.import_module('tensorflow')\n"
        f"    sys.path.insert(0, {str(TESTS / 'programs')!r})\n"
        "    import keras_twin\n"
        "    return keras_twin.build()\n"
    )
    code, said = verified(capfd, "--model", f"{tmp_path / 'needs.py'}:build")
    assert code == 2
    assert "build fails on the backend jax: ModuleNotFoundError" in said.err
    assert "tensorflow" in said.err
