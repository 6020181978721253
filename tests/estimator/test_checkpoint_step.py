"""`make_stop_at_checkpoint_step_hook`: which process stops when."""

from __future__ import annotations

import shutil

import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import host_estimator, numbers

tf1 = tf.compat.v1
make_hook = estimator.experimental.make_stop_at_checkpoint_step_hook


def test_the_chief_stops_by_itself(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(9), hooks=[make_hook(model, 5)])
    assert model.get_variable_value("global_step") == 5


def test_another_goes_on_until_the_checkpoint_is_there(model_dir, tmp_path):
    model = host_estimator(model_dir)
    model._config._is_chief = False  # as TF_CONFIG says to a worker
    chief = host_estimator(str(tmp_path / "chief"))
    chief.train(numbers(9), steps=4)
    seen = []

    class Watch(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append(int(run_context.session.run(tf1.train.get_global_step())))
            if seen[-1] == 6:
                shutil.copytree(chief.model_dir, model_dir, dirs_exist_ok=True)

    model.train(numbers(9), hooks=[Watch(), make_hook(model, 4, 0.01)])
    assert seen == [1, 2, 3, 4, 5, 6]
