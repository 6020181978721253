"""A model that was migrated to Keras 3 answers under JAX as TF 1.15 did, without TensorFlow.

torch is in no environment of these tests. By hand:

    python -m venv torch && torch/bin/pip install keras torch
    e2s checkpoint verify tests/goldens/parity_tf115 --backend torch --python torch/bin/python \\
        --model tests/programs/keras_twin.py:build
"""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator2strategy.tools.checkpoint.checkpoint_command import main

pytest.importorskip("jax")

TESTS = Path(__file__).parents[2]
GOLDEN = str(TESTS / "goldens" / "parity_tf115")
TWIN = f"{TESTS / 'programs' / 'keras_twin.py'}:"


def verified(capfd, *arguments):
    code = main(["verify", GOLDEN, "--backend", "jax", *arguments])
    return code, capfd.readouterr()


def test_predictions_and_losses_of_tf_1_15_come_out_of_jax(capfd):
    code, said = verified(capfd, "--model", f"{TWIN}build")
    assert code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("the same model: ")
    assert lines[0].endswith("keras_twin.py:build on jax, no TensorFlow")
    assert [line.split()[:2] for line in lines[2:]] == [
        ["predictions", "probabilities"],
        ["loss", "of"],
    ]
    assert all(" passed " in line and "within 1e-05 relative" in line for line in lines[2:])


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
