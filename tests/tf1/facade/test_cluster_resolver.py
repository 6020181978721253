"""`TPUClusterResolver` of TF 1.15 finds this machine without asking the network."""

from __future__ import annotations

import socket

import pytest
import tensorflow as real

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import DeviceError
from tests.rehearsal import rehearsal


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*unused):
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("tpu", [None, "", [""], []])
def test_a_tpu_without_a_name_is_this_machine(tpu):
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(tpu)
    assert resolver.master() == resolver.get_master() == ""
    assert resolver.cluster_spec() is None
    tf.contrib.tpu.RunConfig(cluster=resolver)


@pytest.mark.parametrize(
    ("variables", "master"),
    [
        ({"TPU_NAME": "grpc://10.0.0.1:8470"}, "grpc://10.0.0.1:8470"),
        (
            {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://10.0.0.2:1,grpc://10.0.0.3:1"},
            "grpc://10.0.0.2:1",
        ),
        (
            {"TPU_NAME": "mine", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://10.0.0.2:1"},
            "grpc://10.0.0.2:1",
        ),
        ({"TPU_NAME": "local"}, ""),
        ({"TPU_NAME": ""}, ""),
    ],
)
def test_a_tpu_that_nobody_names_is_that_of_the_environment(variables, master, monkeypatch):
    """Source: `TPUClusterResolver.__init__`, TF 1.15."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for tpu in (None, [None]):
        assert tf.contrib.cluster_resolver.TPUClusterResolver(tpu).master() == master
    assert tf.contrib.cluster_resolver.TPUClusterResolver("").master() == ""
    assert tf.tpu.experimental.initialize_tpu_system() is None


def test_a_name_of_the_environment_that_is_not_found_is_told_with_its_variable(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "mine")
    with pytest.raises(DeviceError, match=r"^The TPU 'mine' \(from TPU_NAME\) was not found"):
        tf.contrib.cluster_resolver.TPUClusterResolver()


def test_a_machine_with_a_tpu_needs_no_name(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "mine")
    with rehearsal():
        assert tf.contrib.cluster_resolver.TPUClusterResolver().master() == ""


def test_several_tpus_are_refused_as_they_were():
    with pytest.raises(NotImplementedError, match="Using multiple TPUs in a single session"):
        tf.contrib.cluster_resolver.TPUClusterResolver(["one", "other"])


def test_an_emulated_tpu_answers_to_every_name(emulated_cores):
    emulated_cores(2)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("mine", "us-a", "project")
    assert resolver.master() == ""
    assert resolver.num_accelerators() == {"TPU": 2}
    assert tf.contrib.tpu.RunConfig(cluster=resolver).master == ""


def test_the_address_of_a_tpu_is_taken_alone_or_in_a_list():
    for tpu in ("grpc://10.0.0.1:8470", ["grpc://10.0.0.1:8470"]):
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver(tpu)
        assert resolver.master() == "grpc://10.0.0.1:8470"


@pytest.mark.parametrize("cores", [0, 2])
def test_there_is_nothing_to_connect_to_or_to_start_on_this_machine(cores, emulated_cores):
    if cores:
        emulated_cores(cores)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    with tf.Graph().as_default():
        for module in (tf, tf.compat.v2):
            module.config.experimental_connect_to_cluster(resolver)
            assert module.tpu.experimental.initialize_tpu_system(resolver) is None
            assert module.tpu.experimental.shutdown_tpu_system(resolver) is None
        assert tf.contrib.distribute.initialize_tpu_system() is None


def test_a_cluster_is_connected_to_in_graph_mode_too(monkeypatch):
    modes = []
    connect = lambda *unused, **unused_too: modes.append(real.executing_eagerly())  # noqa: E731
    monkeypatch.setattr(real.config, "experimental_connect_to_cluster", connect)
    monkeypatch.setattr(real.tpu.experimental, "initialize_tpu_system", connect)
    monkeypatch.setattr(real.tpu.experimental, "shutdown_tpu_system", connect)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("grpc://10.0.0.1:8470")
    with tf.Graph().as_default():
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        tf.tpu.experimental.shutdown_tpu_system(resolver)
    assert modes == [True] * 3
