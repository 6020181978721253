"""TrainingOptions: one argument, checked when it is made; the keywords of before name it."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import estimator2strategy
from estimator2strategy import estimator
from estimator2strategy.estimator import tpu
from tests.engine.runtime.programs import falling

CLASSES = {
    "Estimator": lambda **kwargs: estimator.Estimator(falling, params={}, **kwargs),
    "TPUEstimator": lambda **kwargs: tpu.TPUEstimator(
        falling, config=tpu.RunConfig(), use_tpu=False, train_batch_size=4, **kwargs
    ),
}
each_class = pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES)


def test_it_is_public():
    assert estimator2strategy.TrainingOptions is estimator.TrainingOptions


def test_it_is_frozen_and_takes_keywords_only():
    options = estimator.TrainingOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.jit_compile = True
    with pytest.raises(TypeError):
        estimator.TrainingOptions(True)


@pytest.mark.parametrize("name", ["resume_input", "jit_compile", "async_checkpoints"])
def test_a_switch_that_is_no_bool_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be True or False, given: 'yes'"):
        estimator.TrainingOptions(**{name: "yes"})


@pytest.mark.parametrize("value", [-1, 1.5, True, None])
def test_restarts_that_are_no_count_are_refused(value):
    with pytest.raises(ValueError, match=f"max_restarts must be an int >= 0, given: {value}"):
        estimator.TrainingOptions(max_restarts=value)


def test_a_profile_dir_that_is_no_path_is_refused():
    with pytest.raises(TypeError, match="profile_dir must be a path, given: 3"):
        estimator.TrainingOptions(profile_dir=3)


@each_class
def test_options_of_another_type_are_refused(make):
    with pytest.raises(TypeError, match=r"options must be a TrainingOptions, given: \{'jit_"):
        make(options={"jit_compile": True})


@each_class
@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(estimator.TrainingOptions)])
def test_a_keyword_of_before_names_its_replacement(make, field):
    with pytest.raises(
        TypeError,
        match=rf"Estimator.__init__\(\) has no argument '{field}' any more, given: None"
        rf"\n(.|\n)*  Pass options=TrainingOptions\({field}=...\)\.",
    ):
        make(**{field: None})


@each_class
def test_execution_is_to_be_left_out(make):
    with pytest.raises(
        TypeError, match=r"no argument 'execution' any more, given: 'auto'(.|\n)*Leave it out"
    ):
        make(execution="auto")


@each_class
def test_a_keyword_that_never_was_is_an_error_as_ever(make):
    with pytest.raises(TypeError, match="unexpected keyword argument 'executions'"):
        make(executions="auto")


@pytest.mark.parametrize("cls", [estimator.Estimator, tpu.TPUEstimator])
def test_programs_that_look_at_constructors_find_the_arguments(cls):
    spec = inspect.getfullargspec(cls.__init__)
    assert spec.args[:3] == ["self", "model_fn", "model_dir"]
    assert spec.kwonlyargs == ["strategy", "options"]
    assert spec.varkw is None
