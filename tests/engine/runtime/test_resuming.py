"""A training that was interrupted goes on as if it had not been."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.input_position import InputPosition, PositionListener
from estimator2strategy.engine.runtime.requested_job import RUNTIME_VARIABLE
from tests.engine.runtime import processes
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    host_estimator,
    numbers,
)
from tests.hooks import LossRecorder
from tests.programs import resumable

tf1 = tf.compat.v1
GOLDEN = Path(__file__).parents[2] / "goldens" / "resumable.json"


class FailAt(tf1.train.SessionRunHook):
    """Ends a training as an error does, in a run after some others."""

    def __init__(self, run):
        self._left = run

    def before_run(self, run_context):
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("as asked")


class Interrupt(tf1.train.SessionRunHook):
    """Presses Ctrl-C in a run after some others."""

    def __init__(self, run):
        self._left = run

    def after_run(self, run_context, run_values):
        self._left -= 1
        if self._left == 0:
            signal.raise_signal(signal.SIGINT)


def interrupted(model, input_fn, run, **kwargs):
    with pytest.raises(RuntimeError, match="as asked"):
        model.train(input_fn, hooks=[FailAt(run)], **kwargs)


def losses_of(model, input_fn, **kwargs):
    recorder = LossRecorder()
    model.train(input_fn, hooks=[recorder], **kwargs)
    return recorder.losses


def positions(model_dir):
    return sorted(path.name.split(".")[0] for path in Path(model_dir).glob("input_position-*"))


def test_losses_are_those_of_the_real_estimator(tmp_path):
    resumable.main(tmp_path / "model", tmp_path / "losses", 30)
    golden = json.loads(GOLDEN.read_text())["losses"]
    lines = (tmp_path / "losses").read_text().splitlines()
    losses = [float.fromhex(line.split()[1]) for line in lines]
    assert losses == pytest.approx(golden, rel=1e-5)


def test_it_goes_on_under_the_other_runtime(tmp_path, jax_devices, monkeypatch):
    jax_devices(1)
    for interrupted_at, runtime in ((8, "jax"), (19, "tensorflow"), (None, "jax")):
        monkeypatch.setenv(RUNTIME_VARIABLE, runtime)
        monkeypatch.setattr(resumable, "Losses", functools.partial(LossesUntil, interrupted_at))
        interruption = pytest.raises(RuntimeError) if interrupted_at else contextlib.nullcontext()
        with interruption:
            resumable.main(tmp_path / "model", tmp_path / "losses", 30)
    losses = processes.losses_in(tmp_path / "losses")
    golden = json.loads(GOLDEN.read_text())["losses"]
    assert [float.fromhex(losses[step]) for step in range(30)] == pytest.approx(golden, rel=1e-5)


class LossesUntil(resumable.Losses):
    """Writes down the losses, and ends the training as an error does after a step."""

    def __init__(self, last, path):
        super().__init__(path)
        self._last = last

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)
        if run_values.results[0] == self._last:
            raise RuntimeError("as asked")


@pytest.mark.slow
def test_process_killed_at_any_moment_goes_on_bit_for_bit(tmp_path):
    moments = random.Random(0)
    uninterrupted, losses = tmp_path / "uninterrupted", tmp_path / "losses"
    resumable.main(tmp_path / "whole", uninterrupted, 400)
    program = tmp_path / "model", losses, 400, "save=2"  # so that it saves most of the time
    for kill in range(20):
        process = processes.start(*program)
        started = time.monotonic()
        before = len(losses.read_text().splitlines()) if losses.exists() else 0
        if kill % 5 == 4:  # while it starts, records, restores
            time.sleep(moments.uniform(0, 1.5))
        else:
            steps = min(before + moments.randrange(1, 15), 370)  # it must not end by itself
            processes.wait_until(lambda: count(losses) >= steps, process)  # noqa: B023
            time.sleep(moments.uniform(0, 0.1))
        process.kill()
        process.communicate()
        done = max(processes.losses_in(losses), default=None)
        print(f"Killed after {time.monotonic() - started:.2f} s, the last step was {done}.")
    last = processes.start(*program)
    errors = last.communicate()[1]
    assert last.returncode == 0, errors
    # A kill may keep a step that was saved from being written down, but none has another loss.
    written = set(losses.read_text().splitlines())
    expected = set(uninterrupted.read_text().splitlines())
    assert written <= expected
    assert len(expected - written) <= 20
    assert_same_variables(tmp_path / "model", tmp_path / "whole")
    assert positions(tmp_path / "model") == []


def assert_same_variables(folder, other):
    variables = tf.train.list_variables(folder)
    assert variables == tf.train.list_variables(other)
    for name, _ in variables:
        values = (tf.train.load_variable(path, name) for path in (folder, other))
        np.testing.assert_array_equal(*values)


def count(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


class TestWhenTheInputGoesOn:
    def test_after_an_error(self, model_dir, log):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, numbers(9), run=6)
        assert losses_of(model, numbers(9)) == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        assert any("The input goes on from" in line for line in log())

    def test_after_a_damaged_checkpoint_from_the_one_before(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=2)
        interrupted(model, numbers(9), run=6)  # saved 0, 2, 4
        Path(model_dir, "model.ckpt-4.index").write_bytes(b"")
        assert losses_of(model, numbers(9)) == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]

    def test_when_the_training_was_killed_before_the_file_had_its_name(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, numbers(9), run=6)
        (path,) = Path(model_dir).glob("input_position-3.*")
        path.rename(path.with_suffix(".pending"))
        assert losses_of(model, numbers(9))[0] == 4.0

    def test_on_cores(self, emulated_cores, model_dir):
        emulated_cores(2)

        def input_fn(params):
            return numbers(99)().unbatch().batch(params["batch_size"], drop_remainder=True)

        model = cores_estimator(model_dir, iterations=2)
        whole = losses_of(model, input_fn, steps=8)
        model = cores_estimator(f"{model_dir}_2", iterations=2)
        with pytest.raises(KeyboardInterrupt):
            model.train(input_fn, hooks=[Interrupt(2)], steps=8)
        assert losses_of(model, input_fn, max_steps=8) == whole[2:]

    def test_shuffled_input_in_the_same_order(self, model_dir, tmp_path):
        def input_fn():
            return numbers(40)().shuffle(20)  # without a seed

        model = host_estimator(model_dir, save_checkpoints_steps=3)
        seen = LossRecorder()
        with pytest.raises(RuntimeError):
            model.train(input_fn, hooks=[seen, FailAt(4)])
        rest = losses_of(model, input_fn)
        assert sorted(seen.losses + rest) == list(range(1, 41))

    def test_random_numbers_go_on_too(self, model_dir):
        def noise():
            return tf1.random_uniform([1], seed=1)

        whole = losses_of(host_estimator(f"{model_dir}_whole"), noise, steps=6)
        model = host_estimator(model_dir, save_checkpoints_steps=2)
        interrupted(model, noise, run=6, steps=6)
        assert losses_of(model, noise, max_steps=6) == whole[4:]


def jittered():
    return numbers(20)().map(lambda x: x + tf1.random_uniform([], seed=1))


def jittered_with_kept_seeds():
    seeds = tf.data.Dataset.random(seed=3).batch(2)

    def jitter(x, seed):
        return x + tf.random.stateless_uniform([], tf.cast(seed, tf.int32))

    return tf.data.Dataset.zip((numbers(20)(), seeds)).map(jitter)


class TestRandomOpsOfTheInput:
    def test_are_warned_of_with_their_line_when_they_begin_anew(self, model_dir, log):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, jittered, run=6)
        assert not any("begin their numbers anew" in line for line in log())
        rest = losses_of(model, jittered)
        assert int(rest[0]) == 4  # the next example, with the first random number again
        (message,) = (line for line in log() if "begin their numbers anew" in line)
        line = jittered.__code__.co_firstlineno + 1
        assert f"At {__file__}:{line}: return numbers(20)()" in message

    def test_go_on_where_their_seeds_are_of_the_dataset(self, model_dir, log):
        whole = losses_of(host_estimator(f"{model_dir}_whole"), jittered_with_kept_seeds)
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, jittered_with_kept_seeds, run=6)
        assert losses_of(model, jittered_with_kept_seeds) == whole[3:]
        assert not any("begin their numbers anew" in line for line in log())


class TestWhenTheInputStartsAnew:
    def test_in_the_next_training_after_one_that_ended_by_itself(self, model_dir, log):
        model = host_estimator(model_dir, save_checkpoints_steps=2)
        model.train(numbers(9), steps=3)
        assert losses_of(model, numbers(9), steps=2) == [1.0, 2.0]
        assert not any("input" in line and "Calling" not in line for line in log())
        assert positions(model_dir) == []

    def test_where_it_is_asked_for(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, numbers(9), run=6)
        config = estimator.RunConfig(model_dir=model_dir)
        options = estimator.TrainingOptions(resume_input=False)
        anew = estimator.Estimator(falling, config=config, params={}, options=options)
        assert losses_of(anew, numbers(9), steps=1) == [1.0]

    def test_where_the_program_makes_another_input(self, model_dir, log):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, numbers(9), run=6)
        assert losses_of(model, numbers(8), steps=1) == [1.0]
        assert any("the program makes its input otherwise now" in line for line in log())

    def test_where_a_dataset_cannot_say_where_it_is(self, model_dir, log):
        def generated():
            return tf.data.Dataset.from_generator(
                lambda: iter([1.0, 2.0, 3.0, 4.0]), tf.float32, []
            ).batch(1)

        model = host_estimator(model_dir, save_checkpoints_steps=2)
        interrupted(model, generated, run=4)
        assert losses_of(model, generated, steps=1) == [1.0]
        (message,) = {line for line in log() if "position of the input" in line}
        assert message.endswith("anew: GeneratorDataset does not support checkpointing.")

    def test_where_the_checkpoint_is_not_the_one_that_it_belongs_to(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=3)
        interrupted(model, numbers(9), run=6)
        other = host_estimator(f"{model_dir}_other", save_checkpoints_steps=3)
        interrupted(other, lambda: numbers(9)().map(lambda x: x + 1), run=6)
        for path in Path(other.model_dir).glob("model.ckpt-3.*"):
            path.replace(Path(model_dir, path.name))
        assert losses_of(model, numbers(9), steps=1) == [1.0]


class TestFiles:
    def test_position_goes_with_its_checkpoint(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=2, keep_checkpoint_max=2)
        interrupted(model, numbers(20), run=10)  # saved 0, 2, 4, 6, 8
        assert positions(model_dir) == ["input_position-6", "input_position-8"]

    def test_checkpoint_has_nothing_of_it(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=2)
        interrupted(model, numbers(9), run=6)
        assert sorted(model.get_variable_names()) == ["global_step", "weight"]

    def test_what_is_shuffled_must_not_be_huge(self, model_dir, log):
        def input_fn():
            noise = np.random.RandomState(0).uniform(size=[50, 1000]).astype("float32")
            return tf.data.Dataset.from_tensor_slices(noise).shuffle(50).repeat()

        position = InputPosition(model_dir, most_bytes=1000)
        options = estimator.TrainingOptions(resume_input=False)  # which has one of its own
        config = estimator.RunConfig(model_dir, save_checkpoints_steps=2)
        model = estimator.Estimator(falling, config=config, params={}, options=options)
        with pytest.raises(RuntimeError, match="as asked"):
            model.train(
                input_fn,
                hooks=[position, FailAt(4)],
                saving_listeners=[PositionListener(position)],
            )
        assert positions(model_dir) == []
        assert any("mostly for what is being shuffled" in line for line in log())
