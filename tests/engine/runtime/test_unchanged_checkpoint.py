"""A training that is resumed leaves the checkpoint that it has restored as it is, if it may."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import cores_estimator, falling, host_estimator, numbers, ones

tf1 = tf.compat.v1


def files_of(model_dir, step):
    """Its files, told from others of their names: whoever writes one makes a new file."""
    found = Path(model_dir).glob(f"model.ckpt-{step}.[di]*")
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def weight_in(model_dir, step):
    return tf.train.load_variable(f"{model_dir}/model.ckpt-{step}", "weight")


def stays(model, input_fn):
    model.train(input_fn, steps=4)
    before = files_of(model.model_dir, 4)
    model.train(input_fn, steps=4)
    return len(before) == 2 and files_of(model.model_dir, 4) == before


def test_its_files_stay_on_one_device(model_dir):
    assert stays(host_estimator(model_dir), numbers(9))


def test_its_files_stay_on_cores(emulated_cores, model_dir):
    emulated_cores(2)
    assert stays(cores_estimator(model_dir), ones)


def test_it_is_listed_and_removed_in_its_turn(model_dir):
    model = host_estimator(model_dir, keep_checkpoint_max=2)
    for steps in (2, 2, 2):
        model.train(numbers(9), steps=steps)
    listed = tf.train.get_checkpoint_state(model_dir).all_model_checkpoint_paths
    assert list(listed) == [f"{model_dir}/model.ckpt-{step}" for step in (4, 6)]
    assert not files_of(model_dir, 2)


def test_a_listener_is_told_of_it_as_ever(model_dir):
    told = []

    class Listener(tf1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            told.append(global_step_value)

    model = host_estimator(model_dir)
    model.train(numbers(9), steps=2)
    model.train(numbers(9), steps=2, saving_listeners=[Listener()])
    assert told == [2, 4]


def test_what_a_listener_assigns_before_it_is_written(model_dir):
    class Listener(tf1.train.CheckpointSaverListener):
        def begin(self):
            (weight,) = (v for v in tf1.global_variables() if v.op.name == "weight")
            self._assign = tf1.assign(weight, 100.0)

        def before_save(self, session, global_step_value):
            if global_step_value == 2:
                session.run(self._assign)

    model = host_estimator(model_dir)
    model.train(numbers(9), steps=2)
    model.train(numbers(9), steps=1, saving_listeners=[Listener()])
    assert (weight_in(model_dir, 2), weight_in(model_dir, 3)) == (100.0, 99.0)


def test_what_a_local_init_op_assigns_is_written(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        (weight,) = (v for v in tf1.global_variables() if v.op.name == "weight")
        with tf.control_dependencies([tf1.train.Scaffold.default_local_init_op()]):
            scaffold = tf1.train.Scaffold(local_init_op=tf1.assign(weight, 100.0).op)
        return spec._replace(scaffold=scaffold)

    host_estimator(model_dir).train(numbers(9), steps=2)
    host_estimator(model_dir, model_fn).train(numbers(9), steps=1)
    assert weight_in(model_dir, 2) == 100.0


def test_one_with_more_variables_is_written(model_dir):
    def model_fn(features, labels, mode, params):
        if params["more"]:
            tf1.get_variable("more", [], initializer=tf1.zeros_initializer())
        return falling(features, labels, mode, params)

    host_estimator(model_dir, model_fn, {"more": True}).train(numbers(9), steps=2)
    host_estimator(model_dir, model_fn, {"more": False}).train(numbers(9), steps=1)
    names = dict(tf.train.list_variables(f"{model_dir}/model.ckpt-2"))
    assert set(names) == {"global_step", "weight"}


def test_the_first_of_another_folder_is_written(model_dir, tmp_path):
    """A warm start restores nothing of its own folder, so all of it is new there."""
    host_estimator(model_dir).train(numbers(9), steps=2)
    warm = estimator.Estimator(
        falling, str(tmp_path / "warm"), params={}, warm_start_from=model_dir
    )
    warm.train(numbers(9), steps=1)
    assert len(files_of(tmp_path / "warm", 0)) == 2
