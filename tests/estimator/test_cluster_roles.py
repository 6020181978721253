"""`TF_CONFIG`: what each process of a cluster does, and which clusters are refused."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf115
from estimator2strategy import estimator
from estimator2strategy.engine.runtime.liveness import can_be_reached
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.cluster import over_parameter_servers, worker_of
from tests import addresses, fresh
from tests.engine.runtime.programs import falling, host_estimator, numbers
from tests.estimator import workers_program
from tests.estimator.test_train_and_evaluate import steps_evaluated
from tests.strategies import mirrored

tf1 = tf.compat.v1

CLUSTER = {"chief": ["host0:1"], "worker": ["host1:1", "host2:1"], "ps": ["host3:1"]}


WITHOUT_SERVERS = {job: CLUSTER[job] for job in ("chief", "worker")}


@pytest.fixture
def task(monkeypatch):
    """`task("chief", 0, cluster)` makes this process a task of the cluster."""

    def become(job, index=0, cluster=CLUSTER):
        tf_config = {"cluster": cluster, "task": {"type": job, "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))

    return become


def train_and_evaluate(model):
    return estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(numbers(9), max_steps=2),
        estimator.EvalSpec(numbers(2), start_delay_secs=0, throttle_secs=0),
    )


class TestWithoutATask:
    """TF 1.15 and 2.15 give such a process the config of one that is alone."""

    @pytest.fixture(params=[{}, {"task": {}}])
    def tf_config(self, monkeypatch, request):
        cluster = {"chief": ["host0:1"], "worker": ["host1:1"]}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, **request.param}))

    def test_a_config_with_a_strategy_is_that_of_one_process(self, tf_config):
        config = estimator.RunConfig(train_distribute=mirrored(1))
        place = (config.task_type, config.task_id, config.is_chief, config.num_worker_replicas)
        assert place == ("worker", 0, True, 1)

    def test_training_says_what_is_missing(self, tf_config, model_dir):
        model = host_estimator(model_dir, train_distribute=mirrored(1))
        with pytest.raises(ValueError, match=r"names 2 processes(.|\n)*Add a task"):
            model.train(numbers(1))

    def test_a_config_without_a_strategy_is_refused(self, tf_config):
        with pytest.raises(ValueError, match="task type must be set"):
            estimator.RunConfig()


def test_specs_are_checked_before_the_task_of_an_evaluator(task, model_dir):
    task("evaluator", 1)
    model = host_estimator(model_dir)
    with pytest.raises(TypeError, match="`train_spec` must have type"):
        estimator.train_and_evaluate(model, 1, estimator.EvalSpec(numbers(2)))
    with pytest.raises(ValueError, match="only be one `evaluator`"):
        train_and_evaluate(model)


class TestRefused:
    @pytest.mark.parametrize("job", ["chief", "worker"])
    def test_workers_without_parameter_servers_name_the_way_out(self, task, model_dir, job):
        task(job, 0, WITHOUT_SERVERS)
        model = host_estimator(model_dir)
        with pytest.raises(UnsupportedError, match="each worker would train a model of") as error:
            train_and_evaluate(model)
        assert "3 workers, the chief included" in str(error.value)
        assert not tf.io.gfile.exists(model_dir)

    def test_so_does_train_by_itself(self, task, model_dir):
        task("worker", 0, WITHOUT_SERVERS)
        with pytest.raises(UnsupportedError, match="one process with all the devices"):
            host_estimator(model_dir).train(numbers(2))

    def test_a_strategy_that_does_not_span_the_processes(self, task, model_dir):
        task("chief")
        model = host_estimator(model_dir, train_distribute=mirrored(2))
        with pytest.raises(UnsupportedError, match="spans the devices of one process"):
            train_and_evaluate(model)
        assert not tf.io.gfile.exists(model_dir)

    def test_a_remote_cluster_that_one_process_was_to_drive(self, model_dir):
        class DistributeConfig(NamedTuple):
            train_distribute: Any
            eval_distribute: Any
            remote_cluster: Any

        distribute = DistributeConfig(mirrored(2), None, {"worker": ["host0:1", "host1:1"]})
        model = host_estimator(model_dir, experimental_distribute=distribute)
        with pytest.raises(
            UnsupportedError, match=r"(?s)remote_cluster is .*host0:1.* with TF_CONFIG"
        ):
            train_and_evaluate(model)
        assert not tf.io.gfile.exists(model_dir)

    def test_a_second_evaluator(self, task, model_dir):
        task("evaluator", 1)
        with pytest.raises(ValueError, match="only be one `evaluator` task"):
            train_and_evaluate(host_estimator(model_dir))

    def test_an_evaluator_ends_when_a_listener_says_so(self, task, model_dir):
        class Ends(tf115.python.estimator.training._ContinuousEvalListener):
            def after_eval(self, eval_result):
                assert eval_result == ("missing checkpoint", None, None)
                return False

        task("evaluator")
        specs = estimator.TrainSpec(numbers(2)), estimator.EvalSpec(numbers(2), start_delay_secs=0)
        executor = tf115.python.estimator.training._TrainingExecutor(
            host_estimator(model_dir), *specs, continuous_eval_listener=Ends()
        )
        assert executor.run() is None

    def test_train_as_evaluator_names_train_and_evaluate(self, task, model_dir):
        task("evaluator")
        with pytest.raises(ValueError, match="train_and_evaluate"):
            host_estimator(model_dir).train(numbers(2))

    @pytest.mark.parametrize(
        ("job", "message"),
        [
            (None, "must have task_type set"),
            ("local", "`task.type` in TF_CONFIG cannot be `local`"),
            ("boss", "Task type boss is not supported. Supported task types are"),
        ],
    )
    def test_a_task_that_there_is_not(self, task, model_dir, job, message):
        task("chief", 0, {"chief": ["host0:1"]})
        model = host_estimator(model_dir)
        model._config._task_type = job  # as a subclass of RunConfig may say
        with pytest.raises(ValueError, match=message):
            train_and_evaluate(model)

    @pytest.mark.parametrize(
        ("setting", "value", "lacking"),
        [
            ("_cluster_spec", None, "cluster_spec, task_type, and task"),
            ("_master", "", "master"),
        ],
    )
    @pytest.mark.parametrize("job", ["chief", "worker", "ps"])
    def test_a_config_without_what_a_server_needs(
        self, task, model_dir, job, setting, value, lacking
    ):
        task(job, 0, {"chief": ["host0:1"], "worker": ["host1:1"], "ps": ["host2:1"]})
        model = host_estimator(model_dir)
        setattr(model._config, setting, value)  # as a subclass of RunConfig may say
        specs = estimator.TrainSpec(numbers(2)), estimator.EvalSpec(numbers(2))
        executor = tf115.python.estimator.training._TrainingExecutor(model, *specs)
        with pytest.raises(RuntimeError, match=f"be sure to specify {lacking} in RunConfig"):
            getattr(executor, f"run_{job}")()

    def test_a_task_of_a_subclass_is_its_method(self, task, model_dir):
        class Executor(tf115.python.estimator.training._TrainingExecutor):
            def run_boss(self):
                self.ran = True

        task("chief", 0, {"chief": ["host0:1"]})
        model = host_estimator(model_dir)
        model._config._task_type = "boss"
        executor = Executor(model, estimator.TrainSpec(numbers(2)), eval_spec=None)
        assert executor.run() is None
        assert executor.ran


@pytest.mark.parametrize(
    ("cluster", "numbers_of_workers"),
    [
        ({"chief": ["a:1"], "worker": ["b:1", "c:1"]}, [1, 2]),
        ({"chief": ["a:1"], "evaluator": ["e:1"], "worker": ["b:1", "c:1"]}, [1, 2]),
        ({"evaluator": ["e:1"], "worker": ["b:1", "c:1"]}, [0, 1]),
    ],
)
def test_processes_in_step_are_numbered_whatever_other_jobs_there_are(
    task, cluster, numbers_of_workers
):
    found = []
    for index in range(2):
        task("worker", index, cluster)
        config = estimator.RunConfig(train_distribute=mirrored(1))
        found.append(worker_of(config, config.train_distribute).number)
    assert found == numbers_of_workers


class TestStrategyOfServers:
    @pytest.fixture
    def strategy(self, task):
        def for_cluster(**more):
            task("worker", 0, {job: CLUSTER[job] for job in ("worker", "ps")} | more)
            return tf1.distribute.experimental.ParameterServerStrategy(
                tf.distribute.cluster_resolver.TFConfigClusterResolver()
            )

        return for_cluster

    def test_means_a_cluster_with_parameter_servers(self, strategy):
        config = estimator.RunConfig(train_distribute=strategy(chief=["host0:1"]))
        assert over_parameter_servers(config, config.train_distribute)
        assert (config.task_type, config.is_chief) == ("worker", False)

    def test_makes_the_first_worker_the_chief_where_there_is_none(self, strategy):
        config = estimator.RunConfig(train_distribute=strategy())
        assert config.is_chief
        assert list(config.session_config.device_filters) == ["/job:ps", "/job:worker/task:0"]


def test_the_strategy_of_an_estimator_needs_no_server(task, model_dir):
    with addresses.held(1) as (address,):
        task("chief", 0, {"chief": [address], "ps": ["host1:1"]})
        model = estimator.Estimator(
            falling, config=estimator.RunConfig(model_dir=model_dir), strategy=mirrored(1)
        )
        train_and_evaluate(model)
        assert model.get_variable_value("global_step") == 2
        assert not can_be_reached(address)


class TestOneTrainer:
    def test_a_lone_chief_trains_and_leaves_evaluation_to_another(self, task, model_dir):
        task("chief", 0, {"chief": ["host0:1"]})
        model = host_estimator(model_dir)
        assert train_and_evaluate(model) is None
        assert model.get_variable_value("global_step") == 2
        assert not tf.io.gfile.exists(model.eval_dir())

    def test_a_master_trains_and_evaluates(self, task, model_dir):
        task("master", 0, {"master": ["host0:1"]})
        model = host_estimator(model_dir)
        assert train_and_evaluate(model) is None
        assert tf.io.gfile.glob(f"{model.eval_dir()}/*tfevents*")

    def test_an_evaluator_ends_with_the_checkpoint_of_the_last_step(self, task, model_dir):
        host_estimator(model_dir).train(numbers(2))
        task("evaluator")
        model = host_estimator(model_dir)
        assert train_and_evaluate(model) is None
        assert tf.io.gfile.glob(f"{model.eval_dir()}/*tfevents*")

    def test_an_evaluator_may_have_several_devices(self, task, model_dir):
        host_estimator(model_dir).train(numbers(2))
        task("evaluator")
        model = host_estimator(model_dir, eval_distribute=mirrored(2))
        batches = numbers(3)  # the second replica has none at its second step
        estimator.train_and_evaluate(
            model,
            estimator.TrainSpec(numbers(9), max_steps=2),
            estimator.EvalSpec(batches, start_delay_secs=0, throttle_secs=0),
        )
        assert steps_evaluated(model_dir) == {2: 2.0}

    def test_an_evaluator_waits_before_it_starts(self, task, model_dir):
        host_estimator(model_dir).train(numbers(1))
        task("evaluator")
        spec = estimator.EvalSpec(numbers(2), start_delay_secs=1)
        started = time.monotonic()
        estimator.train_and_evaluate(
            host_estimator(model_dir), estimator.TrainSpec(numbers(9), max_steps=1), spec
        )
        assert time.monotonic() - started > 1


# What each process of the cluster runs. The chief's input is slow, so that the evaluator sees more
# than one checkpoint.
PROGRAM = """
import json, sys, time
import tensorflow as tf
from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator, numbers

def slow():
    def wait(x):
        time.sleep(0.3)
        return x
    return numbers(99)().map(lambda x: tf.ensure_shape(tf.numpy_function(wait, [x], x.dtype), [1]))

class Exports(estimator.Exporter):
    name = "exports"
    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        print("EXPORT", json.dumps([int(eval_result["global_step"]), is_the_final_export]))

model = host_estimator(sys.argv[1], save_checkpoints_steps=5)
result = estimator.train_and_evaluate(
    model,
    estimator.TrainSpec(slow, max_steps=30),
    estimator.EvalSpec(numbers(3), start_delay_secs=0, throttle_secs=1, exporters=Exports()),
)
assert result is None
print("DONE", model.config.task_type, model.config.is_chief)
"""


# Trains on batches of 2 from its part of four examples, and prints what hooks see.
WORKER = """
import json, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from estimator2strategy import estimator
from tests.estimator import workers_program
workers_program.train(sys.argv[1], strategy)
"""


def start(job, cluster, model_dir, program=None):
    """A process that is a task of the cluster."""
    tf_config = {"cluster": cluster, "task": {"type": job, "index": 0}}
    root = str(pathlib.Path(__file__).parents[2])
    environment = {**os.environ, "TF_CONFIG": json.dumps(tf_config), "PYTHONPATH": root}
    return subprocess.Popen(
        [fresh.python(), "-c", program or PROGRAM, model_dir],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
class TestProcesses:
    def test_the_evaluator_follows_the_chief_to_the_last_step(self, model_dir):
        cluster = {"chief": ["localhost:1"]}
        processes = {job: start(job, cluster, model_dir) for job in ("evaluator", "chief")}
        outputs = {job: process.communicate(timeout=300) for job, process in processes.items()}
        for job, process in processes.items():
            assert process.returncode == 0, outputs[job][1]
        printed = {job: output.splitlines() for job, (output, _) in outputs.items()}
        assert printed["chief"] == ["DONE chief True"]
        *exports, done = printed["evaluator"]
        assert done == "DONE evaluator False"
        calls = [json.loads(line.removeprefix("EXPORT ")) for line in exports]
        steps = [step for step, _ in calls]
        assert len(steps) > 1
        assert steps == sorted(set(steps))
        assert [final for _, final in calls] == [False] * (len(calls) - 1) + [True]
        assert steps[-1] == 30
        evaluated = steps_evaluated(model_dir)
        assert list(evaluated) == steps
        assert set(evaluated.values()) == {2.0}

    def test_workers_train_as_one_process_with_all_their_input(self, tmp_path, capsys):
        """Four examples in one process, and two in each of two: mean losses, the same weights."""
        workers_program.train(str(tmp_path / "alone"))
        expected = json.loads(capsys.readouterr().out)
        model_dir = str(tmp_path / "model")
        with addresses.held(2) as (chief, worker):
            cluster = {"chief": [chief], "worker": [worker]}
            processes = [start(job, cluster, model_dir, WORKER) for job in cluster]
            outputs = [process.communicate(timeout=300) for process in processes]
        for process, (_, error) in zip(processes, outputs, strict=True):
            assert process.returncode == 0, error
        of_chief, of_worker = (json.loads(output) for output, _ in outputs)
        # The worker has started with the chief's weights, and kept them all the way.
        assert of_chief == of_worker
        np.testing.assert_allclose(of_chief["losses"], expected["losses"], rtol=1e-6)
        np.testing.assert_allclose(of_chief["weights"], expected["weights"], rtol=1e-6)
        assert len(tf.io.gfile.glob(f"{model_dir}/*tfevents*")) == 1
        assert tf.train.latest_checkpoint(model_dir).endswith("model.ckpt-8")

    def test_a_parameter_server_without_workers_waits(self, model_dir):
        with addresses.held(1) as hosts:
            process = start("ps", {"chief": ["localhost:1"], "ps": hosts}, model_dir)
            try:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(timeout=25)
            finally:
                process.kill()
        assert "Error" not in process.communicate()[1]


def test_a_loop_over_checkpoints_evaluates_each(model_dir):
    """Continuous evaluation as programs wrote it before `train_and_evaluate`."""
    model = host_estimator(model_dir)
    seen = []

    def train_on():
        model.train(numbers(9), steps=2)
        return len(seen) == 3  # True ends the loop

    paths = tf1.train.checkpoints_iterator(
        model_dir, timeout=0.1, min_interval_secs=0, timeout_fn=train_on
    )
    for path in paths:
        results = model.evaluate(numbers(3), checkpoint_path=path, name="continuous")
        seen.append(int(results["global_step"]))
    assert seen == [2, 4, 6]
    assert list(steps_evaluated(model_dir, "eval_continuous")) == seen
