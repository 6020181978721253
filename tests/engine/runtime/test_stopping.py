"""What stops a training from outside, and from inside before its time: signals, ends of input."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading

import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime.interruption import Interruption
from estimator2strategy.errors import ModelDirInUseError
from tests import fresh
from tests.engine.runtime import processes
from tests.engine.runtime.programs import (
    cores_estimator,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1


class Send(tf1.train.SessionRunHook):
    """Sends this process a signal in its third run."""

    def __init__(self, number):
        self._number = number
        self.runs = 0

    def after_run(self, run_context, run_values):
        self.runs += 1
        if self.runs == 3:
            signal.raise_signal(self._number)


class TestSignals:
    def test_ctrl_c_ends_training_after_the_step_and_saves_it(self, model_dir, log):
        model = host_estimator(model_dir)
        with pytest.raises(KeyboardInterrupt):
            model.train(numbers(9), hooks=[Send(signal.SIGINT)])
        assert model.get_variable_value("global_step") == 3
        (message,) = log(logging.WARNING)
        assert message.startswith("Training stopped by SIGINT.")
        assert message.endswith("model.ckpt-3.")

    def test_sigterm_ends_the_process_after_saving(self, model_dir):
        model = host_estimator(model_dir)
        with pytest.raises(SystemExit) as raised:
            model.train(numbers(9), hooks=[Send(signal.SIGTERM)])
        assert raised.value.code == 143
        assert model.get_variable_value("global_step") == 3

    def test_execution_on_cores_is_finished(self, emulated_cores, model_dir):
        emulated_cores(2)
        model = cores_estimator(model_dir, iterations=4)
        with pytest.raises(KeyboardInterrupt):
            model.train(ones, steps=100, hooks=[Send(signal.SIGINT)])
        assert model.get_variable_value("global_step") == 12

    def test_hooks_hear_of_the_end(self, model_dir):
        ended = []

        class End(Send):
            def end(self, session):
                ended.append(self.runs)

        with pytest.raises(KeyboardInterrupt):
            host_estimator(model_dir).train(numbers(9), hooks=[End(signal.SIGINT)])
        assert ended == [3]

    def test_handlers_are_put_back(self, model_dir):
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            host_estimator(model_dir).train(numbers(9), hooks=[Send(signal.SIGINT)])
        host_estimator(model_dir).train(numbers(2))
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before

    def test_handler_of_the_program_stays(self, model_dir):
        heard = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
        try:
            model = host_estimator(model_dir)
            model.train(numbers(9), hooks=[Send(signal.SIGTERM)])
        finally:
            signal.signal(signal.SIGTERM, before)
        assert heard == [signal.SIGTERM]
        assert model.get_variable_value("global_step") == 9

    def test_second_signal_acts_at_once(self):
        passed = []

        def stop_twice():
            with Interruption(same_seconds=0.0) as interruption:
                signal.raise_signal(signal.SIGINT)
                passed.append(interruption.requested)
                signal.raise_signal(signal.SIGINT)
                passed.append("the second")

        with pytest.raises(KeyboardInterrupt):
            stop_twice()
        assert passed == [True]

    def test_signal_that_comes_twice_at_a_time_is_one(self):
        passed = []

        def stop():
            with Interruption():
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                passed.append("both")

        with pytest.raises(KeyboardInterrupt):
            stop()
        assert passed == ["both"]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_second_signal_ends_a_process_that_is_stuck_in_an_execution(self, number):
        environment = {**os.environ, "PYTHONPATH": str(processes.ROOT)}
        process = subprocess.Popen(
            [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, env=environment
        )
        with process:
            process.stdout.readline()
            process.send_signal(number)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            for _ in range(100):  # two that are seen at the same time count as one
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    assert process.wait(timeout=3) == 128 + number
                    break
            else:
                pytest.fail("It has not ended.")

    def test_error_after_a_signal_does_not_hide_the_signal(self, log):
        def fail():
            with Interruption():
                signal.raise_signal(signal.SIGTERM)
                raise ValueError("lost")

        with pytest.raises(SystemExit):
            fail()
        assert "lost" in log(logging.WARNING)[0]

    def test_training_in_another_thread_leaves_signals_alone(self, model_dir):
        errors = []

        def train():
            try:
                host_estimator(model_dir).train(numbers(2))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        assert errors == []

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)]
    )
    def test_process_saves_its_last_step(self, tmp_path, number, code):
        losses = tmp_path / "losses"
        process = processes.start(tmp_path / "model", losses, 100_000, "pause=0.05", "save=1000")
        processes.wait_until(lambda: len(processes.losses_in(losses)) > 3, process)
        process.send_signal(number)
        errors = process.communicate(timeout=300)[1]
        assert process.returncode == code
        done = len(processes.losses_in(losses))
        assert tf.train.latest_checkpoint(tmp_path / "model").endswith(f"model.ckpt-{done}")
        assert f"model.ckpt-{done}.\n" in errors


class TestEndOfInput:
    def test_warning_says_how_many_of_the_steps_were_done(self, model_dir, log):
        host_estimator(model_dir).train(numbers(3))
        host_estimator(model_dir).train(numbers(433), steps=440)
        assert log(logging.WARNING) == [
            "The input ended after 433 steps, at global step 436; 440 were asked for.",
        ]

    def test_input_that_is_as_long_as_wanted_is_no_matter(self, model_dir, log):
        host_estimator(model_dir).train(numbers(3))
        host_estimator(model_dir).train(numbers(3), steps=3)
        assert log(logging.WARNING) == []


class TestModelDir:
    def test_second_training_process_is_refused_by_name(self, tmp_path):
        losses = tmp_path / "losses"
        program = tmp_path / "model", losses, 100_000, "pause=0.05"
        first = processes.start(*program, python=sys.executable)  # it is named by its command
        processes.wait_until(lambda: processes.losses_in(losses), first)
        try:
            model = host_estimator(str(tmp_path / "model"))
            with pytest.raises(ModelDirInUseError, match=rf"process {first.pid} \(.*resumable.py"):
                model.train(numbers(1))
        finally:
            first.kill()
            first.communicate()
        assert tf.train.latest_checkpoint(tmp_path / "model")

    def test_lock_goes_with_the_process_that_is_killed(self, model_dir):
        program = (
            "import os, signal, sys\n"
            "from estimator2strategy.engine.runtime.model_dir import held_for_training\n"
            "with held_for_training(sys.argv[1]):\n"
            "    if not os.fork():\n"
            "        print(flush=True)\n"
            "        signal.pause()\n"
            "    signal.pause()\n"
        )
        command = [sys.executable, "-c", program, model_dir]
        environment = {**os.environ, "PYTHONPATH": str(processes.ROOT)}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        process.stdout.readline()
        try:
            with pytest.raises(ModelDirInUseError):
                host_estimator(model_dir).train(numbers(1))
            process.kill()  # its child lives on
            process.wait()
            host_estimator(model_dir).train(numbers(1))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.stdout.close()

    def test_evaluation_needs_no_lock(self, model_dir):
        seen = []

        class Evaluate(tf1.train.SessionRunHook):
            def end(self, session):
                seen.append(host_estimator(model_dir).evaluate(numbers(2))["global_step"])

        host_estimator(model_dir).train(numbers(1), hooks=[Evaluate()])
        assert seen == [1]

    def test_nothing_is_left_in_the_folder(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None)
        model.train(numbers(1))
        names = [name for name in os.listdir(model_dir) if not name.startswith("events")]
        assert names == []

    def test_folder_that_is_a_file_is_named(self, tmp_path):
        path = tmp_path / "model"
        path.write_text("")
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"model_dir '{path}' cannot"):
            host_estimator(str(path)).train(numbers(1))

    def test_folder_that_cannot_be_written_to_is_named(self):
        with pytest.raises(tf.errors.PermissionDeniedError, match="model_dir '/proc/self' cannot"):
            host_estimator("/proc/self").train(numbers(1))

    def test_graph_beside_a_checkpoint_that_cannot_be_written_is_no_end_of_the_input(
        self, tmp_path
    ):
        result = subprocess.run(
            [fresh.python(), "-c", FULL_DISK, str(tmp_path), "graph"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(processes.ROOT)},
        )
        assert "ResourceExhaustedError: A checkpoint could not be written" in result.stderr
        assert ".meta.tmp" in result.stderr
        assert not list(tmp_path.glob("*.meta.tmp*"))

    def test_file_that_cannot_be_written_is_an_error_and_older_checkpoints_stay(self, tmp_path):
        result = subprocess.run(
            [fresh.python(), "-c", FULL_DISK, str(tmp_path)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(processes.ROOT)},
        )
        assert "ResourceExhaustedError: A checkpoint could not be written" in result.stderr
        assert f"{tmp_path}/model.ckpt-3" in result.stderr
        assert host_estimator(str(tmp_path)).latest_checkpoint() == f"{tmp_path}/model.ckpt-2"


# Python's handlers wait for the one call, as for an execution of TensorFlow's.
STUCK = """
import hashlib
from estimator2strategy.engine.runtime.interruption import Interruption

with Interruption():
    print(flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""

# A file-size limit stands in for a full disk.
FULL_DISK = """
import resource, sys
import tensorflow as tf
from tests.engine.runtime.programs import falling, host_estimator, numbers

def model_fn(features, labels, mode, params):
    if sys.argv[2:] == ["graph"]:
        tf.constant([float(i) for i in range(100_000)])
    else:
        tf.compat.v1.get_variable("large", [100_000])
    return falling(features, labels, mode, params)

host_estimator(sys.argv[1], model_fn).train(numbers(2))

class Limit(tf.compat.v1.train.SessionRunHook):
    def begin(self):
        if sys.argv[2:] == ["graph"]:
            self.before_run(None)

    def before_run(self, run_context):
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

host_estimator(sys.argv[1], model_fn, save_checkpoints_steps=1).train(numbers(9), hooks=[Limit()])
"""
