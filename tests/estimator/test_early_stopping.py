"""Training that stops by what evaluations have found: `tf.estimator.experimental.stop_if_...`."""

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, numbers

tf1 = tf.compat.v1
experimental = estimator.experimental


@pytest.fixture
def trained(model_dir):
    """Trains up to 5 steps with a hook, and returns how many there were."""
    falling_estimator = estimator.Estimator(falling, model_dir, params={})

    def train(make_hook, *args, losses=(), **kwargs):
        with (
            tf.Graph().as_default(),
            tf1.summary.FileWriter(falling_estimator.eval_dir()) as writer,
        ):
            for step, loss in losses:
                value = tf1.Summary.Value(tag="loss", simple_value=loss)
                writer.add_summary(tf1.Summary(value=[value]), step)
        hook = make_hook(
            falling_estimator, *args, **{"run_every_secs": None, "run_every_steps": 1, **kwargs}
        )
        falling_estimator.train(numbers(5), hooks=[hook])
        return int(falling_estimator.get_variable_value("global_step"))

    train.estimator = falling_estimator
    return train


LOSSES = [(2, 1.0), (4, 0.5), (6, 0.6), (8, 0.7)]


@pytest.mark.parametrize(
    ("hook", "limit", "steps"),
    [
        (experimental.stop_if_no_decrease_hook, 4, 1),
        (experimental.stop_if_no_decrease_hook, 5, 5),
        (experimental.stop_if_no_increase_hook, 6, 1),
        (experimental.stop_if_no_increase_hook, 7, 5),
        (experimental.stop_if_lower_hook, 0.55, 1),
        (experimental.stop_if_lower_hook, 0.45, 5),
        (experimental.stop_if_higher_hook, 0.9, 1),
        (experimental.stop_if_higher_hook, 1.1, 5),
    ],
)
def test_stops_by_the_metrics_of_evaluations(trained, hook, limit, steps):
    assert trained(hook, "loss", limit, losses=LOSSES) == steps


def test_evaluations_before_min_steps_do_not_count(trained):
    hook = experimental.stop_if_higher_hook
    assert trained(hook, "loss", 0.9, losses=LOSSES, min_steps=3) == 5


def test_asks_at_its_interval(trained):
    hook = experimental.make_early_stopping_hook
    asked = []
    assert trained(hook, lambda: asked.append(1) or len(asked) == 2, run_every_steps=2) == 3


def test_the_decision_is_a_variable_of_the_checkpoint(trained):
    trained(experimental.make_early_stopping_hook, lambda: True)
    assert trained.estimator.get_variable_value("signal_early_stopping/STOP")


def test_train_and_evaluate_stops(model_dir):
    config = estimator.RunConfig(model_dir, save_checkpoints_steps=2)
    program = estimator.Estimator(falling, config=config, params={})
    hook = experimental.stop_if_no_decrease_hook(
        program, "loss", 4, run_every_secs=None, run_every_steps=1
    )
    estimator.train_and_evaluate(
        program,
        estimator.TrainSpec(numbers(20), max_steps=20, hooks=[hook]),
        estimator.EvalSpec(numbers(2), throttle_secs=0),
    )
    # Evaluated after 2, 4 and 6 steps, always with the same loss. The last checkpoint is that of
    # step 6, from before the decision, as in TF 2.15.
    assert int(program.get_variable_value("global_step")) == 6
    assert not program.get_variable_value("signal_early_stopping/STOP")


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match=r"must have type `tf\.estimator\.Estimator`"):
        experimental.make_early_stopping_hook("estimator", lambda: True)


def test_two_intervals_are_refused(model_dir):
    program = estimator.Estimator(falling, model_dir)
    with pytest.raises(ValueError, match="Only one of `run_every_secs` and `run_every_steps`"):
        experimental.make_early_stopping_hook(program, lambda: True, 1, 1)
    with pytest.raises(TypeError, match="must be callable"):
        experimental.make_early_stopping_hook(program, "yes")
