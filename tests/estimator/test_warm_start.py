"""Values that a model starts from another model's."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.estimator.warm_start import WarmStartSettings, settings_from
from tests.engine.runtime.programs import falling, host_estimator, numbers


@pytest.fixture
def trained(tmp_path):
    """A folder of checkpoints in which `weight` is -6 after 3 steps."""
    folder = str(tmp_path / "trained")
    host_estimator(folder).train(numbers(3))
    return folder


def warm(model_dir, warm_start_from, model_fn=falling):
    return estimator.Estimator(model_fn, model_dir, params={}, warm_start_from=warm_start_from)


def test_training_starts_from_the_values_but_at_step_0(model_dir, trained):
    model = warm(model_dir, trained)
    model.train(numbers(2))
    assert model.get_variable_value("weight") == -6.0 - 3.0
    assert model.get_variable_value("global_step") == 2


def test_prediction_before_any_training_has_the_values(model_dir, trained):
    (prediction,) = warm(model_dir, trained).predict(numbers(1))
    assert prediction["sum"] == 1.0 - 6.0


def test_own_checkpoint_comes_first(model_dir, trained):
    host_estimator(model_dir).train(numbers(1))
    (prediction,) = warm(model_dir, trained).predict(numbers(1))
    assert prediction["sum"] == 1.0 - 1.0


def test_variable_has_another_name_in_the_checkpoint(model_dir, trained):
    def model_fn(features, labels, mode, params):
        with tf.compat.v1.variable_scope("scope"):
            return falling(features, labels, mode, params)

    settings = WarmStartSettings(trained, var_name_to_prev_var_name={"scope/weight": "weight"})
    model = warm(model_dir, settings, model_fn)
    model.train(numbers(1))
    assert model.get_variable_value("scope/weight") == -7.0


def test_folder_of_a_saved_model_means_its_variables(tmp_path):
    variables = tmp_path / "variables"
    variables.mkdir()
    (variables / "variables.index").touch()
    assert settings_from(str(tmp_path)).ckpt_to_initialize_from == str(variables / "variables")


def test_paths_come_as_strings_bytes_or_paths():
    expected = WarmStartSettings("/some/where")
    assert settings_from("/some/where") == expected
    assert settings_from(b"/some/where") == expected
    assert settings_from(Path("/some/where")) == expected


def test_anything_else_is_refused():
    with pytest.raises(ValueError, match="must be a string or a WarmStartSettings"):
        settings_from(3)


def test_the_newest_checkpoint_of_a_folder_is_found_without_its_list(model_dir, trained):
    Path(trained, "checkpoint").write_bytes(b"\x80")
    model = warm(model_dir, trained)
    model.train(numbers(2))
    assert model.get_variable_value("weight") == -6.0 - 3.0
