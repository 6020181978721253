"""Addresses of this machine for the processes that a test starts.

    with addresses.held(2) as (chief, worker):      # "localhost:40001", "localhost:40002"
        ...                                         # start servers there

A port that is merely free for now is anybody's until its server has started, which takes seconds:
another test may be given it, or any connection that leaves this machine.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def held(count: int) -> Iterator[list[str]]:
    """So many addresses that the system gives to nobody who asks for any port.

    A server that is told to may listen there. Until one does, nobody answers.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            # Linux lets a second socket have the port, as long as one of them alone listens.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("localhost", 0))
        yield [f"localhost:{each.getsockname()[1]}" for each in sockets]
