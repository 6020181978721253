"""How programs reach a TPU: found, connected to, and started once, from wherever they ask."""

from __future__ import annotations

import socket
import threading

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as legacy
from estimator2strategy import estimator
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import devices, tpu_system
from estimator2strategy.engine.runtime import requested_strategy as strategies
from estimator2strategy.errors import DeviceError
from tests.rehearsal import Resolver, rehearsal

pytestmark = pytest.mark.oldest

tf1 = tf.compat.v1
tpu = estimator.tpu
V1Strategy = tf1.distribute.experimental.TPUStrategy


class ReachedError(Exception):
    """model_fn was called."""


def model_fn(features, labels, mode, params):
    raise ReachedError(params["context"].num_replicas)


def input_fn(params):
    batch = (tf.zeros([params["batch_size"], 2]), tf.zeros([params["batch_size"], 1]))
    return tf.data.Dataset.from_tensors(batch).repeat()


def make(model_dir, **config):
    sizes = {f"{mode}_batch_size": 8 for mode in ("train", "eval", "predict")}
    config = tpu.RunConfig(model_dir=model_dir, **config)
    return tpu.TPUEstimator(model_fn, config=config, **sizes)


def train(model):
    model.train(input_fn, max_steps=1)


def train_for_steps(model):
    model.train(input_fn, steps=1)


def evaluate(model):
    model.evaluate(input_fn, steps=1)


def predict(model):
    next(model.predict(input_fn))


def train_and_evaluate(model):
    train_spec = estimator.TrainSpec(input_fn, max_steps=1)
    estimator.train_and_evaluate(model, train_spec, estimator.EvalSpec(input_fn, steps=1))


@pytest.fixture
def vm():
    with rehearsal(cores_per_host=8) as runtime:
        yield runtime


every_call = pytest.mark.parametrize(
    "call", [train, train_for_steps, evaluate, predict, train_and_evaluate]
)


@every_call
@pytest.mark.evidence("door", "rehearsed")
def test_a_resolver_leads_to_all_cores(vm, model_dir, call):
    with pytest.raises(ReachedError, match="8"):
        call(make(model_dir, cluster=vm.resolver()))
    assert (vm.connected, vm.started) == (1, 1)


@every_call
def test_a_tpu_that_has_no_name_is_this_machines(vm, model_dir, call):
    with pytest.raises(ReachedError, match="8"):
        call(make(model_dir))
    assert vm.started == 1


@pytest.mark.evidence("door", "rehearsed")
@pytest.mark.evidence("hosts", "rehearsed")
def test_an_address_leads_to_all_hosts(model_dir):
    with rehearsal(num_hosts=2, cores_per_host=4) as pod:
        with pytest.raises(ReachedError, match="8"):
            train(make(model_dir, master=pod.name))
        assert (pod.connected, pod.started) == (1, 1)


def test_all_estimators_share_one_start(vm, tmp_path):
    for name, cluster in {"a": vm.resolver(), "b": vm.resolver(), "c": None}.items():
        model = make(str(tmp_path / name), cluster=cluster)
        for call in (train, evaluate, predict):
            with pytest.raises(ReachedError):
                call(model)
    assert vm.started == 1


def test_threads_share_one_start(vm):
    threads = [threading.Thread(target=tpu_system.start, args=[vm.resolver()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vm.started == 1


def test_a_system_that_the_program_started_stays_as_it_is(vm, model_dir):
    resolver = vm.resolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    for model in (make(model_dir, cluster=resolver), make(model_dir, train_distribute=strategy)):
        with pytest.raises(ReachedError):
            train(model)
    assert (vm.connected, vm.started) == (1, 1)


@pytest.mark.evidence("door", "rehearsed")
def test_a_system_that_was_shut_down_is_started_again(vm):
    tpu_system.start(vm.resolver())
    tf.tpu.experimental.shutdown_tpu_system(vm.resolver())
    tpu_system.start(vm.resolver())
    assert vm.started == 2


def test_every_resolver_of_a_tpu_knows_its_topology(vm):
    first, second = vm.resolver(), vm.resolver()
    assert tpu_system.start(first) is tpu_system.start(second)
    assert second._tpu_topology == first._tpu_topology is not None


def test_the_default_device_stays_this_process(model_dir):
    with rehearsal(num_hosts=2, cores_per_host=4) as pod:
        tpu_system.start(pod.resolver())
        assert "job:worker" not in tf.constant(0).device


# Strategies that programs make.


@pytest.fixture(params=["TF 2", "TF 2.0", "TF 1"])
def strategy(vm, request):
    classes = {
        "TF 2": tf.distribute.TPUStrategy,
        "TF 2.0": tf.distribute.experimental.TPUStrategy,
        "TF 1": V1Strategy,
    }
    return classes[request.param](vm.resolver())


def test_each_class_is_a_tpus(strategy):
    assert is_tpu(strategy)


def test_a_strategy_is_started_by_the_estimator_that_trains_on_it(vm, strategy, model_dir):
    def of_a_replica(features, labels, mode):
        raise ReachedError

    config = estimator.RunConfig(model_dir, train_distribute=strategy, eval_distribute=strategy)
    model = estimator.Estimator(of_a_replica, config=config)
    batches = lambda: input_fn({"batch_size": 8})  # noqa: E731
    with pytest.raises(ReachedError):
        model.train(batches, max_steps=1)
    with pytest.raises(ReachedError):
        model.evaluate(batches, steps=1)
    assert vm.started == 1


def test_the_strategy_of_the_command_line_is_the_tpus(vm, model_dir, monkeypatch):
    monkeypatch.setenv(strategies.VARIABLE, "tpu")
    strategies._make.cache_clear()
    with tf.Graph().as_default():
        config = estimator.RunConfig(model_dir)
    assert is_tpu(config.train_distribute)
    assert config.train_distribute.num_replicas_in_sync == 8
    with pytest.raises(ReachedError):
        train(make(model_dir))
    assert vm.started == 1
    strategies._make.cache_clear()


# Programs of TF 1.15.

Found = legacy.distribute.cluster_resolver.TPUClusterResolver
of_this_machine = pytest.mark.parametrize("arguments", [(), (None,), ("",), ([""],), ("local",)])


@of_this_machine
def test_todays_strategy_takes_the_resolver_of_tf_1(vm, arguments):
    resolver = Found(*arguments)
    assert isinstance(resolver, Resolver)
    assert tf.distribute.TPUStrategy(resolver).num_replicas_in_sync == 8


def test_todays_strategy_takes_the_resolver_of_a_pod():
    with rehearsal(num_hosts=2, cores_per_host=4) as pod:
        resolver = legacy.contrib.cluster_resolver.TPUClusterResolver([pod.name], job_name="pod")
        tpu_system.start(resolver)
        assert resolver.get_job_name() == "pod"
        assert tf.distribute.TPUStrategy(resolver).num_replicas_in_sync == 8


@pytest.mark.evidence("door", "rehearsed")
def test_a_program_of_tf_1_reaches_the_tpu(vm, model_dir):
    with tf.Graph().as_default():
        resolver = legacy.contrib.cluster_resolver.TPUClusterResolver("")
        assert resolver.num_accelerators() == {"TPU": 8}
        assert resolver.get_tpu_system_metadata().num_cores == 8
        with pytest.raises(ReachedError, match="8"):
            train(make(model_dir, cluster=resolver))
    assert vm.started == 1


def test_a_program_of_tf_1_starts_the_tpu_itself(vm, model_dir):
    with tf.Graph().as_default():
        resolver = Found("")
        legacy.config.experimental_connect_to_cluster(resolver)
        topology = legacy.tpu.experimental.initialize_tpu_system(resolver)
        with pytest.raises(ReachedError):
            train(make(model_dir, cluster=resolver))
    assert topology.num_tasks == 1
    assert vm.started == 1


def test_one_call_finds_connects_and_starts(vm):
    with tf.Graph().as_default():
        resolver = Found.connect("")
    assert isinstance(resolver, Found)
    assert (vm.connected, vm.started) == (1, 1)


STRATEGIES = [
    (legacy.distribute.experimental.TPUStrategy, V1Strategy),
    (legacy.contrib.distribute.TPUStrategy, V1Strategy),
    (
        legacy.compat.v2.distribute.experimental.TPUStrategy,
        tf.distribute.experimental.TPUStrategy,
    ),
    (legacy.compat.v2.distribute.TPUStrategy, tf.distribute.TPUStrategy),
]


@pytest.mark.parametrize(("make_strategy", "cls"), STRATEGIES)
def test_a_strategy_of_tf_1_starts_its_tpu_in_graph_mode(vm, make_strategy, cls):
    with tf.Graph().as_default():
        strategy = make_strategy(Found())
    assert isinstance(strategy, cls)
    assert isinstance(strategy, make_strategy)
    assert strategy.num_replicas_in_sync == 8
    assert vm.started == 1
    assert not isinstance(tf.constant(0), make_strategy)


@pytest.mark.parametrize("make_strategy", [first for first, _ in STRATEGIES])
def test_a_programs_own_strategy_has_the_emulated_cores(make_strategy, emulated_cores, model_dir):
    emulated_cores(4, 2)
    resolver = Found("my-tpu")
    metadata = resolver.get_tpu_system_metadata()
    assert (metadata.num_cores, metadata.num_hosts, metadata.num_of_cores_per_host) == (4, 2, 2)
    legacy.config.experimental_connect_to_cluster(resolver)
    legacy.tpu.experimental.initialize_tpu_system(resolver)
    strategy = make_strategy(resolver)
    assert isinstance(strategy, make_strategy)
    with pytest.raises(ReachedError, match="4"):
        train(make(model_dir, train_distribute=strategy))


def test_the_system_is_started_in_a_session_where_a_tpu_is_listed(vm):
    with tf.Graph().as_default():
        legacy.tpu.initialize_system()


# No TPU.


@every_call
def test_without_a_tpu_it_is_tensorflows_error_with_a_way_out(model_dir, call):
    with pytest.raises(tf.errors.NotFoundError) as error:
        call(make(model_dir, cluster=Resolver("local")))
    assert error.value.message.startswith("The TPU 'local' could not be started. TPUs not found")
    assert "emulate_tpu(num_cores=8)" in error.value.message
    assert "install tensorflow-tpu" in error.value.message


@pytest.mark.parametrize("variable", ["TPU_NAME", "COLAB_TPU_ADDR"])
def test_a_tpu_that_only_the_environment_names_is_told(model_dir, monkeypatch, variable):
    monkeypatch.setenv(variable, "10.0.0.2:8470")
    words = f"names no other one; {variable} in the environment does: '10.0.0.2:8470'"
    with pytest.raises(DeviceError, match=words):
        train(make(model_dir))


def test_a_machine_without_a_tpu_and_a_program_without_a_name(model_dir):
    with pytest.raises(DeviceError, match=r"but this machine has no TPU\.\n  To test"):
        train(make(model_dir))
    with pytest.raises(tf.errors.NotFoundError, match="could not be started"):
        legacy.distribute.experimental.TPUStrategy()


def test_emulated_cores_go_before_a_tpu(vm, emulated_cores):
    emulated_cores(2)
    cores = devices.tpu_cores(vm.resolver(), None, tpu.TPUConfig())
    assert cores.strategy.num_replicas_in_sync == 2
    assert vm.started == 0


def test_the_log_says_once_that_cores_are_emulated(emulated_cores, caplog, model_dir):
    emulated_cores(2)
    devices._say_that_cores_are_emulated.cache_clear()
    for _ in range(2):
        with pytest.raises(ReachedError):
            train(make(model_dir))
    said = [message for message in caplog.messages if "2 cores are emulated on the CPU" in message]
    assert len(said) == 1


def test_a_tpu_is_not_said_to_be_emulated(vm, caplog, model_dir):
    devices._say_that_cores_are_emulated.cache_clear()
    with pytest.raises(ReachedError):
        train(make(model_dir))
    assert not [message for message in caplog.messages if "emulated" in message]


def test_a_machine_without_a_tpu_emulates_none_unasked(model_dir, monkeypatch, emulated_cores):
    emulated_cores(0)
    monkeypatch.delenv("E2S_EMULATE_TPU_CORES", raising=False)
    for config in ({}, {"master": "local"}):
        with pytest.raises((DeviceError, tf.errors.NotFoundError)):
            train(make(model_dir, **config))
    assert devices.emulated_cores() == 0


# The wrong TPU.


def test_a_name_that_is_not_found_is_said_before_the_error_of_the_look_up():
    resolver = Found("no-such-tpu", zone="no-such-zone", project="none")
    words = (
        r"^The TPU 'no-such-tpu', zone 'no-such-zone', project 'none' was not found\. "
        r"\w+: (.|\n)*is 'local'(.|\n)*emulate_tpu"
    )
    with pytest.raises(DeviceError, match=words) as error:
        tpu.RunConfig(cluster=resolver)
    assert error.value.__cause__ is not None


def test_an_address_where_nobody_answers_is_told(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
        tpu_system._say_if_nobody_answers(address)
        assert f"Nobody answers at {address}" in caplog.text
        caplog.clear()
        taken.listen()
        tpu_system._say_if_nobody_answers(address)
        tpu_system._say_if_nobody_answers("")
        tpu_system._say_if_nobody_answers("grpc://127.0.0.1:tpu")  # TensorFlow refuses it
    assert not caplog.messages


def test_a_start_does_not_wait_for_an_answer(vm, model_dir, monkeypatch):
    asked, answer = [], threading.Event()
    monkeypatch.setattr(
        tpu_system, "_say_if_nobody_answers", lambda address: asked.append(answer.wait(20))
    )
    with pytest.raises(ReachedError):
        train(make(model_dir, cluster=vm.resolver()))
    assert (vm.started, asked) == (1, [])
    answer.set()


def test_a_tpu_in_use_is_tensorflows_error_led_by_its_name(vm, model_dir, monkeypatch):
    def taken(resolver):
        raise tf.errors.UnknownError(None, None, "The TPU is already in use by process 7.")

    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", taken)
    with pytest.raises(tf.errors.UnknownError) as error:
        train(make(model_dir, cluster=vm.resolver()))
    first = error.value.message.splitlines()[0]
    assert first == "The TPU 'local' could not be started. The TPU is already in use by process 7."
