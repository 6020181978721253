"""The wait for the parameter servers of a cluster."""

from __future__ import annotations

import pytest

from estimator2strategy.engine.parameter_servers import servers


@pytest.fixture
def pauses(monkeypatch):
    """The seconds of each pause between two looks; none is made."""
    found = []
    monkeypatch.setattr(servers.time, "sleep", found.append)
    return found


def test_a_server_that_starts_together_with_its_worker_is_found_at_once(pauses):
    looks = iter([False, False, True])
    waiting = servers.Servers({"ps 0": "host:1"}, start_secs=60, is_there=lambda _: next(looks))
    waiting.wait()
    assert len(pauses) == 2
    assert max(pauses) <= 0.1


def test_a_server_that_does_not_come_is_looked_for_less_often():
    assert servers.until_next_look(5) == 0.5
    assert servers.until_next_look(600) == 1.0
