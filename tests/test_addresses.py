"""The addresses that tests give to the processes they start."""

from __future__ import annotations

import socket

import pytest

from tests import addresses


def test_a_held_address_is_for_a_server_that_asks_for_it_and_for_nobody_else():
    with addresses.held(2) as (one, other):
        assert one != other
        here = "localhost", int(one.rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(here)
        with socket.socket() as somebody, pytest.raises(OSError, match="in use"):
            somebody.bind(here)
        with socket.create_server(here), socket.create_connection(here):
            pass
    with socket.socket() as somebody:
        somebody.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        somebody.bind(here)
